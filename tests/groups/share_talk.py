"""A conversation with a shard of share groups: heartbeats, and what the share coordinator would answer."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, cast

from pykbroker.groups.common.config import GroupConfig, ShareGroupConfig
from pykbroker.groups.common.records import CoordinatorRecord, decode_record
from pykbroker.groups.common.requests import EndShareInitialization
from pykbroker.groups.common.topics import FixedTopics, TopicsView
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.groups.share.share_group import ShareGroup
from pykbroker.groups.share.state_changes import ShareInitialization
from pykbroker.protocol.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from pykbroker.state_machine import CoordinatorContext, Token

EVENTS = b"e" * 16
ORDERS = b"o" * 16
GROUP = "g"
TOPICS = {"events": (EVENTS, 3), "orders": (ORDERS, 2)}


class _View:
    """A view whose topics a test may replace."""

    def __init__(self, topics: FixedTopics) -> None:
        self.topics = topics

    def __getattr__(self, name: str) -> Any:
        return getattr(self.topics, name)


class ShareTalk:
    """A shard, its log, and a clock that the test moves.

    records: of the newest step. log: of all steps, as bytes. effects: initializations that nobody has answered.
    """

    def __init__(
        self,
        settings: ShareGroupConfig | None = None,
        topics: Mapping[str, tuple[bytes, int]] | None = None,
        **config: Any,
    ) -> None:
        own = settings or ShareGroupConfig(assignment_interval_ms=0)
        self.topics = dict(TOPICS if topics is None else topics)
        self._config = GroupConfig(**config)
        self._config_of = lambda group_id: own
        self.now_ms = 1_000
        self.log: list[tuple[bytes, bytes | None]] = []
        self.records: list[CoordinatorRecord] = []
        self.effects: list[ShareInitialization] = []
        self.shard = self._new_shard()
        self.shard.start_timers(self.now_ms, self.now_ms)

    def _new_shard(self) -> GroupShard:
        self.view = _View(FixedTopics(self.topics))
        return GroupShard(self._config, Random(1), cast(TopicsView, self.view), share_config_of=self._config_of)

    def load(self) -> None:
        """Another coordinator reads the log."""
        self.shard = self._new_shard()
        for key, value in self.log:
            record = decode_record(key, value)
            self.shard.replay(record.key, record.value)
        self.effects.clear()
        self.shard.start_timers(self.now_ms, self.now_ms)

    def change_topics(self, **topics: tuple[bytes, int]) -> None:
        changed = {name for name in {*self.topics, *topics} if self.topics.get(name) != topics.get(name)}
        self.topics = topics
        self.view.topics = FixedTopics(topics)
        self.shard.on_topics_changed(changed)

    def take(self, result: Any) -> None:
        self.records = list(result.records)
        self.log += [record.encode() for record in result.records]
        self.effects += result.effects

    def ask(self, request: GroupRequest, version: int = 1) -> Any:
        context = CoordinatorContext(api_version=version, client_id="client", client_host="/host")
        result = self.shard.handle(request, Token(1), self.now_ms, context, self.now_ms)
        self.take(result)
        (completion,) = result.completed
        return completion.response

    def beat(self, member_id: str, epoch: int, **fields: Any) -> ShareGroupHeartbeatResponse:
        request = ShareGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **fields)
        response: ShareGroupHeartbeatResponse = self.ask(request)
        return response

    def join(self, member_id: str, *names: str, **fields: Any) -> ShareGroupHeartbeatResponse:
        return self.beat(member_id, 0, subscribed_topic_names=list(names or ("events",)), **fields)

    def initialize(self, *, is_done: bool = True) -> None:
        """The share coordinator answers everything that it was asked."""
        effects, self.effects = self.effects, []
        for effect in effects:
            self.ask(EndShareInitialization(group_id=effect.group_id, topics=effect.topics, is_done=is_done))

    def settle(self, *member_ids: str) -> dict[str, dict[bytes, list[int]]]:
        """Heartbeats until nothing changes; what each of the members has."""
        for _ in range(4):
            for member_id in member_ids:
                self.beat(member_id, self.group.members[member_id].member_epoch)
                self.initialize()
        return {member_id: self.assigned(member_id) for member_id in member_ids}

    def assigned(self, member_id: str) -> dict[bytes, list[int]]:
        assigned = self.group.members[member_id].assigned
        return {topic_id: sorted(partitions) for topic_id, partitions in assigned.items() if partitions}

    def advance(self, ms: int) -> list[CoordinatorRecord]:
        """Move the clock, and return what timeouts have written."""
        self.now_ms += ms
        self.take(self.shard.expire(self.now_ms, self.now_ms))
        return self.records

    @property
    def group(self) -> ShareGroup:
        group = self.shard.groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group


def told(response: ShareGroupHeartbeatResponse) -> dict[bytes, list[int]] | None:
    """The assignment of an answer; None where it leaves it as it was."""
    if response.assignment is None:
        return None
    return {topic.topic_id: topic.partitions for topic in response.assignment.topic_partitions}
