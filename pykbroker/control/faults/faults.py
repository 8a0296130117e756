"""The faults of one node: what a test, or a program over HTTP, has come about between the node and its clients.

They outlive the node's starts. Methods are called in the node's event loop, and raise BadFault for what cannot be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pykbroker.server.node.environment import Environment
from pykbroker.server.node.node import Node

from .errors import BadFault
from .fault_tap import FaultTap
from .options import FaultOptions, count_of, read_fault
from .plan import FaultPlan
from .rule import Rule
from .waits import Waits


class Faults:
    """The faults of a node."""

    def __init__(self) -> None:
        self.plan: Final = FaultPlan()
        self._waits = Waits()

    @property
    def held(self) -> int:
        """How many requests and answers wait now."""
        return len(self._waits)

    def equip(self, environment: Environment, node: Callable[[], Node | None]) -> Environment:
        """Return the environment of a start, with faults in it. node: while it runs."""
        waits = self._waits = Waits()
        tap = FaultTap(self.plan, waits, node, environment.threads)
        return replace(environment, tap=tap, when_stopping=waits.stop)

    def set_seed(self, seed: object) -> None:
        self.plan.seed = count_of({"seed": seed}, "seed", 0)

    def add(self, options: Mapping[str, Any]) -> Rule:
        """Add a fault (`options`)."""
        return self.add_read(read_fault(options))

    def add_read(self, fault: FaultOptions) -> Rule:
        return self.plan.add(fault.match, fault.pick, fault.action, fault.name)

    def remove(self, rule: Rule) -> None:
        """Take a fault out, which may be gone already; what it holds goes on."""
        self.plan.remove(rule)
        self._waits.let_go(rule)

    def clear(self) -> None:
        """Take all faults out; what they hold goes on."""
        for rule in self.plan:
            self.remove(rule)
        self.plan.clear()

    def release(self, name: str) -> int:
        """Let go what is held until this name is released. Return how many faults were."""
        return self.plan.release(name)

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.plan.seed,
            "held": self.held,
            "faults": [rule.as_json() for rule in self.plan],
            "taken": [each.as_json() for each in self.plan.taken],
        }


__all__ = ["BadFault", "Faults"]
