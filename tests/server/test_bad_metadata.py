"""A metadata log that says what can't be, or whose files do not fit: one line that names the place, or mended."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest
import trio

from pykbroker.long_work import whole
from pykbroker.metadata.features import NEWEST_METADATA_VERSION
from pykbroker.metadata.image import METADATA_VERSION
from pykbroker.protocol.messages.metadata_records import FeatureLevelRecord, PartitionChangeRecord
from pykbroker.protocol.schema import Message
from pykbroker.raft.election_state import InvalidQuorumState
from pykbroker.server.quorum.encoded_records import encode_records
from pykbroker.server.quorum.metadata_log import MetadataLog
from pykbroker.server.runtime.startup_error import StartupError
from pykbroker.sim.disk import SimulatedDisk
from pykbroker.storage.files.errors import CorruptLog
from pykbroker.storage.segments.log_config import LogConfig
from tests.server.test_controller_driver import DIRECTORY, Quorum, open_quorum, simulated_disk

OF_NO_TOPIC = PartitionChangeRecord(topic_id=b"g" * 16, partition_id=0, leader=1)
OF_THE_FUTURE = FeatureLevelRecord(name=METADATA_VERSION, feature_level=NEWEST_METADATA_VERSION + 1)


def run(scenario: Callable[[Quorum], Awaitable[None]]) -> BaseException:
    """What ends a node that runs this."""

    async def main() -> None:
        quorum = open_quorum(simulated_disk())
        with trio.fail_after(30):
            async with trio.open_nursery() as nursery:
                await nursery.start(quorum.run)
                await scenario(quorum)
                await trio.sleep_forever()

    with pytest.raises(BaseExceptionGroup) as raised:
        trio.run(main)
    error: BaseException = raised.value
    while isinstance(error, BaseExceptionGroup):
        (error,) = error.exceptions
    return error


def told(record: Message) -> BaseException:
    """What ends a node that runs, and finds that record committed."""

    async def scenario(quorum: Quorum) -> None:
        quorum.raft.propose(whole(encode_records([record], 0)))

    return run(scenario)


def test_a_record_about_no_topic_ends_a_running_node_with_the_name_of_its_log() -> None:
    error = told(OF_NO_TOPIC)
    assert isinstance(error, CorruptLog)
    assert str(error).startswith(f"{DIRECTORY}: record ")
    assert f"there is no topic with the id {'67' * 16}" in str(error)


@pytest.mark.parametrize(
    ("record", "line"),
    [
        (OF_THE_FUTURE, "the cluster has metadata.version 34; this broker can use 30 to 33"),
        (
            FeatureLevelRecord(name="group.version", feature_level=7),
            "the cluster has group.version 7; this broker can use 0 to 1",
        ),
        (
            FeatureLevelRecord(name="some.version", feature_level=1),
            "the cluster has some.version 1; this broker can use 0",
        ),
    ],
)
def test_a_feature_level_of_the_future_ends_a_running_node(record: Message, line: str) -> None:
    error = told(record)
    assert isinstance(error, StartupError)
    assert str(error) == line


def _open(disk: SimulatedDisk) -> MetadataLog:
    return MetadataLog.open(disk, DIRECTORY, LogConfig(), clean_shutdown=True, now_ms=0)


def test_an_election_that_cannot_be_read_is_named_with_its_directory() -> None:
    disk = simulated_disk()
    _open(disk).close()
    disk.replace_file(f"{DIRECTORY}/quorum-state", b"rubbish")
    with pytest.raises(InvalidQuorumState, match=f"{DIRECTORY}: quorum-state is not JSON"):
        _open(disk).read_election([1])


@pytest.mark.parametrize("damaged", [b"", b"rubbish"])
def test_damaged_epochs_are_read_from_the_log_again(damaged: bytes) -> None:
    disk = SimulatedDisk(random.Random(1))
    disk.make_directory("/data")
    log = _open(disk)
    for epoch in (1, 2):
        log.append_records([OF_THE_FUTURE], epoch, 0)
    log.close()
    disk.replace_file(f"{DIRECTORY}/leader-epoch-checkpoint", damaged)
    again = _open(disk)
    assert again.last_epoch == 2
    assert again.end_offset_for_epoch(1) == (1, 1)
