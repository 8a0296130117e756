"""Offsets of many groups come in few requests; what one of these does not answer is asked for again."""

from __future__ import annotations

from collections import Counter

from pykbroker.client.cluster import GROUP_COORDINATOR
from pykbroker.client.errors import KafkaError
from pykbroker.client.group_offsets import CommittedOffset, fetch_offsets_of_groups
from pykbroker.client.metadata import Node
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from pykbroker.protocol.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from pykbroker.protocol.topic_partition import TopicPartition

from .fake_broker import HOST, PORT, FakeBroker, with_broker

PARTITION = TopicPartition("t", 3)
NODE_THAT_LEFT = Node(2, HOST, PORT + 2)


def group_with(group_id: str, offset: int) -> OffsetFetchResponseGroup:
    row = OffsetFetchResponsePartitions(partition_index=3, committed_offset=offset, metadata="m")
    return OffsetFetchResponseGroup(
        group_id=group_id, topics=[OffsetFetchResponseTopics(name=PARTITION.topic, partitions=[row])]
    )


class Coordinators:
    """Two nodes: who coordinates a group is told by its number. unknown: groups that have nobody at first."""

    def __init__(self, broker: FakeBroker, *unknown: str) -> None:
        self.asked: Counter[str] = Counter()
        self.refusals: dict[str, list[ErrorCode]] = {}
        self._unknown = set(unknown)
        broker.serve(FindCoordinatorRequest, self._coordinators, (4, 6))
        broker.serve(OffsetFetchRequest, self._offsets, (8, 9))

    def _coordinators(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        rows = []
        for key in request.coordinator_keys:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE if key in self._unknown else ErrorCode.NONE
            self._unknown.discard(key)
            node_id = 1 + int(key[1:]) % 2
            rows.append(Coordinator(key=key, node_id=node_id, host=HOST, port=PORT + node_id, error_code=code))
        return FindCoordinatorResponse(coordinators=rows)

    def _offsets(self, request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
        rows = []
        for group in request.groups:
            self.asked[group.group_id] += 1
            codes = self.refusals.get(group.group_id)
            code = codes.pop(0) if codes else None
            row = group_with(group.group_id, int(group.group_id[1:]))
            rows.append(row if code is None else OffsetFetchResponseGroup(group_id=group.group_id, error_code=code))
        return OffsetFetchResponse(groups=rows)


def test_many_groups_are_asked_for_together() -> None:
    async def scenario(broker: FakeBroker) -> None:
        coordinators = Coordinators(broker)
        names = [f"g{index}" for index in range(1025)]
        async with broker.cluster() as cluster:
            found = await fetch_offsets_of_groups(cluster, names)
        assert found == {name: {PARTITION: CommittedOffset(int(name[1:]), -1, "m")} for name in names}
        assert set(coordinators.asked.values()) == {1}
        assert len(broker.of_type(FindCoordinatorRequest)) == 11
        assert len(broker.of_type(OffsetFetchRequest)) == 22

    with_broker(scenario)


def test_what_is_not_answered_is_asked_for_again() -> None:
    async def scenario(broker: FakeBroker) -> None:
        coordinators = Coordinators(broker, "g4")
        coordinators.refusals = {
            "g1": [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS],
            "g2": [ErrorCode.GROUP_AUTHORIZATION_FAILED] * 2,
        }
        async with broker.cluster() as cluster:
            found = await fetch_offsets_of_groups(cluster, [f"g{index}" for index in range(5)])
        refusal = found.pop("g2")
        assert isinstance(refusal, KafkaError)
        assert refusal.error_code is ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert found == {
            name: {PARTITION: CommittedOffset(int(name[1:]), -1, "m")} for name in ("g0", "g1", "g3", "g4")
        }
        assert coordinators.asked == Counter({"g0": 1, "g1": 3, "g2": 2, "g3": 1, "g4": 1})

    with_broker(scenario)


def test_an_answer_about_a_group_that_nobody_asked_for_is_none() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Coordinators(broker)

        def offsets(request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
            names = [group.group_id for group in request.groups]
            return OffsetFetchResponse(groups=[group_with(name, 1) for name in (*names, "g99")])

        broker.serve(OffsetFetchRequest, offsets, (8, 9))
        async with broker.cluster() as cluster:
            assert (await fetch_offsets_of_groups(cluster, ["g0"])).keys() == {"g0"}

    with_broker(scenario)


def test_a_coordinator_that_is_not_there_leaves_its_groups_to_the_next() -> None:
    async def scenario(broker: FakeBroker) -> None:
        Coordinators(broker)
        broker.refuses.add((HOST, PORT + 2))
        async with broker.cluster() as cluster:
            cluster._coordinators.update({(GROUP_COORDINATOR, name): NODE_THAT_LEFT for name in ("g0", "g2")})
            found = await fetch_offsets_of_groups(cluster, ["g0", "g2"])
        assert found == {name: {PARTITION: CommittedOffset(int(name[1:]), -1, "m")} for name in ("g0", "g2")}

    with_broker(scenario)
