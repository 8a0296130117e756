"""A whole node whose process dies again and again, or whose machine loses its power, while members of a share group
work, and what they reject goes into a dead letter queue.

What holds whatever happens: what was settled is delivered no more; what was accepted has no letter; and in the end each
record is accepted or has a letter, and nothing is left to be delivered.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import pytest
import trio

from pykbroker.metadata.features import METADATA_VERSION, NEWEST_METADATA_VERSION, SHARE_VERSION
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages import share_groups as messages
from pykbroker.protocol.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from pykbroker.protocol.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from pykbroker.protocol.records.batch import Record, encode_batch, iter_batches, iter_records
from pykbroker.protocol.uuids import random_uuid, uuid_to_text
from pykbroker.server.quorum.formatting import format_unformatted
from pykbroker.server.sharing.dead_letter_queues import DeadLetterQueues
from pykbroker.sharing.partition.share_partition import SharePartition
from pykbroker.sim.clock import EPOCH_MS
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.node import LOG_DIRECTORY
from pykbroker.sim.process import ProcessDied
from tests.coordination.bugs import appends_late
from tests.server.serving import Client
from tests.sim.whole_node import World
from tests.simulations import seed_groups, skip_when_time_is_up

SEEDS = 8
GROUP, TOPIC, LETTERS = "workers", "work", "dlq.work"
PARTITIONS, RECORDS = 2, 60
"""Records of each partition."""
_PROPERTIES = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "1000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "1500",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.assignment.interval.ms": "0",
    "group.share.delivery.count.limit": "3",
    "log.flush.interval.messages": "1",
}
_GROUP_RESOURCE = 32
_EARLIEST = {"share.auto.offset.reset": "earliest", "errors.deadletterqueue.topic.name": LETTERS}
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Place = tuple[int, int]
"""A partition and an offset."""


class Lost(Exception):
    """Nobody knows what became of the request."""


@dataclass(slots=True)
class Known:
    """What members were told. perhaps_accepted: of which nobody knows. deliveries: how often each place came."""

    accepted: set[Place] = field(default_factory=set)
    rejected: set[Place] = field(default_factory=set)
    perhaps_accepted: set[Place] = field(default_factory=set)
    deliveries: Counter[Place] = field(default_factory=Counter)

    @property
    def settled(self) -> set[Place]:
        return self.accepted | self.rejected

    def check_letters(self, letters: set[Place]) -> None:
        assert not letters & self.accepted, f"accepted, and has a letter: {sorted(letters & self.accepted)}"
        every = {(index, offset) for index in range(PARTITIONS) for offset in range(RECORDS)}
        lost = every - self.accepted - self.perhaps_accepted - letters
        assert not lost, f"neither accepted nor with a letter: {sorted(lost)}; rejected: {sorted(lost & self.rejected)}"


class Member:
    """One process of the group, on a connection of its own."""

    def __init__(self, scene: Scene, client: Client) -> None:
        self._scene = scene
        self._client = client
        self._rng = scene.rng
        self._known = scene.known
        self._id = uuid_to_text(random_uuid(self._rng))
        self._epoch = 0
        self._session_epoch = 0
        self._partitions: list[int] = []

    async def work(self, rounds: int) -> None:
        """Raises Lost."""
        for _ in range(rounds):
            await self._beat()
            if self._partitions:
                await self._fetch()
            await trio.sleep(self._rng.choice((0.01, 0.1, 0.1, 0.4)))
        if self._rng.random() < 0.7:
            self._epoch = -1
            await self._beat()

    async def _ask(self, request: Any, version: int) -> Any:
        try:
            with trio.fail_after(30):
                return await self._client.ask(request, version)
        except (OSError, EOFError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise Lost from error

    async def _beat(self) -> None:
        request = messages.ShareGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=self._id,
            member_epoch=self._epoch,
            subscribed_topic_names=[TOPIC] if self._epoch == 0 else None,
        )
        answer = await self._ask(request, 1)
        code = ErrorCode(answer.error_code)
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.FENCED_MEMBER_EPOCH):
            self._epoch, self._partitions = 0, []
        elif code is ErrorCode.NONE:
            self._epoch = answer.member_epoch
            if answer.assignment is not None:
                self._partitions = [index for of in answer.assignment.topic_partitions for index in of.partitions]
        else:
            assert code in _PASSING, code
            await self._ask(FindCoordinatorRequest(coordinator_keys=[GROUP], key_type=0), 4)

    async def _fetch(self) -> None:
        settled = self._known.settled.copy()
        wanted = [messages.FetchPartition(partition_index=index) for index in self._partitions]
        request = messages.ShareFetchRequest(
            group_id=GROUP,
            member_id=self._id,
            share_session_epoch=self._session_epoch,
            max_wait_ms=50,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=self._rng.choice((1, 5, 20)),
            batch_size=self._rng.choice((1, 20)),
            topics=[messages.FetchTopic(topic_id=self._scene.topic_id, partitions=wanted)],
        )
        answer = await self._ask(request, 2)
        if not self._goes_on(answer.error_code):
            return
        for topic in answer.responses:
            for partition in topic.partitions:
                for acquired in partition.acquired_records:
                    await self._handle(partition.partition_index, acquired, settled)

    def _goes_on(self, error_code: int) -> bool:
        if error_code:
            assert ErrorCode(error_code) in _SESSION_ENDED | _PASSING, ErrorCode(error_code)
            self._session_epoch = 0
            return False
        self._session_epoch += 1
        return True

    async def _handle(self, index: int, acquired: messages.AcquiredRecords, settled: set[Place]) -> None:
        """settled: what was known to be settled before these were asked for."""
        places = [(index, offset) for offset in range(acquired.first_offset, acquired.last_offset + 1)]
        again = settled & set(places)
        assert not again, f"settled, and delivered again: {sorted(again)}"
        self._known.deliveries.update(places)
        if self._rng.random() < 0.1:
            return  # it forgets them
        types = [self._rng.choice((ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT, REJECT)) for _ in places]
        if self._rng.random() < 0.2:
            await self._acknowledge(index, acquired, [RENEW] * len(places))
        accepting = {place for place, kind in zip(places, types, strict=True) if kind == ACCEPT}
        self._known.perhaps_accepted |= accepting
        code = await self._acknowledge(index, acquired, types)
        if code in _CERTAINLY_NOT:
            self._known.perhaps_accepted -= accepting
        if code is not ErrorCode.NONE:
            return
        self._known.accepted |= accepting
        self._known.rejected |= {place for place, kind in zip(places, types, strict=True) if kind == REJECT}

    async def _acknowledge(self, index: int, acquired: messages.AcquiredRecords, types: list[int]) -> ErrorCode:
        batch = messages.AcknowledgementBatch(
            first_offset=acquired.first_offset, last_offset=acquired.last_offset, acknowledge_types=types
        )
        partition = messages.AcknowledgePartition(partition_index=index, acknowledgement_batches=[batch])
        request = messages.ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self._id,
            share_session_epoch=self._session_epoch,
            is_renew_ack=RENEW in types,
            topics=[messages.AcknowledgeTopic(topic_id=self._scene.topic_id, partitions=[partition])],
        )
        answer = await self._ask(request, 2)
        if not self._goes_on(answer.error_code):
            return ErrorCode(answer.error_code)
        return ErrorCode(answer.responses[0].partitions[0].error_code)


_PASSING = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_SESSION_ENDED = frozenset({ErrorCode.SHARE_SESSION_NOT_FOUND, ErrorCode.INVALID_SHARE_SESSION_EPOCH})
_CERTAINLY_NOT = _SESSION_ENDED | {ErrorCode.INVALID_RECORD_STATE}


class Scene:
    """A topic full of records, its dead letter queue, and members who come and go. known: by all of them."""

    def __init__(self, seed: int, nursery: trio.Nursery) -> None:
        self.rng = random.Random(seed)
        self.world = World(seed, nursery, _PROPERTIES)
        self.known = Known()
        self.topic_id = b""

    async def run(self, *, deaths: int) -> None:
        self._format()
        await self.world.start()
        await self._set_up()
        node = self.world.node
        for _ in range(deaths):
            is_power_cut = self.rng.random() < 0.4
            node.die_at(node.process.changes + self.rng.randint(10, 120), is_power_cut=is_power_cut)
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(self._work, 12)
            if not node.has_ended:
                await (node.crash() if is_power_cut else node.kill())
            node.die_at(None)
            await self._start_again()
        with trio.fail_after(600):
            while await self._lag():
                await self._work(5)
        self.known.check_letters(await self._letters())

    def _format(self) -> None:
        node = self.world.node
        node.disk.make_directory(LOG_DIRECTORY)
        format_unformatted(
            node.disk,
            node.config,
            uuid_to_text(random_uuid(self.rng)),
            rng=self.rng,
            now_ms=EPOCH_MS,
            feature_levels={METADATA_VERSION: NEWEST_METADATA_VERSION, SHARE_VERSION: 2},
        )

    async def _start_again(self) -> None:
        await self.world.node.wait_until_ended()
        while True:
            try:
                await self.world.start()
            except ProcessDied:
                continue
            return

    async def _set_up(self) -> None:
        client = await self.world.connect()
        enabled = CreatableTopicConfig(name="errors.deadletterqueue.group.enable", value="true")
        topics = [
            CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1),
            CreatableTopic(name=LETTERS, num_partitions=1, replication_factor=1, configs=[enabled]),
        ]
        made: Any = await client.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7)
        assert not [topic for topic in made.topics if topic.error_code], made
        self.topic_id = next(topic.topic_id for topic in made.topics if topic.name == TOPIC)
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=_GROUP_RESOURCE,
            resource_name=GROUP,
            configs=[
                IncrementalAlterConfigsRequestAlterableConfig(name=name, config_operation=0, value=value)
                for name, value in _EARLIEST.items()
            ],
        )
        altered: Any = await client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert not altered.responses[0].error_code, altered
        for index in range(PARTITIONS):
            await self._produce(client, index)
        client.transport.close()

    async def _produce(self, client: Client, index: int) -> None:
        left = RECORDS
        while left:
            records = encode_batch(
                [Record(key=None, value=b"%d" % left, timestamp=EPOCH_MS) for _ in range(min(left, 7))]
            )
            data = PartitionProduceData(index=index, records=records)
            request = ProduceRequest(
                acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name=TOPIC, partition_data=[data])]
            )
            answer: Any = await client.ask(request, 9)
            if answer.responses[0].partition_responses[0].error_code:
                await trio.sleep(0.1)  # its log is made
            else:
                left -= min(left, 7)

    async def _work(self, rounds: int) -> None:
        """Work as one member after another until that is enough, or the node is gone."""
        for _ in range(2):
            try:
                client = await self.world.connect()
            except OSError:
                return
            try:
                await Member(self, client).work(rounds)
            except Lost:
                return
            finally:
                client.transport.close()

    async def _lag(self) -> int:
        """Return how many records are not settled."""
        client = await self.world.connect()
        topic = messages.DescribeShareGroupOffsetsRequestTopic(topic_name=TOPIC, partitions=[*range(PARTITIONS)])
        wanted = messages.DescribeShareGroupOffsetsRequestGroup(group_id=GROUP, topics=[topic])
        answer: Any = await client.ask(messages.DescribeShareGroupOffsetsRequest(groups=[wanted]), 1)
        client.transport.close()
        (group,) = answer.groups
        rows = [row for of in group.topics for row in of.partitions if not group.error_code]
        if len(rows) < PARTITIONS or any(row.error_code or row.start_offset < 0 for row in rows):
            return -1
        return sum(row.lag for row in rows)

    async def _letters(self) -> set[Place]:
        client = await self.world.connect()
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 22)
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, max_bytes=1 << 22, topics=[FetchTopic(topic=LETTERS, partitions=[partition])]
        )
        answer: Any = await client.ask(request, 11)
        client.transport.close()
        (row,) = answer.responses[0].partitions
        assert not row.error_code
        found: dict[str, list[Place]] = defaultdict(list)
        for batch in iter_batches(bytes(row.records or b"")):
            for record in iter_records(batch):
                headers = {name: value.decode() for name, value in record.headers if value is not None}
                place = int(headers["__dlq.errors.partition"]), int(headers["__dlq.errors.offset"])
                found[headers["__dlq.errors.topic"]].append(place)
        assert set(found) <= {TOPIC}
        return set(found[TOPIC])


def play(seed: int, *, deaths: int = 4) -> Known:
    async def main() -> Known:
        async with trio.open_nursery() as nursery:
            scene = Scene(seed, nursery)
            await scene.run(deaths=deaths)
            nursery.cancel_scope.cancel()
        return scene.known

    return run_deterministic(main, seed=seed)


@seed_groups(SEEDS)
def test_what_is_settled_stays_settled_and_what_is_rejected_gets_a_letter(seeds: range) -> None:
    accepted = rejected = again = 0
    for seed in seeds:
        skip_when_time_is_up()
        known = play(seed)
        accepted += len(known.accepted)
        rejected += len(known.rejected)
        again += sum(count > 1 for count in known.deliveries.values())
    assert accepted > 20 * len(seeds)
    assert rejected > 10 * len(seeds)
    assert again > 10 * len(seeds)


@contextmanager
def letters_are_settled_before_they_are_written() -> Iterator[None]:
    async def write(self: DeadLetterQueues, pending: Any) -> None:
        await trio.lowlevel.checkpoint()
        self._settle(pending, [letters for letters, _ in pending.letters])

    with patch.object(DeadLetterQueues, "_write", write):
        yield


@contextmanager
def a_new_leader_forgets_letters() -> Iterator[None]:
    with patch.object(SharePartition, "unwritten_letters", lambda self, limit: []):
        yield


def states_are_acknowledged_before_they_are_appended() -> AbstractContextManager[object]:
    return appends_late("__share_group_state")


@pytest.mark.parametrize(
    "bug",
    [
        letters_are_settled_before_they_are_written,
        a_new_leader_forgets_letters,
        states_are_acknowledged_before_they_are_appended,
    ],
)
def test_planted_bugs_are_found(bug: Any) -> None:
    with bug(), pytest.raises(BaseExceptionGroup) as raised:
        all(play(seed) for seed in range(4 * SEEDS))
    assert raised.group_contains((AssertionError, trio.TooSlowError), depth=None)
