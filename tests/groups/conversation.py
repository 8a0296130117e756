"""A conversation with one shard: no driver, no log, no clock but the one that the test moves."""

from __future__ import annotations

from random import Random
from typing import Any

from pykbroker.groups.classic.classic_group import STABLE
from pykbroker.groups.common.config import GroupConfig
from pykbroker.groups.common.topics import NO_TOPICS, TopicsView
from pykbroker.groups.shard import GroupRequest, GroupShard
from pykbroker.state_machine import CoordinatorContext, Token
from tests.trials import Trials

from .scenarios import join, sync

GROUP = "g"


class Conversation:
    """A shard that is talked to; answers by the name that a request was given.

    written: each record with the producer of its transaction, if it has one.
    """

    def __init__(self, topics: TopicsView = NO_TOPICS, **config: Any) -> None:
        rng = Random(1)
        self.shard = GroupShard(GroupConfig(**{"initial_rebalance_delay_ms": 0, **config}), rng, topics)
        self._trials = Trials.of_random(rng)
        self.now_ms = 0
        self.answers: dict[str, Any] = {}
        self.causes: list[str] = []
        self.records: list[Any] = []
        self.producers: list[tuple[int, int]] = []
        self.written: list[tuple[Any, tuple[int, int] | None]] = []
        self._names: dict[Token, str] = {}

    def ask(self, name: str, request: GroupRequest, version: int = 3, client: str = "client") -> Any:
        """The answer, or None where it is still owed."""
        token = Token(len(self._names) + 1)
        self._names[token] = name
        context = CoordinatorContext(api_version=version, client_id=client)
        handled = self._trials.make(
            self.shard, lambda: self.shard.handle(request, token, self.now_ms, context, self.now_ms)
        )
        self.take(handled)
        return self.answers.get(name)

    def advance(self, ms: int) -> None:
        self.now_ms += ms
        self.take(self._trials.make(self.shard, lambda: self.shard.expire(self.now_ms, self.now_ms)))

    def take(self, result: Any) -> None:
        self.records += result.records
        self.producers += [result.producer] if result.producer else []
        self.written += [(record, result.producer) for record in result.records]
        self.causes += [result.cause] if result.cause else []
        for completion in result.completed:
            self.answers[self._names[completion.token]] = completion.response

    @property
    def asked(self) -> int:
        """How many requests there were."""
        return len(self._names)

    @property
    def group(self) -> Any:
        return self.shard.groups[GROUP]

    def join_all(self, *clients: str, **fields: Any) -> list[str]:
        """All join, and the leader's assignment is there."""
        for client in clients:
            self.ask(client, join(GROUP, **fields), client=client)
        self.advance(self.shard.config.initial_rebalance_delay_ms)
        member_ids = [self.answers[client].member_id for client in clients]
        generation = self.group.generation_id
        for member_id in reversed(member_ids):
            parts = {each: each.encode() for each in member_ids}
            self.ask(f"sync {member_id}", sync(GROUP, generation, member_id, parts, type=None, protocol=None))
        assert self.group.state is STABLE
        return member_ids


def cleaning(**config: Any) -> Conversation:
    talk = Conversation(offsets_retention_ms=1000, offsets_retention_check_interval_ms=100, **config)
    talk.take(talk.shard.start_timers(0, 0))
    return talk
