"""Actions of `pykbroker quorum` that change the voters (KIP-853)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pykbroker.client.cluster import Cluster
from pykbroker.client.quorum import QuorumEndpoint, add_voter, remove_voter
from pykbroker.protocol.uuids import uuid_from_text, uuid_to_text

from .command import CommandFailed
from .confirmation import confirm
from .controller_options import OptionsOfEither, node_to_ask
from .outcomes import Row, outcomes

if TYPE_CHECKING:
    from collections.abc import Mapping

_NOT_A_CONTROLLER: Final = "Is this a valid controller configuration file?"
_META_PROPERTIES: Final = "meta.properties"


@dataclass(frozen=True, slots=True)
class VoterOptions(OptionsOfEither):
    """A field per flag."""

    dry_run: bool = False
    yes: bool = False
    as_json: bool = False
    controller_id: int = -1
    controller_directory_id: str = ""


@dataclass(frozen=True, slots=True)
class NewVoter:
    """A controller as its properties and its log directory tell of it."""

    node_id: int
    directory_id: bytes
    endpoints: tuple[QuorumEndpoint, ...]


def read_new_voter(path: Path | None) -> NewVoter:
    """Read the properties of a controller, and `meta.properties` in its log directory. Raises CommandFailed."""
    if path is None:
        raise CommandFailed(
            "You must supply the configuration file of the controller you are adding when using add-controller."
        )
    properties = _read(path)
    node_id = properties.get("node.id", "").strip()
    if not node_id.isascii() or not node_id.isdigit() or len(node_id) > 10:
        raise CommandFailed(f"node.id not found in configuration file. {_NOT_A_CONTROLLER}")
    if "controller" not in [each.strip() for each in properties.get("process.roles", "").split(",")]:
        raise CommandFailed(f"process.roles did not contain 'controller' in configuration file. {_NOT_A_CONTROLLER}")
    directory = properties.get("metadata.log.dir") or properties.get("log.dirs", properties.get("log.dir", ""))
    directory = directory.split(",")[0].strip()
    if not directory:
        raise CommandFailed(f"Neither metadata.log.dir nor log.dirs were found. {_NOT_A_CONTROLLER}")
    return NewVoter(int(node_id), _directory_id(Path(directory)), _endpoints(properties))


def _read(path: Path) -> dict[str, str]:
    from pykbroker.config.keys import ConfigurationError
    from pykbroker.config.properties import read_properties

    try:
        return read_properties(path)
    except ConfigurationError as error:
        raise CommandFailed(str(error)) from None


def _directory_id(directory: Path) -> bytes:
    path = directory / _META_PROPERTIES
    text = _read(path).get("directory.id")
    if text is None:
        raise CommandFailed(f"No directory id found in {path}")
    return _directory_id_of(text, str(path))


def _directory_id_of(text: str, place: str) -> bytes:
    try:
        return uuid_from_text(text.strip())
    except ValueError as error:
        raise CommandFailed(f"Failed to parse {place}: {error}") from None


def _endpoints(properties: Mapping[str, str]) -> tuple[QuorumEndpoint, ...]:
    """Return where the controllers' listeners are found: advertised where that is said."""
    names = [each.strip() for each in properties.get("controller.listener.names", "").split(",") if each.strip()]
    if not names:
        raise CommandFailed(f"controller.listener.names was not found. {_NOT_A_CONTROLLER}")
    known = _listeners(properties.get("listeners", "")) | _listeners(properties.get("advertised.listeners", ""))
    for name in names:
        if name.upper() not in known:
            raise CommandFailed(f"Cannot find information about controller listener name: {name}")
    return tuple(known[name.upper()] for name in names)


def _listeners(text: str) -> dict[str, QuorumEndpoint]:
    found = {}
    for each in text.split(","):
        name, separator, address = each.strip().partition("://")
        host, _, port = address.rpartition(":")
        if not separator or not port.isascii() or not port.isdigit() or len(port) > 5:
            continue
        found[name.upper()] = QuorumEndpoint(name, host.removeprefix("[").removesuffix("]") or "localhost", int(port))
    return found


async def add(cluster: Cluster, options: VoterOptions, new: NewVoter) -> None:
    """Make a controller a voter."""
    if not options.dry_run:
        node = await node_to_ask(cluster, options)
        await add_voter(cluster, new.node_id, new.directory_id, new.endpoints, node)
    endpoints = [str(each) for each in new.endpoints]
    with outcomes(as_json=options.as_json) as found:
        found.add(
            {**_row(new.node_id, new.directory_id), "endpoints": endpoints, "added": not options.dry_run},
            f"{'DRY RUN of adding' if options.dry_run else 'Added'} controller {new.node_id} with directory id "
            f"{uuid_to_text(new.directory_id)} and endpoints: {', '.join(endpoints)}",
        )


async def remove(cluster: Cluster, options: VoterOptions) -> None:
    """Make a voter an observer, once somebody has agreed."""
    directory_id = _directory_id_of(options.controller_directory_id, "--controller-directory-id")
    of = f"KRaft controller {options.controller_id} with directory id {uuid_to_text(directory_id)}"
    if not options.dry_run:
        await confirm("Remove a voter from the quorum", [of], yes=options.yes, named=True)
        await remove_voter(cluster, options.controller_id, directory_id, await node_to_ask(cluster, options))
    with outcomes(as_json=options.as_json) as found:
        row = {**_row(options.controller_id, directory_id), "removed": not options.dry_run}
        found.add(row, f"{'DRY RUN of removing' if options.dry_run else 'Removed'} {of}")


def _row(controller_id: int, directory_id: bytes) -> Row:
    return {"controller": controller_id, "directory_id": uuid_to_text(directory_id)}
