"""The journal of brokers in this process, as tests have it: questions, files, and marks."""

from __future__ import annotations

import time
import warnings
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from .errors import NoJournal
from .in_thread import in_thread
from .lazy_module import LazyModule

if TYPE_CHECKING:
    from pykbroker.control.journal import decoding, exchange, journal, json_lines, pcap, query
    from pykbroker.control.journal.journal import Journal
    from pykbroker.control.journal.recorded_request import RecordedRequest
else:
    decoding = LazyModule("pykbroker.control.journal.decoding")
    exchange = LazyModule("pykbroker.control.journal.exchange")
    journal = LazyModule("pykbroker.control.journal.journal")
    json_lines = LazyModule("pykbroker.control.journal.json_lines")
    pcap = LazyModule("pykbroker.control.journal.pcap")
    query = LazyModule("pykbroker.control.journal.query")

DEFAULT_BYTES: Final = 16 * 1024 * 1024
LEAST_BYTES: Final = 64 * 1024
_CLOSED_KEPT: Final = 4
_LINES_SHOWN: Final = 20

_open: weakref.WeakSet[BrokerJournal] = weakref.WeakSet()
_closed: deque[BrokerJournal] = deque(maxlen=_CLOSED_KEPT)


class JournalForgot(UserWarning):
    """The journal was asked about a time of which it has forgotten a part."""


def recent_journals() -> list[BrokerJournal]:
    """Return the journals of the clusters that are open, and of the last few that were closed."""
    return [*_closed, *(each for each in _open if each not in _closed)]


def forget_closed() -> None:
    """Let go of the journals of closed clusters."""
    _closed.clear()


class BrokerJournal:
    """The journal of a cluster: what its clients have asked, what they were answered, and what came of it.

    name: of the cluster. size: True for 16 MiB for each broker, or so many bytes; False for no journal. in_loop: runs a
    function in the thread of an open cluster.
    """

    def __init__(self, name: str, size: int | bool, in_loop: Callable[[Callable[[], None]], None]) -> None:
        self.name: Final = name
        self._size = _size_of(size)
        self._in_loop = in_loop
        self._numbers = count(1)
        self._journals: list[Journal] = []

    # ---- for the cluster

    def begin(self) -> None:
        """Begin anew: the cluster is opened."""
        self._journals = []
        self._numbers = count(1)
        if self._size:
            _open.add(self)

    def end(self) -> None:
        """Keep what there is: the cluster is closed."""
        for each in self._journals:
            each.detach()
        if self in _open:
            _open.discard(self)
            _closed.append(self)

    def of_node(self, node_id: int) -> Journal | None:
        """Return a journal for one more node; None where there is none."""
        if not self._size:
            return None
        made = journal.Journal(time.time_ns, self._size, node_id=node_id, numbers=self._numbers)
        self._journals.append(made)
        return made

    # ---- for tests

    @property
    def position(self) -> int:
        """The number of the latest entry: a mark for `since`."""
        return max((each.last_number for each in self._kept()), default=0)

    @property
    def forgotten(self) -> int:
        """The number of entries, the oldest, that are not kept any more since it was cleared."""
        return sum(each.forgotten for each in self._kept())

    def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        error: str | None = None,
        since: int = 0,
    ) -> list[RecordedRequest]:
        """Return the requests that fit all that is given, the oldest first. Raises UnknownApi, UnknownError, NoJournal.

        api: Kafka's name of it, such as `Produce`. topic: the request or its response names it; in this and in the
        client id `*` and `?` stand for others. error: the response has this error code, such as `NOT_COORDINATOR`;
        `NONE` is an answer without any. since: behind this position.
        Warns with JournalForgot where a part of what was asked about is forgotten.
        """
        journals = self._kept()
        found = list(query.select(journals, query.Wanted.of(api, client_id, topic, error), since))
        self._warn(since)
        return found

    def events(self, since: int = 0) -> list[dict[str, Any]]:
        """Return what coordinators did and why, such as rebalances."""
        entries = query.entries_of(self._kept(), since)
        return [decoding.event_values(entry) for entry, _ in entries if isinstance(entry, exchange.Event)]

    def json_lines(self, path: str | Path, since: int = 0) -> Path:
        """Write the journal as JSON lines, which `read_journal` reads, and return the file."""
        path = Path(path)
        journals = self._kept()
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json_lines.json_lines(journals, since))
        return path

    def pcap(self, path: str | Path, since: int = 0) -> Path:
        """Write the requests and responses as a capture file, which Wireshark reads, and return the file."""
        path = Path(path)
        entries = query.entries_of(self._kept(), since)
        with path.open("wb") as file:
            file.writelines(pcap.pcap(entry for entry, _ in entries if isinstance(entry, exchange.Exchange)))
        return path

    def clear(self) -> None:
        """Forget everything so far."""
        journals = self._kept()

        def clear() -> None:
            for each in journals:
                each.clear()

        self._in_loop(clear)

    def last_lines(self, since: int = 0, most: int = _LINES_SHOWN) -> list[str]:
        """Return the last entries, each in a short line."""
        entries = query.entries_of(self._kept(), since)[-most:]
        return [query.short_line(entry, each.topic_names) for entry, each in entries]

    def __iter__(self) -> Iterator[RecordedRequest]:
        return iter(self.requests())

    def _kept(self) -> Sequence[Journal]:
        if not self._size:
            raise NoJournal(f"{self.name} was made without a journal: leave out `journal=False`")
        return self._journals

    def _warn(self, since: int) -> None:
        forgotten = query.forgotten(self._journals, since)
        if forgotten:
            message = (
                f"{forgotten} entries of the journal are forgotten, of which some may be meant: "
                f"ask `since` a later position, or give it more than {self._size} bytes, `journal=…`"
            )
            warnings.warn(message, JournalForgot, stacklevel=4)


class AsyncBrokerJournal:
    """`BrokerJournal` for coroutines."""

    def __init__(self, blocking: BrokerJournal) -> None:
        self._blocking = blocking

    @property
    def position(self) -> int:
        """The number of the latest entry: a mark for `since`."""
        return self._blocking.position

    @property
    def forgotten(self) -> int:
        """The number of entries, the oldest, that are not kept any more since it was cleared."""
        return self._blocking.forgotten

    async def requests(
        self,
        api: str | None = None,
        *,
        client_id: str | None = None,
        topic: str | None = None,
        error: str | None = None,
        since: int = 0,
    ) -> list[RecordedRequest]:
        ask = partial(self._blocking.requests, api, client_id=client_id, topic=topic, error=error, since=since)
        return await in_thread(ask)

    async def events(self, since: int = 0) -> list[dict[str, Any]]:
        return await in_thread(partial(self._blocking.events, since))

    async def json_lines(self, path: str | Path, since: int = 0) -> Path:
        return await in_thread(partial(self._blocking.json_lines, path, since))

    async def pcap(self, path: str | Path, since: int = 0) -> Path:
        return await in_thread(partial(self._blocking.pcap, path, since))

    async def clear(self) -> None:
        await in_thread(self._blocking.clear)

    async def __aiter__(self) -> AsyncIterator[RecordedRequest]:
        for request in await self.requests():
            yield request


def _size_of(size: int | bool) -> int:
    """Return the bound in bytes; 0 for no journal. Raises ValueError."""
    if size is True:
        return DEFAULT_BYTES
    if not size:
        return 0
    if not isinstance(size, int) or size < LEAST_BYTES:
        raise ValueError(f"journal={size!r}: a number of bytes, {LEAST_BYTES} or more, or False")
    return size
