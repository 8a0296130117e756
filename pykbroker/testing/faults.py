"""Faults of a broker, as tests ask for them: `broker.faults`.

A fault is taken out by `remove()`, at the end of its `with` block, or by `clear()` with all others. Faults outlive the
broker's stops and starts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias, TypedDict, TypeVar, Unpack

from .errors import BrokerNotRunning
from .in_thread import in_thread
from .lazy_module import LazyModule

if TYPE_CHECKING:
    from pykbroker.control.faults import script
    from pykbroker.control.faults.faults import AnyRule, Faults
    from pykbroker.control.faults.plan import Taken

    from .loop_thread import LoopThread
else:
    script = LazyModule("pykbroker.control.faults.script")

T = TypeVar("T")
Duration: TypeAlias = str | float | timedelta

WAIT_S: Final = 10.0


class Meant(TypedDict, total=False):
    """The requests that are meant. client_id, topic: names, with `*` and `?`. times: for `seen` and `answered`."""

    api: str
    client_id: str
    topic: str
    times: int


class Picked(TypedDict, total=False):
    """The choice among those that are meant, counted from 1.

    nth: this one alone. skip: so many are left alone first. first: the first so many. times: so many at most. every:
    one in so many. chance: 0 to 1, drawn by the seed.
    """

    nth: int
    skip: int
    first: int
    times: int
    every: int
    chance: float
    name: str


class FaultOptions(Picked, total=False):
    """The options of a fault: what is done to which requests.

    error: of Kafka, `when="before"` or `"after"` the broker has carried out the request. delay: before that. hold: of
    the answer. drop: "before" or "after". cut: the answer, in the middle. until: see `BrokerFaults.hold`.
    """

    api: str
    client_id: str
    topic: str
    error: str
    when: str
    delay: Duration
    hold: Duration
    drop: str
    cut: bool
    until: str | Mapping[str, Any]
    held: str
    timeout: Duration


class HoldOptions(Picked, total=False):
    """The options of a hold. held: "answer", or "request". timeout: the longest time, 30 s where nothing is said."""

    api: str
    client_id: str
    topic: str
    held: str
    timeout: Duration


class DiskOptions(Picked, total=False):
    """The operations of the disk that fail. op: "write", "read", "sync" or "delete". path: a pattern, see the page."""

    error: str
    op: str
    path: str
    topic: str


class Awaited(dict[str, Any]):
    """The requests that a hold waits for, as `seen` and `answered` give them. faults: of the broker that was asked."""

    def __init__(self, faults: Faults, what: Mapping[str, Any]) -> None:
        super().__init__(what)
        self.faults = faults


class Controlled(Protocol):
    """Whose faults they are."""

    def controlled_faults(self) -> tuple[LoopThread, Faults]:
        """Return them with the loop that they belong to. Raises BrokerNotRunning."""
        ...


class Fault:
    """A fault that was asked for, until it is removed."""

    def __init__(self, faults: BrokerFaults, rule: AnyRule) -> None:
        self._faults = faults
        self._rule = rule

    @property
    def name(self) -> str:
        return self._rule.name

    @property
    def fitted(self) -> int:
        """Count the requests that were meant, or operations of the disk."""
        return self._rule.fitted

    @property
    def taken(self) -> int:
        """Count those to which it was done."""
        return self._rule.taken

    @property
    def timed_out(self) -> int:
        """Count the waits that were over before what they waited for."""
        return self._rule.timed_out

    def wait_taken(self, times: int = 1, *, timeout: float = WAIT_S) -> None:
        """Wait until it was done so often in all. Raises TimeoutError."""
        self._faults._call(lambda faults: faults.wait_taken(self._rule, times, timeout))

    def remove(self) -> None:
        """Take it out; what it holds goes on."""
        self._faults._call(lambda faults: _now(faults.remove, self._rule))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.remove()
        except BrokerNotRunning:
            pass  # it was closed in the block, and its faults went with it

    def __repr__(self) -> str:
        return f"<fault '{self.name}': {self.taken} of {self.fitted}>"


class BrokerFaults:
    """The faults of one broker. A mistake is a `ValueError` of one line."""

    def __init__(self, broker: Controlled) -> None:
        self._broker = broker

    @property
    def seed(self) -> int:
        """The seed that chances are drawn by."""
        return self._faults().plan.seed

    @seed.setter
    def seed(self, seed: int) -> None:
        self._faults().set_seed(seed)

    @property
    def taken(self) -> list[Taken]:
        """The latest 10,000 faults that came about, in order: `rule`, `number`, `api`, `client_id`, `does`."""
        return list(self._faults().plan.taken)

    @property
    def held(self) -> int:
        """Count the requests and answers that wait now."""
        return self._faults().held

    def add(self, **options: Unpack[FaultOptions]) -> Fault:
        """Have something done to requests: an error, a delay, a hold, a drop or a cut (`FaultOptions`)."""
        self._check_happens_here(options.get("until"))
        return Fault(self, self._call(lambda faults: _now(faults.add, options)))

    def hold(self, *, until: str | Mapping[str, Any], **options: Unpack[HoldOptions]) -> Fault:
        """Hold answers until something has happened.

        until: `seen(api=…)` or `answered(api=…)` of another request that comes from now on, or a name, for `release`.
        """
        self._check_happens_here(until)
        wanted: dict[str, Any] = {**options, "until": until}
        return Fault(self, self._call(lambda faults: _now(faults.add, wanted)))

    def seen(self, **what: Unpack[Meant]) -> dict[str, Any]:
        """Return for `until`: such a request has come."""
        return Awaited(self._faults(), {"seen": dict(what)})

    def answered(self, **what: Unpack[Meant]) -> dict[str, Any]:
        """Return for `until`: the answer to such a request goes out."""
        return Awaited(self._faults(), {"answered": dict(what)})

    def release(self, name: str) -> None:
        """Let go what is held until this name is released, now and later."""
        self._call(lambda faults: _now(faults.release, name))

    def disk(self, **options: Unpack[DiskOptions]) -> Fault:
        """Have operations of the disk fail (`DiskOptions`)."""
        return Fault(self, self._call(lambda faults: _now(faults.add_disk, options)))

    def load(self, toml: str | Path) -> list[Fault]:
        """Add the faults of a script: the path of a file, or its text."""
        faults = script.FaultScript(*script.script_text(toml))
        return [Fault(self, rule) for rule in self._call(lambda here: _now(here.load, faults))]

    def clear(self) -> None:
        """Take all faults out, and forget what they did; what they hold goes on."""
        self._call(lambda faults: _now(faults.clear))

    def _check_happens_here(self, until: object) -> None:
        """Raises ValueError: a broker does not hear of what happens at another one."""
        if isinstance(until, Awaited) and until.faults is not self._faults():
            raise ValueError("'until' is about another broker: hold until a name, and release it then")

    def _faults(self) -> Faults:
        _, faults = self._broker.controlled_faults()
        return faults

    def _call(self, fn: Callable[[Faults], Awaitable[T]]) -> T:
        loop, faults = self._broker.controlled_faults()
        return loop.call(fn, faults)


class AsyncFault:
    """`Fault` for coroutines."""

    def __init__(self, fault: Fault) -> None:
        self.blocking: Final = fault

    @property
    def name(self) -> str:
        return self.blocking.name

    @property
    def fitted(self) -> int:
        return self.blocking.fitted

    @property
    def taken(self) -> int:
        return self.blocking.taken

    @property
    def timed_out(self) -> int:
        return self.blocking.timed_out

    async def wait_taken(self, times: int = 1, *, timeout: float = WAIT_S) -> None:
        """Wait as `Fault.wait_taken` does."""
        await in_thread(lambda: self.blocking.wait_taken(times, timeout=timeout))

    async def remove(self) -> None:
        await in_thread(self.blocking.remove)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(lambda: self.blocking.__exit__(kind, error, trace))

    def __repr__(self) -> str:
        return repr(self.blocking)


class AsyncBrokerFaults:
    """`BrokerFaults` for coroutines."""

    def __init__(self, faults: BrokerFaults) -> None:
        self._faults = faults
        self.seen = faults.seen
        self.answered = faults.answered

    @property
    def seed(self) -> int:
        return self._faults.seed

    @seed.setter
    def seed(self, seed: int) -> None:
        self._faults.seed = seed

    @property
    def taken(self) -> list[Taken]:
        return self._faults.taken

    @property
    def held(self) -> int:
        return self._faults.held

    async def add(self, **options: Unpack[FaultOptions]) -> AsyncFault:
        return AsyncFault(await in_thread(lambda: self._faults.add(**options)))

    async def hold(self, *, until: str | Mapping[str, Any], **options: Unpack[HoldOptions]) -> AsyncFault:
        return AsyncFault(await in_thread(lambda: self._faults.hold(until=until, **options)))

    async def release(self, name: str) -> None:
        await in_thread(lambda: self._faults.release(name))

    async def disk(self, **options: Unpack[DiskOptions]) -> AsyncFault:
        return AsyncFault(await in_thread(lambda: self._faults.disk(**options)))

    async def load(self, toml: str | Path) -> list[AsyncFault]:
        return [AsyncFault(fault) for fault in await in_thread(lambda: self._faults.load(toml))]

    async def clear(self) -> None:
        await in_thread(self._faults.clear)


async def _now(fn: Callable[..., T], *args: object) -> T:
    """Call `fn` in the loop."""
    return fn(*args)
