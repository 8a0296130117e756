"""Actions of `pykbroker users`: list, describe, create, alter, delete."""

from __future__ import annotations

import click

from pykbroker.client.cluster import Cluster
from pykbroker.client.scram_users import delete_scram_credential, describe_scram_users

from .client_entities import make, print_change, print_scram_users, scram_users_json
from .command import CommandFailed
from .confirmation import confirm
from .entries import Field, Value, print_entries, print_json
from .outcomes import outcomes
from .suggestions import did_you_mean
from .user_options import UserOptions

_FIELDS = (Field("user"), Field("mechanism"), Field("iterations", right=True))

Users = dict[str, dict[str, int]]


async def describe(cluster: Cluster, options: UserOptions) -> None:
    """Print users in the texts of Kafka's tool, or as JSON."""
    if options.as_json:
        print_json(scram_users_json(await describe_scram_users(cluster, options.names)))
    else:
        await print_scram_users(cluster, options.names[0] if options.names else None)


async def alter(cluster: Cluster, options: UserOptions) -> None:
    """Set and delete credentials."""
    assert options.change is not None
    await make(cluster, options.change)
    print_change(options.change, as_json=options.as_json)


async def list_all(cluster: Cluster, options: UserOptions) -> None:
    """Print users with their mechanisms: those that are named, or all. Raises CommandFailed."""
    users = await _existing(cluster, options) if options.names else await describe_scram_users(cluster)
    if options.as_json:
        print_json(scram_users_json(users))
        return
    rows: list[list[Value]] = [
        [user, mechanism, iterations] for user, own in users.items() for mechanism, iterations in own.items()
    ]
    print_entries(_FIELDS, rows, as_json=False)


async def create(cluster: Cluster, options: UserOptions) -> None:
    """Give credentials to a user who has none of the mechanisms. Raises CommandFailed."""
    assert options.change is not None
    [name] = options.names
    own = (await describe_scram_users(cluster, [name])).get(name, {})
    there = [each for each in options.change.passwords if each in own]
    if there:
        raise CommandFailed(f"The user '{name}' has a password for {', '.join(there)}: `users alter` sets a new one")
    await make(cluster, options.change)
    if options.as_json:
        print_change(options.change, as_json=True)
    else:
        click.echo(f"Created user {name} with {', '.join(options.change.passwords)}.")


async def set_password(cluster: Cluster, options: UserOptions) -> None:
    """Set a new password of a user. Raises CommandFailed where there is no such user."""
    await _existing(cluster, options)
    await alter(cluster, options)


async def delete(cluster: Cluster, options: UserOptions) -> None:
    """Delete credentials of users. Raises CommandFailed."""
    going = {
        name: [each for each in own if each in options.mechanisms or not options.mechanisms]
        for name, own in (await _existing(cluster, options)).items()
    }
    _require_mechanisms(going, options)
    going = {name: own for name, own in going.items() if own}
    lines = [f"{name} ({', '.join(own)})" for name, own in going.items()]
    action = f"Delete the credentials of {len(going)} user{'' if len(going) == 1 else 's'}"
    await confirm(action, lines, yes=options.yes, named=True)
    with outcomes(as_json=options.as_json) as found:
        for name, own in going.items():
            for mechanism in own:
                await delete_scram_credential(cluster, name, mechanism)
                found.add({"user": name, "deleted": [mechanism]})


def _require_mechanisms(going: dict[str, list[str]], options: UserOptions) -> None:
    for name, own in going.items():
        missing = [each for each in options.mechanisms if each not in own]
        if missing and not options.if_exists:
            raise CommandFailed(f"The user '{name}' has no password for {', '.join(missing)}")


async def _existing(cluster: Cluster, options: UserOptions) -> Users:
    """Return the users that are named. Raises CommandFailed for those that do not exist, unless `--if-exists`."""
    users = await describe_scram_users(cluster, list(dict.fromkeys(options.names)))
    missing = [name for name in options.names if name not in users]
    if missing and not options.if_exists:
        others = await describe_scram_users(cluster)
        raise CommandFailed(f"There is no user '{missing[0][:250]}'.{did_you_mean(missing[0], others)}")
    return users
