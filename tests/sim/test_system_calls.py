"""A whole node on the real disk, whose system calls are recorded: what clients are told is durable when they are told.

With `flush.messages=1` an acknowledged record is synced, and so are committed offsets; what the metadata log has
committed always is, and a vote before anything is done with it.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from pykbroker.storage.files.disk import OsDisk, OsDiskFile
from tests.storage.file_trace import FileTrace
from tests.storage.os_calls import OsCalls

from .test_failing_disk import commit, create, until_the_group_is_served
from .whole_node import TOPIC, Scenario, World, run_world

LOG_DIRECTORY = "data"
EVERY_MESSAGE = {"log.flush.interval.messages": "1"}


def durable(trace: FileTrace, directory: str) -> bytes:
    """What a power cut leaves of the records in the directories whose names begin so."""
    files = trace.durable_files()
    start = f"{LOG_DIRECTORY}/{directory}"
    return b"".join(files[path] for path in sorted(files) if path.startswith(start) and path.endswith(".log"))


def check_election(trace: FileTrace) -> int:
    """The epoch that is durable."""
    state = json.loads(trace.durable_files()[f"{LOG_DIRECTORY}/__cluster_metadata-0/quorum-state"])
    assert state["leaderId"] >= 0
    return int(state["leaderEpoch"])


def scripted_life(trace: FileTrace) -> Scenario:
    async def live(world: World) -> None:
        epoch = check_election(trace)
        assert epoch > 0
        client = await world.connect()
        await world.create_topic(client)
        assert TOPIC.encode() in durable(trace, "__cluster_metadata-0")
        for number in range(20):
            value = b"record number %d" % number
            await world.produce(client, [value])
            assert value in durable(trace, f"{TOPIC}-0")
        for name in ("second", "third"):
            assert await create(client, name) == 0
            assert name.encode() in durable(trace, "__cluster_metadata-0")
        await until_the_group_is_served(client)
        assert await commit(client, 7) == 0
        assert b"\x00\x01g" in durable(trace, "__consumer_offsets-"), "the group's name stands in its key"
        client.transport.close()
        await world.node.stop()
        assert f"{LOG_DIRECTORY}/.kafka_cleanshutdown" in trace.durable_files()
        await world.start()
        assert check_election(trace) > epoch
        client = await world.connect()
        assert len(await world.read_all(client)) == 20

    return live


def run_on_the_real_disk(path: Path) -> FileTrace:
    with OsCalls(str(path)).recorded() as calls:
        with mock.patch("pykbroker.sim.node.FaultyDisk", return_value=OsDisk()):
            run_world(scripted_life(calls.trace), 1, EVERY_MESSAGE | {"log.dirs": str(path / LOG_DIRECTORY)})
        return calls.trace


def test_what_a_node_tells_is_durable(tmp_path: Path) -> None:
    trace = run_on_the_real_disk(tmp_path)
    assert not trace.violations
    assert trace.calls > 300


def _forgets(*args: object, **named: object) -> None:
    pass


def _forgets_in_votes(self: OsDisk, path: str, data: bytes, *, sync: bool = True) -> None:
    Path(path + ".tmp").write_bytes(data)
    os.replace(path + ".tmp", path)


@pytest.mark.parametrize(
    ("kind", "name", "wrong"),
    [(OsDiskFile, "sync", _forgets), (OsDisk, "sync_directory", _forgets), (OsDisk, "replace_file", _forgets_in_votes)],
)
def test_a_sync_that_is_left_out_is_found(tmp_path: Path, kind: type, name: str, wrong: Callable[..., None]) -> None:
    with mock.patch.object(kind, name, wrong), pytest.raises(ExceptionGroup) as failed:
        run_on_the_real_disk(tmp_path)
    assert failed.group_contains((AssertionError, KeyError)), "what was promised is not durable, or not there"
