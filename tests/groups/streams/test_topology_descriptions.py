"""Descriptions of topologies (KIP-1331): when they are asked for, what is kept of them, and how much."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.groups.common.config import GroupConfig, StreamsGroupConfig
from pykbroker.groups.common.records import decode_record
from pykbroker.groups.common.requests import DeleteGroup, DescribeStreamsGroup
from pykbroker.groups.shard import GroupShard
from pykbroker.groups.streams.description_backoff import DescriptionBackoff, backoff_after
from pykbroker.groups.streams.topology_descriptions import (
    MOST_BYTES,
    MOST_BYTES_TOGETHER,
    DescriptionStatus,
    TopologyDescriptions,
    converted,
)
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.streams_topology_descriptions import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionNode,
    TopologyDescriptionSubtopology,
)
from pykbroker.state_machine import CoordinatorContext, Token
from tests.groups.late_assignments import written
from tests.groups.streams_requests import LEAVING, ONE_TASK_A_PARTITION, streams_beat, streams_joining
from tests.groups.topics import ChangingTopics

GROUP = "g"


def description(*names: str) -> TopologyDescription:
    nodes = [TopologyDescriptionNode(name=name, node_type=1, source_topics=["events"]) for name in names]
    return TopologyDescription(subtopologies=[TopologyDescriptionSubtopology(subtopology_id="0", nodes=nodes)])


class Scene:
    def __init__(self, store: TopologyDescriptions | None) -> None:
        self.topics = ChangingTopics(events=3)
        self.store = store
        self.now_ms = 1_000
        self.log: list[tuple[bytes, bytes | None]] = []
        self.shard = self._shard()

    def _shard(self) -> GroupShard:
        settings = StreamsGroupConfig(initial_rebalance_delay_ms=0, assignment_interval_ms=0, session_timeout_ms=10**9)
        return GroupShard(
            GroupConfig(), Random(1), self.topics, streams_config_of=lambda group_id: settings, descriptions=self.store
        )

    def ask(self, request: Any, version: int = 1) -> Any:
        context = CoordinatorContext(api_version=version, client_id="c", client_host="/h")
        result = self.shard.handle(request, Token(1), self.now_ms, context, self.now_ms)
        self.log.extend(written(result))
        return result.completed[0].response

    def join(self, member_id: str = "one", version: int = 1) -> Any:
        return self.ask(streams_joining(GROUP, member_id, ONE_TASK_A_PARTITION, process="p"), version).response

    def is_asked(self, member_id: str, epoch: int, version: int = 1) -> bool:
        answer = self.ask(streams_beat(GROUP, member_id, epoch), version).response
        assert not answer.error_code, answer
        return bool(answer.topology_description_required)

    def update(self, brought: TopologyDescription, member_id: str = "one", epoch: int = 0) -> tuple[int, str | None]:
        request = StreamsGroupTopologyDescriptionUpdateRequest(
            group_id=GROUP, member_id=member_id, topology_epoch=epoch, topology_description=brought
        )
        answer = self.ask(request)
        return answer.error_code, answer.error_message

    def described(self) -> tuple[DescriptionStatus, Any]:
        group = self.ask(DescribeStreamsGroup(group_id=GROUP, with_description=True)).group
        return group.topology_description_status, group.topology_description

    def restart(self) -> None:
        self.shard = self._shard()
        for key, value in self.log:
            record = decode_record(key, value)
            self.shard.replay(record.key, record.value)


def test_a_description_is_asked_for_until_it_is_kept_and_survives_another_shard() -> None:
    scene = Scene(TopologyDescriptions())
    joined = scene.join()
    assert joined.topology_description_required
    assert not scene.is_asked("one", joined.member_epoch), "the member has half a minute"
    scene.now_ms += 37_000
    assert not scene.is_asked("one", joined.member_epoch, version=0), "members of before cannot be asked"
    assert scene.is_asked("one", joined.member_epoch)
    assert scene.described() == (DescriptionStatus.NOT_STORED, None)
    assert scene.update(description("a")) == (0, None)
    scene.now_ms += 10**7
    assert not scene.is_asked("one", joined.member_epoch)
    for _ in range(2):
        status, found = scene.described()
        assert status is DescriptionStatus.AVAILABLE
        assert [node.name for node in found.subtopologies[0].nodes] == ["a"]
        scene.restart()
    scene.store = TopologyDescriptions()
    scene.restart()
    assert scene.described() == (DescriptionStatus.NOT_STORED, None), "another process has forgotten it"
    assert not scene.is_asked("one", joined.member_epoch), "and does not ask again, as in Kafka"


def test_a_group_that_is_deleted_leaves_no_description() -> None:
    store = TopologyDescriptions()
    scene = Scene(store)
    scene.join()
    scene.update(description("a"))
    assert store.get(GROUP, 0) is not None
    scene.ask(streams_beat(GROUP, "one", LEAVING))
    assert scene.ask(DeleteGroup(group_id=GROUP)) is ErrorCode.NONE
    assert store.get(GROUP, 0) is None
    assert store._size_bytes == 0
    assert scene.join().topology_description_required


def test_a_description_that_is_too_large_is_refused_and_not_asked_for_again() -> None:
    scene = Scene(TopologyDescriptions())
    joined = scene.join()
    code, reason = scene.update(description("a" * MOST_BYTES))
    assert code == ErrorCode.STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED
    assert "at most" in (reason or "")
    scene.now_ms += 10**7
    assert not scene.is_asked("one", joined.member_epoch)
    scene.restart()
    assert not scene.is_asked("one", joined.member_epoch), "the record says so"
    assert scene.described() == (DescriptionStatus.NOT_STORED, None)


def test_without_anything_that_keeps_descriptions_nobody_is_asked() -> None:
    scene = Scene(None)
    assert not scene.join().topology_description_required
    assert scene.described() == (DescriptionStatus.NOT_STORED, None)


@pytest.mark.parametrize(
    ("member_id", "epoch", "code"),
    [("two", 0, ErrorCode.UNKNOWN_MEMBER_ID), ("one", 1, ErrorCode.INVALID_REQUEST)],
)
def test_only_a_member_brings_the_description_of_the_topology_that_there_is(
    member_id: str, epoch: int, code: ErrorCode
) -> None:
    scene = Scene(TopologyDescriptions())
    assert scene.update(description("a"))[0] == ErrorCode.GROUP_ID_NOT_FOUND
    scene.join()
    assert scene.update(description("a"), member_id, epoch)[0] == code


def test_all_descriptions_together_have_a_bound() -> None:
    store = TopologyDescriptions()
    large = converted(description("a" * (MOST_BYTES - 2_000)))
    room = MOST_BYTES_TOGETHER // MOST_BYTES
    for number in range(room):
        store.put(str(number), 0, large)
    with pytest.raises(ApiError, match="together"):
        store.put(str(room), 0, large)
    store.put("0", 1, large)
    store.delete("0")
    store.put("another", 0, large)
    assert store.get("0", 1) is None


@given(st.integers(0, 2**31 - 1), st.integers(0, 10**12), st.integers(0, 40), st.randoms(use_true_random=False))
def test_a_backoff_doubles_up_to_an_hour(epoch: int, now_ms: int, attempts: int, random: Random) -> None:
    backoff: DescriptionBackoff | None = None
    for number in range(attempts + 1):
        backoff = backoff_after(backoff, epoch, now_ms, random)
        delay_ms = backoff.until_ms - now_ms
        exact_ms = min(30_000 * 2**number, 3_600_000)
        assert exact_ms * 0.8 - 1 <= delay_ms <= min(exact_ms * 1.2, 3_600_000)
        assert backoff.is_active(epoch, now_ms + delay_ms - 1)
        assert not backoff.is_active(epoch, now_ms + delay_ms)
        assert not backoff.is_active(epoch + 1, now_ms)
    assert backoff_after(backoff, epoch + 1, now_ms, random).attempts == 0
