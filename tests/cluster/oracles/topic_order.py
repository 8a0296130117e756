"""Linearizability of topics: what was acknowledged fits into one order, in which no mutation that was acknowledged
before another was sent comes behind it, and which ends in what the image has.

That is what Kafka promises: a mutation is acknowledged when its records are committed. Refusals promise less, since a
controller that does not know yet of its successor refuses by what it knows: they count as answers that were lost. A
broker sends a request again whose answer was lost with a connection, so a mutation may be carried out several times
before it is acknowledged, and one without an answer at any time later, or never.

Each topic is looked at alone: histories of which all objects are linearizable are linearizable.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pykbroker.metadata.image import MetadataImage
from pykbroker.sim.threads import beside_the_loop
from tests.replication.simulation.invariants import ensure

CREATE, DELETE, ALTER = "create", "delete", "alter"
CONFIG = "delete.retention.ms"

State = int | None
"""The value of the topic's configuration; None where there is no such topic."""


@dataclass(slots=True)
class Mutation:
    """value: what `create` and `alter` set. acknowledged_s: infinite where nobody knows what became of it."""

    kind: str
    topic: str
    value: int
    invoked_s: float
    acknowledged_s: float = math.inf

    @property
    def is_acknowledged(self) -> bool:
        return self.acknowledged_s < math.inf

    def applied_to(self, state: State) -> tuple[State, bool]:
        """What becomes of the state, and whether the mutation succeeds."""
        is_there = state is not None
        if self.kind == CREATE:
            return (state, False) if is_there else (self.value, True)
        if not is_there:
            return None, False
        return (None if self.kind == DELETE else self.value), True

    def __str__(self) -> str:
        end = f"{self.acknowledged_s:.3f}" if self.is_acknowledged else "?"
        return f"{self.kind} {self.topic} {self.value} [{self.invoked_s:.3f}..{end}]"


@beside_the_loop()
def check_topics(mutations: Sequence[Mutation], image: MetadataImage) -> None:
    for topic in {each.topic for each in mutations}:
        value = image.topic_config(topic).get(CONFIG)
        final = None if image.topic(topic) is None else int(value) if value is not None else -1
        history = [each for each in mutations if each.topic == topic]
        ensure(is_linearizable(history, final), "Linearizability", topic, "ends as", final, "after", *map(str, history))


def is_linearizable(history: Sequence[Mutation], final: State) -> bool:
    """Whether some order of the mutations explains what was acknowledged and ends in `final`; topics begin absent.

    The search is that of Wing and Gong: sets of what is done and states that were seen are not looked at again.
    """
    required = frozenset(at for at, each in enumerate(history) if each.is_acknowledged)
    seen: set[tuple[frozenset[int], State]] = {(frozenset(), None)}
    left = list(seen)
    while left:
        done, state = left.pop()
        if done == required and state == final:
            return True
        for following in _following(history, required, done, state):
            if following not in seen:
                seen.add(following)
                left.append(following)
    return False


def _following(
    history: Sequence[Mutation], required: frozenset[int], done: frozenset[int], state: State
) -> Iterator[tuple[frozenset[int], State]]:
    earliest_s = min((history[at].acknowledged_s for at in required - done), default=math.inf)
    for at, mutation in enumerate(history):
        if at in done or mutation.invoked_s > earliest_s:
            continue
        after, succeeds = mutation.applied_to(state)
        if succeeds:
            yield done, after  # and it is carried out once more, or nobody hears of it
            if at in required:
                yield done | {at}, after
