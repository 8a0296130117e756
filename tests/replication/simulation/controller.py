"""The controller of the simulated world: the real rules on a metadata log that commits late.

What it wrote and did not commit may be forgotten when it dies; its successor begins with what is left. Answers go out
when everything that was written before them is committed, as from `server.controller_driver`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from pykbroker.config import BrokerConfig
from pykbroker.metadata.controller import Controller
from pykbroker.metadata.features import bootstrap_records
from pykbroker.metadata.image import MetadataImage
from pykbroker.protocol.schema import Message
from pykbroker.state_machine import Token

from .events import Events, Process
from .wires import Reply

CONTROLLER_ID = 100
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
ELR_VERSION = "eligible.leader.replicas.version"
SESSION_TIMEOUT_MS = 900
_SLOWEST_COMMIT_MS = 400.0


class SimulatedController(Process):
    """slow_commits: the share that takes long. on_commit: is told when more is committed."""

    def __init__(self, events: Events, rng: random.Random, *, has_elr: bool, slow_commits: float) -> None:
        super().__init__("controller", events)
        self._rng = rng
        self._has_elr = has_elr
        self._slow_commits = slow_commits
        self._config = BrokerConfig(
            {"broker.session.timeout.ms": str(SESSION_TIMEOUT_MS), "broker.heartbeat.interval.ms": "100"}
        )
        self._waiting: list[tuple[int, Reply, Any]] = []
        self._ends: list[int] = []
        """Where a batch of the log ends."""
        self.log: list[Message] = []
        self.committed = 0
        self.image = MetadataImage()
        """Of what is committed."""
        self.on_commit: Callable[[], None] = lambda: None

    def begin(self) -> None:
        super().begin()
        self._rules = Controller(
            self._config, node_id=CONTROLLER_ID, cluster_id=CLUSTER_ID, rng=random.Random(self._rng.random())
        )
        for offset, record in enumerate(self.log):
            self._rules.replay(record, offset)
        bootstrap = bootstrap_records({ELR_VERSION: int(self._has_elr)})
        self._append(self._rules.activate(bootstrap, self._now_ms()).records)
        self._commit_later()
        self._expire()

    def fail_over(self) -> None:
        """Of what is not committed the next one has some, and commits that; what was written at once goes at once."""
        self.end()
        ends = [self.committed, *(each for each in self._ends if each > self.committed)]
        del self.log[self._rng.choice(ends) :]
        self._ends = []
        self._waiting = []
        self.begin()

    def _now_ms(self) -> int:
        return round(self.events.now_ms)

    def handle(self, request: Message, reply: Reply) -> None:
        result = self._rules.handle(request, Token(0), self._now_ms())
        self._append(result.records)
        self._waiting += [(len(self.log), reply, each.response) for each in result.completed]
        if self.committed < len(self.log):
            self._commit_later()
        else:
            self._answer()

    def _append(self, records: Sequence[Message]) -> None:
        self._ends.append(len(self.log) + len(records))
        for record in records:
            self._rules.replay(record, len(self.log))
            self.log.append(record)

    def _commit_later(self) -> None:
        end = len(self.log)
        delay_ms = self._rng.uniform(0.5, 5)
        if self._rng.random() < self._slow_commits:
            delay_ms = self._rng.uniform(5, _SLOWEST_COMMIT_MS)
        self.later(delay_ms, lambda: self._commit(end))

    def _commit(self, end: int) -> None:
        if end > self.committed:
            for offset in range(self.committed, end):
                self.image.replay(self.log[offset], offset)
            self.committed = end
            self._answer()
            self.on_commit()

    def _answer(self) -> None:
        due = [each for each in self._waiting if each[0] <= self.committed]
        self._waiting = [each for each in self._waiting if each[0] > self.committed]
        for _, reply, response in due:
            reply(response)

    def _expire(self) -> None:
        while (deadline_ms := self._rules.next_deadline_ms()) is not None and deadline_ms <= self._now_ms():
            self._append(self._rules.expire(self._now_ms()).records)
        if self.committed < len(self.log):
            self._commit_later()
        self.later(100, self._expire)
