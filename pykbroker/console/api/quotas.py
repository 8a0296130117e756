"""Quotas of users, client ids, both together, and addresses: `/api/quotas`, each by name or as the default.

An empty name is the default. Values are texts: an answer of JSON has no infinity, and a browser no whole numbers beyond
2^53.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pykbroker.client.errors import BadInput, KafkaError
from pykbroker.client.quotas import alter_quotas, ask_quotas, describe_quotas, quotas_of
from pykbroker.console.endpoint import Arguments, Asking
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.quotas import DescribeClientQuotasResponse
from pykbroker.quotas.entities import CLIENT_ID, IP, IP_KEYS, USER, USER_AND_CLIENT_KEYS, ClientQuotaEntity

from .pages import Page, PageAsked, page_of

KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "user": (USER,),
    "client-id": (CLIENT_ID,),
    "user and client-id": (USER, CLIENT_ID),
    "ip": (IP,),
}
_ARGUMENTS: Final = {USER: "user", CLIENT_ID: "client_id", IP: "ip"}
_NOUNS: Final = {USER: "user", CLIENT_ID: "client id", IP: "address"}
_LONGEST_NAME: Final = 1024
_LONGEST_NUMBER: Final = 40
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """The quotas of one entity. names: by its types, None for a default; label: the entity in words."""

    kind: str
    names: Mapping[str, str | None]
    label: str
    values: Mapping[str, str]


async def quotas(asking: Asking, given: Arguments) -> Page[QuotaRow]:
    """Return a page. Raises BadInput, KafkaError, ClientError."""
    asked, text = PageAsked.of(given), given.text("filter", "", longest=_LONGEST_NAME).lower()
    kind = given.one_of("kind", list(KINDS), "") if given.text("kind", "") else ""
    response = await ask_quotas(asking.cluster, {}, only_these_types=False)

    def page(found: DescribeClientQuotasResponse) -> Page[QuotaRow]:
        rows = [_row(each.entity, each.values) for each in quotas_of(found)]
        return page_of([row for row in rows if text in row.label.lower() and kind in ("", row.kind)], asked)

    return await asking.threads.run(page, response)


async def alter(asking: Asking, given: Arguments) -> None:
    """Set and remove quotas of one entity; its others stay. Raises BadInput, KafkaError, ClientError."""
    entity = _entity(given)
    to_set = {key: _value(key, text) for key, text in given.mapping("set").items()}
    to_remove = given.texts("delete")
    if not to_set and not to_remove:
        raise BadInput("there is nothing to change: 'set' and 'delete' are empty")
    for key in (*to_set, *to_remove):
        _check_key(entity, key)
    await alter_quotas(asking.cluster, entity, to_set, to_remove)


async def remove(asking: Asking, given: Arguments) -> None:
    """Remove all quotas of one entity. Raises BadInput, KafkaError, ClientError."""
    entity = _entity(given)
    if given.text("confirm", "", longest=4 * _LONGEST_NAME) != label_of(entity):
        raise BadInput(f"'confirm' is whom the quotas are for: {label_of(entity)}")
    found = await describe_quotas(asking.cluster, dict(entity), only_these_types=True)
    own = next((each.values for each in found if each.entity == entity), {})
    if not own:
        raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, f"There is no quota of {label_of(entity)} any more")
    await alter_quotas(asking.cluster, entity, {}, own)


def label_of(entity: ClientQuotaEntity) -> str:
    """Return the entity in words: `user alice, default client id`."""
    names = dict(entity)
    return ", ".join(
        f"default {noun}" if names[type_] is None else f"{noun} {names[type_]}"
        for type_, noun in _NOUNS.items()
        if type_ in names
    )


def _entity(given: Arguments) -> ClientQuotaEntity:
    """Raises BadInput."""
    names = {
        type_: given.text(argument, "", longest=_LONGEST_NAME) or None
        for type_, argument in _ARGUMENTS.items()
        if given.has(argument)
    }
    if tuple(names) not in KINDS.values():
        raise BadInput("a quota is for a 'user', a 'client_id', both of them, or an 'ip'")
    return frozenset(names.items())


def _value(key: str, text: str) -> float:
    """Raises BadInput."""
    number = float(text) if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text) else math.inf
    if not math.isfinite(number):
        raise BadInput(f"the quota '{key[:60]}' is a number such as 1048576 or 12.5")
    return number


def _check_key(entity: ClientQuotaEntity, key: str) -> None:
    keys: Sequence[str] = list(IP_KEYS if (IP in dict(entity)) else USER_AND_CLIENT_KEYS)
    if key not in keys:
        raise BadInput(f"a quota of {label_of(entity)[:100]} is one of {', '.join(keys)}")


def _row(entity: ClientQuotaEntity, values: Mapping[str, float]) -> QuotaRow:
    names = dict(entity)
    ordered = {_ARGUMENTS.get(type_, type_): names[type_] for type_ in (*_NOUNS, *sorted(names)) if type_ in names}
    types = tuple(type_ for type_ in _NOUNS if type_ in names)
    kind = next((kind for kind, each in KINDS.items() if each == types and len(types) == len(names)), "other")
    return QuotaRow(kind, ordered, label_of(entity), {key: _shown(value) for key, value in values.items()})


def _shown(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value.is_integer() else str(value)
