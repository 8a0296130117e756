"""What clients find on a broker, by raw requests: a value that must be the same before and after another takes over.

Left out is only what a start is meant to change, such as leader epochs, and what a broker's own properties say.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from compat_tests.brokers import Broker
from compat_tests.same_answers.interview import plain
from compat_tests.waiting import until
from compat_tests.wire import Wire
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.configs import DescribeConfigsRequest, DescribeConfigsResource
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from pykbroker.protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from pykbroker.protocol.messages.group_offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from pykbroker.protocol.messages.groups import FindCoordinatorRequest
from pykbroker.protocol.messages.log_dirs import DescribeLogDirsRequest
from pykbroker.protocol.messages.metadata import MetadataRequest
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from pykbroker.protocol.messages.quotas import DescribeClientQuotasRequest
from pykbroker.protocol.records.batch import iter_batches, iter_records
from pykbroker.protocol.schema import Message

TOPIC, BROKER = 2, 4
SET_AT_RUN_TIME = {1: "of the topic", 2: "of the broker", 3: "of all brokers"}
PLACES = {"latest": -1, "earliest": -2, "largest timestamp": -3, "earliest local": -4}
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
STARTING = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}

Partition = tuple[str, int]


class Inventory:
    """Takes it from one broker, which has just started or is about to stop."""

    def __init__(self, broker: Broker) -> None:
        self._wire = Wire(broker.address)
        self._metadata: Any = None

    def take(self, groups: Collection[str], others: Collection[str], times: Iterable[int]) -> dict[str, Any]:
        """groups: of the classic protocol. others: groups of which only offsets are asked for.

        times: of the records around which ListOffsets is asked.
        """
        self._wait_until_all_lead()
        with self._wire:
            records = dict(self._records(READ_UNCOMMITTED))
            return {
                "topics": dict(self._topics()),
                "offsets": dict(self._offsets(times)),
                "records": records,
                "committed records": dict(self._records(READ_COMMITTED)),
                "epochs": dict(self._epochs(records)),
                "configs": dict(self._configs()),
                "quotas": dict(self._quotas()),
                "groups": dict(self._groups(groups, others)),
                "sizes": self._sizes(),
            }

    def _call(self, request: Message, version: int) -> Any:
        return self._wire.call(request, version)

    # Topics

    def _topics(self) -> Iterator[tuple[str, Any]]:
        for topic in self._metadata.topics:
            indexes = sorted(each.partition_index for each in topic.partitions)
            yield topic.name, (topic.topic_id.hex(), topic.is_internal, indexes)

    @property
    def _partitions(self) -> list[Partition]:
        """Of the topics that clients write to."""
        topics = sorted((topic for topic in self._metadata.topics if not topic.is_internal), key=lambda each: each.name)
        return [(topic.name, each.partition_index) for topic in topics for each in topic.partitions]

    def _wait_until_all_lead(self) -> None:
        def all_lead() -> bool:
            self._metadata = self._call(MetadataRequest(topics=None), 12)
            known = [each for topic in self._metadata.topics for each in topic.partitions]
            if any(each.error_code or each.leader_id < 0 for each in known):
                return False
            return all(not self._list_offset(partition, -1).error_code for partition in self._partitions)

        until(all_lead, "all partitions have leaders")

    def _list_offset(self, partition: Partition, place: int, isolation: int = READ_UNCOMMITTED) -> Any:
        topic, index = partition
        wanted = [ListOffsetsPartition(partition_index=index, timestamp=place)]
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation, topics=[ListOffsetsTopic(name=topic, partitions=wanted)]
        )
        return self._call(request, 8).topics[0].partitions[0]

    def _offsets(self, times: Iterable[int]) -> Iterator[tuple[str, Any]]:
        """By place, and at the borders of known times."""
        places = PLACES | {f"at {time}": time for time in times}
        for topic, index in self._partitions:
            end = self._list_offset((topic, index), PLACES["latest"]).offset
            for name, place in places.items():
                found = self._list_offset((topic, index), place)
                # Where the log ends the epoch is the leader's, which is new after every start.
                epoch = None if found.offset == end else found.leader_epoch
                yield f"{topic}-{index} {name}", (found.error_code, found.offset, found.timestamp, epoch)
            found = self._list_offset((topic, index), PLACES["latest"], READ_COMMITTED)
            yield f"{topic}-{index} last stable", (found.error_code, found.offset)

    def _records(self, isolation: int) -> Iterator[tuple[str, Any]]:
        """Batches as they are sent, decoded; of aborted transactions what the broker says of them."""
        for topic, index in self._partitions:
            start = self._list_offset((topic, index), PLACES["earliest"]).offset
            end = self._list_offset((topic, index), PLACES["latest"], isolation).offset
            rows: list[Any] = []
            aborted: set[tuple[int, int]] = set()
            offset = start
            while offset < end:
                answer = self._fetch((topic, index), offset, isolation)
                assert answer.error_code == 0, (topic, index, offset, ErrorCode(answer.error_code))
                aborted |= {(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()}
                batches = list(iter_batches(bytes(answer.records or b""), allow_partial=True))
                if not batches:
                    break  # nothing is left behind the last batch that compaction kept
                for batch in batches:
                    batch.ensure_valid()
                    header = batch.header
                    if header.base_offset >= offset:
                        rows.append(header._asdict())
                        rows += [tuple(record) for record in iter_records(batch)]
                    offset = header.next_offset
            yield f"{topic}-{index}", {"from": start, "rows": dict(enumerate(rows)), "aborted": sorted(aborted)}

    def _fetch(self, partition: Partition, offset: int, isolation: int) -> Any:
        topic, index = partition
        wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic=topic, partitions=[wanted])]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, isolation_level=isolation, topics=topics)
        return self._call(request, 11).responses[0].partitions[0]

    def _epochs(self, records: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Where each leader epoch ended that has records."""
        for topic, index in self._partitions:
            rows = records[f"{topic}-{index}"]["rows"].values()
            for epoch in sorted({row["partition_leader_epoch"] for row in rows if isinstance(row, dict)}):
                wanted = [OffsetForLeaderPartition(partition=index, leader_epoch=epoch)]
                request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=wanted)])
                found = self._call(request, 3).topics[0].partitions[0]
                yield f"{topic}-{index} epoch {epoch}", (found.error_code, found.leader_epoch, found.end_offset)

    def _configs(self) -> Iterator[tuple[str, Any]]:
        """What was set, not what the properties say."""
        names = [(TOPIC, topic.name) for topic in self._metadata.topics] + [(BROKER, ""), (BROKER, "1")]
        resources = [DescribeConfigsResource(resource_type=kind, resource_name=name) for kind, name in names]
        for result in self._call(DescribeConfigsRequest(resources=resources), 4).results:
            assert result.error_code == 0, result
            yield (
                f"{result.resource_type} {result.resource_name}",
                {
                    each.name: (each.value, SET_AT_RUN_TIME[each.config_source])
                    for each in result.configs
                    if each.config_source in SET_AT_RUN_TIME
                },
            )

    def _quotas(self) -> Iterator[tuple[str, Any]]:
        for found in self._call(DescribeClientQuotasRequest(), 1).entries:
            entity = {part.entity_type: part.entity_name for part in found.entity}
            yield repr(sorted(entity.items())), {each.key: each.value for each in found.values}

    # Groups

    def _groups(self, classic: Collection[str], others: Collection[str]) -> Iterator[tuple[str, Any]]:
        for group in (*classic, *others):
            wait_for_coordinator(self._wire, group)
            wanted = [OffsetFetchRequestGroup(group_id=group, topics=None)]
            (answer,) = self._call(OffsetFetchRequest(groups=wanted), 8).groups
            yield f"offsets of {group}", plain(answer)
        listed = self._call(ListGroupsRequest(), 5)
        yield "listed", {each.group_id: plain(each) for each in listed.groups if each.group_id in classic}
        described = self._call(DescribeGroupsRequest(groups=sorted(classic)), 5)
        for each in described.groups:
            members = {member.member_id: plain(member) for member in each.members}
            yield f"described {each.group_id}", plain(each) | {"members": members}

    # Log directories

    def _sizes(self) -> dict[str, Any]:
        """Not of the topics that brokers write to when it suits them."""
        of_clients = {topic for topic, _ in self._partitions}
        found = {}
        for result in self._call(DescribeLogDirsRequest(topics=None), 4).results:
            assert result.error_code == 0, result
            for topic in result.topics:
                for each in topic.partitions if topic.name in of_clients else ():
                    found[f"{topic.name}-{each.partition_index}"] = (result.log_dir, each.partition_size)
        return found


def wait_for_coordinator(wire: Wire, group: str) -> None:
    def is_ready() -> bool:
        found: Any = wire.call(FindCoordinatorRequest(key=group, key_type=0), 3)
        wanted = [OffsetFetchRequestGroup(group_id=group, topics=[])]
        answered: Any = wire.call(OffsetFetchRequest(groups=wanted), 8)
        return not found.error_code and answered.groups[0].error_code not in STARTING

    until(is_ready, f"the coordinator of {group} is ready")
