"""Actions of `pykbroker quotas`: list, describe, set, delete."""

from __future__ import annotations

from pykbroker.client.cluster import Cluster
from pykbroker.client.quotas import alter_quotas, describe_quotas

from .client_entities import ClientChange, make, named, print_change, print_found_quotas, quotas_json
from .command import CommandFailed
from .confirmation import confirm
from .entries import Field, Value, print_entries, print_json
from .java_double import java_double
from .quota_options import QuotaOptions

_FIELDS = (Field("entity"), Field("quota"), Field("value", right=True))


async def describe(cluster: Cluster, options: QuotaOptions) -> None:
    """Print the quotas in which the entity takes part."""
    found = await describe_quotas(cluster, options.entity.quota_filter, only_these_types=False)
    if options.as_json:
        print_json(quotas_json(found))
    elif options.in_text:
        print_found_quotas(found)
    else:
        rows: list[list[Value]] = [
            [named(each.entity), key, java_double(value)] for each in found for key, value in each.values.items()
        ]
        print_entries(_FIELDS, rows, as_json=False)


async def alter(cluster: Cluster, options: QuotaOptions) -> None:
    """Set and remove quotas."""
    assert options.change is not None
    await make(cluster, options.change)
    print_change(options.change, as_json=options.as_json)


async def delete(cluster: Cluster, options: QuotaOptions) -> None:
    """Delete quotas of one entity, those that it has. Raises CommandFailed where it has none of them."""
    entity = options.entity.quota_entity
    found = await describe_quotas(cluster, options.entity.quota_filter, only_these_types=True)
    own = next((each.values for each in found if each.entity == entity), {})
    missing = [key for key in options.keys if key not in own]
    if missing or not own:
        raise CommandFailed(f"There is no {missing[0] if missing else 'quota'} of {named(entity)}")
    going = {key: value for key, value in own.items() if key in options.keys or not options.keys}
    action = f"Delete {len(going)} quota{'' if len(going) == 1 else 's'} of {named(entity)}"
    lines = [f"{key}={java_double(value)}" for key, value in going.items()]
    await confirm(action, lines, yes=options.yes, named=True)
    await alter_quotas(cluster, entity, {}, going)
    if options.as_json:
        print_change(ClientChange(options.entity, {}, tuple(going), {}, ()), as_json=True)
