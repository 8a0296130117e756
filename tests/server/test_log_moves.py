"""What happens to a partition while its move waits for the controller; for whole moves see `compat_tests`."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
import trio

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import BROKER_RESOURCE
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.metadata_records import ConfigRecord
from pykbroker.server.replicas.directory_assignments import DirectoryAssignments
from pykbroker.server.replicas.log_moves import LogMoves, moves_at_once
from pykbroker.storage.directories.log_dirs import LogDirectory
from tests.api.api_node import ApiNode, in_virtual_time

from .serving import eventually


class SlowController:
    """Is asked where a replica is, and answers when it is let."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = trio.Event()

    async def assign(self, topic_id: bytes, index: int, directory_id: bytes) -> None:
        self.asked += 1
        await self.may_answer.wait()


@pytest.fixture
def node(tmp_path: Path) -> ApiNode:
    return ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})


def while_it_moves(
    node: ApiNode, test: Callable[[SlowController, LogMoves], Awaitable[None]], *, deleted: int = 0
) -> None:
    """apples-0 has a record, and all is copied to the other directory; what is left is to tell the controller.

    deleted: so many records are, before the move.
    """

    async def run() -> None:
        controller = SlowController()
        assignments = cast(DirectoryAssignments, controller)
        moves = LogMoves(node.replicas, assignments, most_at_once=2, clock=node.clock, threads=node.threads)
        node.create_topic("apples")
        node.append("apples", b"a")
        node.partition("apples").delete_records(deleted)
        here = posixpath.dirname(node.partition("apples").log.directory)
        (elsewhere,) = (each.path for each in node.directories if each.path != here)
        async with trio.open_nursery() as nursery:
            await nursery.start(moves.run)
            assert moves.move("apples", 0, elsewhere) is ErrorCode.NONE
            await eventually(lambda: bool(controller.asked))
            await test(controller, moves)
            nursery.cancel_scope.cancel()

    in_virtual_time(run)


def logs(node: ApiNode) -> list[str]:
    """Partitions that have a directory, copies and what is to be deleted included."""
    names = [each.name for path in node.config.log_dirs for each in Path(path).iterdir() if each.is_dir()]
    return sorted(name.partition(".")[0] + ".…" * ("." in name) for name in names if "-delete" not in name)


def start_offsets(directory: LogDirectory) -> list[str]:
    """As the checkpoint has them."""
    return Path(directory.path, "log-start-offset-checkpoint").read_text().splitlines()[2:]


def test_a_copy_takes_the_logs_place_when_the_controller_knows(node: ApiNode) -> None:
    async def test(controller: SlowController, moves: LogMoves) -> None:
        before = node.partition("apples").log.directory
        node.append("apples", b"b")
        controller.may_answer.set()
        await eventually(lambda: node.partition("apples").log.directory != before)
        assert node.partition("apples").log.log_end_offset == 2

    while_it_moves(node, test)


def test_a_leader_that_moved_knows_epochs_in_which_nothing_was_appended(node: ApiNode) -> None:
    """KAFKA-20961: a follower whose last epoch it does not know would be out of range, again and again."""

    async def test(controller: SlowController, moves: LogMoves) -> None:
        partition = node.partition("apples")
        before = partition.log.directory
        node.change_partition("apples", 0, leader=1)
        node.change_partition("apples", 0, leader=1)
        epochs = partition.log.epochs
        assert [(each.epoch, each.start_offset) for each in epochs] == [(0, 0), (partition.leader_epoch, 1)]
        controller.may_answer.set()
        await eventually(lambda: partition.log.directory != before)
        assert partition.log.epochs == epochs
        assert partition.log.end_offset_for_epoch(partition.leader_epoch) == (partition.leader_epoch, 1)

    while_it_moves(node, test)


@pytest.mark.parametrize("is_created_again", [False, True])
def test_a_copy_of_a_topic_that_is_deleted_meanwhile_takes_nobodys_place(node: ApiNode, is_created_again: bool) -> None:
    async def test(controller: SlowController, moves: LogMoves) -> None:
        node.delete_topic("apples")
        if is_created_again:
            node.create_topic("apples")
        controller.may_answer.set()
        await eventually(lambda: not moves.copies)
        await trio.sleep(1)
        assert logs(node) == (["apples-0"] if is_created_again else [])
        if is_created_again:
            assert node.partition("apples").log.log_end_offset == 0

    while_it_moves(node, test)


def test_a_log_of_which_all_records_are_deleted_moves_as_well(node: ApiNode) -> None:
    async def test(controller: SlowController, moves: LogMoves) -> None:
        partition = node.partition("apples")
        before = partition.log.directory
        node.append("apples", b"b")
        assert partition.delete_records(2).offset == 2
        controller.may_answer.set()
        await eventually(lambda: node.partition("apples").log.directory != before)
        assert (partition.log.log_start_offset, partition.log.log_end_offset) == (2, 2)

    while_it_moves(node, test)


def test_a_move_that_ends_early_leaves_nothing_in_the_checkpoints(node: ApiNode) -> None:
    """The next log of that name begins at 0, be it there."""

    async def test(controller: SlowController, moves: LogMoves) -> None:
        (copy,) = moves.copies.values()
        (there,) = (each for each in node.directories if each.holds(copy.log.directory))
        assert start_offsets(there) == ["apples 0 1"]
        node.delete_topic("apples")
        controller.may_answer.set()
        await eventually(lambda: not moves.copies)
        node.create_topic("apples", directory=there.directory_id)
        assert there.holds(node.partition("apples").log.directory)
        assert node.partition("apples").log.log_start_offset == 0
        assert start_offsets(there) == []

    while_it_moves(node, test, deleted=1)


RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
BATCHES = 40


def configure(node: ApiNode, rate: str) -> None:
    node.replay(ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="1", name=RATE, value=rate))


def test_a_move_keeps_to_its_rate_as_it_is_now(tmp_path: Path) -> None:
    """KIP-113's throttle: what is copied within the windows stays within the rate, and a new rate counts at once."""

    async def run() -> None:
        node = ApiNode(tmp_path, {"log.dirs": f"{tmp_path}/one,{tmp_path}/two"})
        node.create_topic("apples")
        for _ in range(BATCHES):
            node.append("apples", bytes(1_000))
        configure(node, "2000")
        controller = SlowController()
        controller.may_answer.set()
        moves = LogMoves(
            node.replicas,
            cast(DirectoryAssignments, controller),
            most_at_once=2,
            clock=node.clock,
            threads=node.threads,
        )
        here = posixpath.dirname(node.partition("apples").log.directory)
        (elsewhere,) = (each.path for each in node.directories if each.path != here)
        async with trio.open_nursery() as nursery:
            await nursery.start(moves.run)
            assert moves.move("apples", 0, elsewhere) is ErrorCode.NONE
            await trio.sleep(8)
            (copy,) = moves.copies.values()
            assert 8_000 < copy.log.size_bytes < 18_000
            configure(node, "1")
            await trio.sleep(60)
            assert moves.copies, "a batch at a time"
            configure(node, "1000000")
            await eventually(lambda: not moves.copies)
            nursery.cancel_scope.cancel()
        assert posixpath.dirname(node.partition("apples").log.directory) == elsewhere

    in_virtual_time(run)


@pytest.mark.parametrize(("threads", "moves"), [("1", 1), ("3", 3), ("", 2), ("0", 1)])
def test_as_many_moves_go_on_at_a_time_as_there_are_threads(tmp_path: Path, threads: str, moves: int) -> None:
    """`num.replica.alter.log.dirs.threads`; where it is not given, one for each log directory."""
    given = {"num.replica.alter.log.dirs.threads": threads} if threads else {}
    config = BrokerConfig({"log.dirs": f"{tmp_path}/one,{tmp_path}/two", **given})

    async def run() -> None:
        node = ApiNode(tmp_path, {"log.dirs": ",".join(config.log_dirs)})
        topics = [f"t{number}" for number in range(5)]
        controller = SlowController()
        under_way = LogMoves(
            node.replicas,
            cast(DirectoryAssignments, controller),
            most_at_once=moves_at_once(config),
            clock=node.clock,
            threads=node.threads,
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(under_way.run)
            for topic in topics:
                node.create_topic(topic)
                node.append(topic, b"a")
                here = posixpath.dirname(node.partition(topic).log.directory)
                (elsewhere,) = (each.path for each in node.directories if each.path != here)
                assert under_way.move(topic, 0, elsewhere) is ErrorCode.NONE
            await eventually(lambda: controller.asked == moves)
            await trio.sleep(10)
            assert (controller.asked, len(under_way.copies)) == (moves, moves)
            controller.may_answer.set()
            await eventually(lambda: not under_way.copies and controller.asked == len(topics))
            nursery.cancel_scope.cancel()

    in_virtual_time(run)
