"""The faults of one node: what a test, or a program over HTTP, has come about between it, its clients and its disk.

They outlive the node's starts. Methods are called in the node's event loop, and raise BadFault for what cannot be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import trio

from pykbroker.server.node.environment import Environment
from pykbroker.server.node.node import Node
from pykbroker.storage.files.faulty_disk import FaultyDisk

from .disk_faults import DiskFaultOptions, DiskRule, read_disk_fault
from .errors import BadFault, suggestion
from .fault_tap import FaultTap
from .options import FaultOptions, count_of, read_fault
from .plan import FaultPlan, Taken
from .rule import Rule
from .waits import Waits

if TYPE_CHECKING:
    from .script import FaultScript

AnyRule: TypeAlias = Rule | DiskRule

MOST_DISK_RULES: Final = 100
"""Each operation on a file looks at all of them."""
MOST_SHOWN: Final = 1000
"""Of what came about, as JSON: the latest."""


class Faults:
    """The faults of a node."""

    def __init__(self) -> None:
        self.plan: Final = FaultPlan()
        self._disk_rules: list[DiskRule] = []
        self._used_numbers: Counter[str] = Counter()
        """Of names by kind: so many, from 1 on, are in use for sure."""
        self._waits = Waits()

    def __iter__(self) -> Iterator[AnyRule]:
        return iter([*self.plan, *self._disk_rules])

    @property
    def held(self) -> int:
        """Count the requests and answers that wait now."""
        return len(self._waits)

    def equip(self, environment: Environment, node: Callable[[], Node | None]) -> Environment:
        """Return the environment of a start, with faults in it. node: while it runs."""
        waits = self._waits = Waits()
        return replace(
            environment,
            tap=FaultTap(self.plan, waits, node, environment.threads),
            disk=FaultyDisk(environment.disk, Random(0), self._disk_rules),  # noqa: S311 - torn writes are no secret
            when_stopping=waits.stop,
        )

    def set_seed(self, seed: object) -> None:
        """Set what chances are drawn from, of all faults."""
        self.plan.seed = count_of({"seed": seed}, "seed", 0)

    def add(self, options: Mapping[str, Any]) -> Rule:
        """Add a fault (`options`)."""
        return self._add(read_fault(options))

    def add_disk(self, options: Mapping[str, Any]) -> DiskRule:
        """Add a fault of the disk (`disk_faults`)."""
        return self._add_disk(read_disk_fault(options))

    def load(self, script: FaultScript) -> list[AnyRule]:
        """Add what a script says, or nothing of it."""
        added: list[AnyRule] = []
        for table, fault in script.faults:
            try:
                added.append(self._add(fault) if isinstance(fault, FaultOptions) else self._add_disk(fault))
            except BadFault as error:
                for rule in added:
                    self.remove(rule)
                raise script.mistake(table, error) from None
        if script.seed is not None:
            self.plan.seed = script.seed
        return added

    def _add(self, fault: FaultOptions) -> Rule:
        return self.plan.add(fault.match, fault.pick, fault.action, self._name_of(fault, "fault"))

    def _name_of(self, fault: FaultOptions | DiskFaultOptions, kind: str) -> str:
        """Return its name, or one with the lowest number that is free: chances go by it, so that it must not depend on
        what was here before. Raises BadFault for one that another fault has.
        """
        if not fault.name:
            while self._has(name := f"{kind} {self._used_numbers[kind] + 1}"):
                self._used_numbers[kind] += 1
            return name
        if self._has(fault.name):
            raise BadFault(f"there is a fault '{fault.name}' already", "name")
        return fault.name

    def _has(self, name: str) -> bool:
        return name in self.plan or any(each.name == name for each in self._disk_rules)

    def _add_disk(self, fault: DiskFaultOptions) -> DiskRule:
        if len(self._disk_rules) >= MOST_DISK_RULES:
            raise BadFault(f"there are {MOST_DISK_RULES} faults of the disk already; remove some, or clear() them")
        rule = DiskRule(self._name_of(fault, "disk fault"), fault, lambda: self.plan.seed, self._note_disk)
        self._disk_rules.append(rule)
        return rule

    def find(self, name: str) -> AnyRule:
        for rule in self:
            if rule.name == name:
                return rule
        raise BadFault(f"there is no fault '{name}'{suggestion(name, [each.name for each in self])}", "name")

    def remove(self, rule: AnyRule) -> None:
        """Take a fault out, which may be gone already; what it holds goes on."""
        self._used_numbers.clear()
        if isinstance(rule, DiskRule):
            if rule in self._disk_rules:
                self._disk_rules.remove(rule)
            return
        self.plan.remove(rule)
        self._waits.let_go(rule)

    def clear(self) -> None:
        """Take all faults out, and forget what they did; what they hold goes on."""
        for rule in self:
            self.remove(rule)
        self.plan.clear()

    def release(self, name: str) -> int:
        """Let go what is held until this name is released. Return how many faults were."""
        return self.plan.release(name)

    async def wait_taken(self, rule: AnyRule, times: int, timeout_s: float) -> None:
        """Wait until a fault has come about so often. Raises TimeoutError."""
        with trio.move_on_after(timeout_s):
            await self._until_taken(rule, times)
        if rule.taken < times:
            what = f"waited {timeout_s:g} s for the fault '{rule.name}' to come about {times} times"
            raise TimeoutError(f"{what}; it did {rule.taken} times, and {rule.fitted} were meant")

    async def _until_taken(self, rule: AnyRule, times: int) -> None:
        token = trio.lowlevel.current_trio_token()
        while rule.taken < times:
            changed = trio.Event()

            def tell(changed: trio.Event = changed) -> None:
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(changed.set)

            rule.when_taken.append(tell)
            try:
                if rule.taken < times:
                    await changed.wait()
            finally:
                with suppress(ValueError):  # it was called
                    rule.when_taken.remove(tell)

    def as_json(self) -> dict[str, Any]:
        return {
            "seed": self.plan.seed,
            "held": self.held,
            "faults": [rule.as_json() for rule in self],
            "taken": [each.as_json() for each in list(self.plan.taken)[-MOST_SHOWN:]],
        }

    def _note_disk(self, rule: DiskRule, operation: str, path: str) -> None:
        """Note a fault, in the thread that has met it; in another run the log directory may be another one."""
        file = "/".join(path.split("/")[-2:])
        self.plan.taken.append(Taken(rule.name, rule.fitted, "", None, f"{rule.error}: {operation} {file}"))
