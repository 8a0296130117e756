"""The initial controllers are the first voters of a dynamic quorum (KIP-853), as formatting a node names them.

They stand in the log's first snapshot, which covers no record: `00000000000000000000-0000000000.checkpoint`. A quorum
of static voters, or a node that is to join one, has no such file. Kafka's counterparts are `DynamicVoters` and
`Formatter`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from pykbroker.config import BrokerConfig
from pykbroker.protocol.compile import encode
from pykbroker.protocol.messages.control_records import (
    Endpoint,
    KRaftVersionFeature,
    KRaftVersionRecord,
    VotersRecord,
    VotersRecordVoter,
)
from pykbroker.protocol.records.control import ControlRecordType, encode_control_key
from pykbroker.protocol.uuids import random_uuid, uuid_from_text
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.storage.directories.directory_names import METADATA_LOG_DIRECTORY
from pykbroker.storage.directories.log_dirs import make_durable_directory
from pykbroker.storage.files.disk import Disk

from .metadata_snapshots import file_name
from .snapshot_format import QuorumRecords, encode_snapshot

DYNAMIC_KRAFT_VERSION = 1
_BOOTSTRAP_SNAPSHOT = SnapshotId(0, 0)
_FORM = re.compile(r"(?P<id>\d+)@(?:\[(?P<ipv6>[^\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>\d+):(?P<directory>[^:]+)")


class InvalidInitialControllers(ValueError):
    """The list of initial controllers is wrong; the text is one line that says which part."""


@dataclass(frozen=True, slots=True)
class InitialController:
    """An initial controller is a voter with its endpoint and the id of its directory."""

    node_id: int
    host: str
    port: int
    directory_id: bytes


def parse_initial_controllers(text: str) -> dict[int, InitialController]:
    """Parse `0@host:port:directory id,1@…`, by node id. Raises InvalidInitialControllers."""
    controllers: dict[int, InitialController] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        controller = _parse(part)
        if controller.node_id in controllers:
            raise InvalidInitialControllers(f"Node id {controller.node_id} is named more than once.")
        controllers[controller.node_id] = controller
    if not controllers:
        raise InvalidInitialControllers("No initial controller is named.")
    return controllers


def _parse(text: str) -> InitialController:
    match = _FORM.fullmatch(text)
    if match is None:
        raise InvalidInitialControllers(f"'{text}' is not of the form id@host:port:directory-id.")
    port = int(match["port"])
    if port > 65535:
        raise InvalidInitialControllers(f"'{text}' has the port {port}.")
    try:
        directory_id = uuid_from_text(match["directory"])
    except ValueError:
        raise InvalidInitialControllers(f"'{text}' ends in what is no directory id.") from None
    return InitialController(int(match["id"]), match["ipv6"] or match["host"], port, directory_id)


def this_node_alone(config: BrokerConfig, rng: Random) -> dict[int, InitialController]:
    """Return the only voter that `--standalone` asks for. Raises InvalidInitialControllers."""
    if "controller" not in config.roles:
        raise InvalidInitialControllers("--standalone is for a controller, and process.roles does not say so.")
    listener = next((each for each in config.listeners.controller if each.port), None)
    if listener is None:
        raise InvalidInitialControllers("--standalone needs a controller listener with a port that others can know.")
    return {
        config.node_id: InitialController(config.node_id, listener.host or "localhost", listener.port, random_uuid(rng))
    }


def write_initial_controllers(
    disk: Disk, directory: str, controllers: Mapping[int, InitialController], listener_name: str, now_ms: int
) -> None:
    """Write the voters' snapshot, durable on return. directory: the one of the metadata log, which is made. Raises
    FileError.
    """
    quorum = QuorumRecords()
    version = KRaftVersionRecord(version=0, kraft_version=DYNAMIC_KRAFT_VERSION)
    quorum.by_type[ControlRecordType.KRAFT_VERSION] = (
        encode_control_key(ControlRecordType.KRAFT_VERSION),
        encode(version, 0),
    )
    quorum.by_type[ControlRecordType.KRAFT_VOTERS] = (
        encode_control_key(ControlRecordType.KRAFT_VOTERS),
        encode(_voters_record(controllers, listener_name), 0),
    )
    path = posixpath.join(directory, METADATA_LOG_DIRECTORY)
    make_durable_directory(disk, path)
    portions = encode_snapshot([], epoch=_BOOTSTRAP_SNAPSHOT.epoch, timestamp_ms=now_ms, now_ms=now_ms, quorum=quorum)
    disk.replace_file(posixpath.join(path, file_name(_BOOTSTRAP_SNAPSHOT)), b"".join(portions))


def holds_metadata_log(disk: Disk, path: str) -> bool:
    """Tell whether the directory has more than what formatting leaves in it. Raises FileError."""
    return any(not name.startswith(file_name(_BOOTSTRAP_SNAPSHOT)) for name in disk.list_directory(path))


def _voters_record(controllers: Mapping[int, InitialController], listener_name: str) -> VotersRecord:
    return VotersRecord(
        version=0,
        voters=[
            VotersRecordVoter(
                voter_id=each.node_id,
                voter_directory_id=each.directory_id,
                endpoints=[Endpoint(name=listener_name, host=each.host, port=each.port)],
                kraft_version_feature=KRaftVersionFeature(
                    min_supported_version=0, max_supported_version=DYNAMIC_KRAFT_VERSION
                ),
            )
            for _, each in sorted(controllers.items())
        ],
    )
