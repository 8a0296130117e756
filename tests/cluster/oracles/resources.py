"""What nodes hold when clients have left and all is quiet: as much as right after a start, or what is explained.

- Census: the lengths of all containers that the parts of a node reach, by class and attribute. One that is much longer
  than after a clean start grows with what clients did.
- Pending: what is asked for and not yet answered; nothing of it is left.
- Connections: none is kept whose peer is known to have left; each task that serves one has its connection.
- Memory: no bytes of requests or answers are lent.
- Files: a file is open once, and a removed one is not open.
"""

from __future__ import annotations

import gc
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch
from weakref import WeakKeyDictionary

import trio

from pykbroker.server.network.node_connections import NodeConnections
from pykbroker.sim.process_disk import ProcessDisk, ProcessFile
from pykbroker.sim.threads import beside_the_loop
from tests.replication.simulation.invariants import ensure

from .lives import Life, Lives

_CONTAINERS = (dict, list, set, frozenset, tuple, deque)
_GROWING = (dict, list, set, deque)
_NOT_COUNTED = ("pykbroker.protocol.", "pykbroker.config", "pykbroker.sim.", "pykbroker.metadata.image")
"""Messages, settings, the simulated world, and images, which are compared as wholes."""

PENDING = frozenset(
    (
        "AutoTopicCreation._pending",
        "AutoTopicCreation._requests",
        "ControllerDriver._waiting",
        "DeferredEventQueue._events",
        "FetchWaits._waiting",
        "IsrChanges._pending",
        "LedShard._waiting",
        "LogFlushes._running",
        "LogFlushes._wanted",
        "LogMoves._moves",
        "LogTruncations._under_way",
        "TransactionMarkers._asked",
        "TransactionMarkers._unsettled",
    )
)
EXPLAINED = frozenset(
    (
        "LogSegments.recent",  # where the last 256 batches of a log are
        "ProducerEntry.batches",  # its last five
        "RegularExpressions._changes",  # names of the last topics that have changed, MAX_CHANGES at most
        "Connection.versions",  # of each connection to another node: one for each purpose, made when it is needed
        "RememberedAnswers._apis",  # a megabyte of answers at most, until what they are made of changes
        "_Api.answers",
        "EncodedTopicsOfNode._kept",
        "EncodedTopics._topics",
        "EncodedTopics._brokers",
        "_EncodedTopic.indexes",  # Metadata answers, as long as the image has their topics
        "_EncodedTopic.parts",
        "_EncodedTopic.portions",
        "_EncodedTopic.states",
        "FetchSessionCache._by_id",  # with those of fetchers that are gone: `max.incremental.fetch.session.cache.slots`
        "FetchSession.cached",
        "_Sessions._watches",
        "SessionWatch._changed",
        "SessionWatch._ended",
        "SessionWatch._unsettled",
        "Watching._keys",
        "Watching._partitions",
        "Deletion.paths",  # files of deleted topics, until `log.segment.delete.delay.ms` are over
        "HostedLogs.deletions",
        "LogSegments._rolled",  # segments of logs that were recovered, and snapshots, until they are flushed
        "ProducerStateManager._unsynced",
        "VerifiedExtents._ends",  # of segments that a start has trusted and readers have read in part; at most one for
        "VerifiedExtents._starts",  # two entries of their offset index, none when all is checked
        "VoterSet._by_id",  # of each change of the voters since the start
        "VoterSetHistory._sets",
        "DirectoryCheckpoints._lowered",  # of each log that was truncated since the start, as long as it is there
        "EpochChain._starts",  # epochs of the metadata log, until a snapshot covers them
        "PartitionIndex._known",  # of each controller that was active once, as large as its image
        "NodeConnections._open",  # of each other node, one for each purpose; so many at most, says `check_connections`
        "NodeConnections._connecting",
        "CauseHistory._by_key",  # the last steps of groups and transactional ids, MOST_KEYS of them
        "_Lately.rebalances",
        "_Lately.transitions",
        "RequestMetrics.by_api",  # of each API that was asked for since the start, in each version of it
        "ApiMetrics.versions",
        "ApiMetrics.errors",  # by code
        "Histogram.counts",
        "Listener._connections",  # of other nodes, as above; of clients that have left none, says `check_connections`
    )
)
"""Caches with a bound, which a start empties."""

BYTES_OF_REQUEST = 64 * 1024
"""A connection whose request waits keeps the buffer that it begins with."""

MOST_TO_OTHERS = 12
"""Of one kind of client, to the two other nodes: six purposes of one broker to another are the most."""

_RESTS_WITHIN_S = 2.0
_LOOK_EVERY_S = 0.03

_FACTOR, _SLACK = 2, 24
"""A container may be so much longer than after a clean start: what a few clients and faults leave until it is due."""


@beside_the_loop()
def census(root: object) -> Counter[str]:
    """The lengths of what is reached from the attributes of product classes, by `Class.attribute`."""
    counts: Counter[str] = Counter()
    for each in _reached(root):
        kind = type(each).__name__
        for name, value in _attributes(each):
            if isinstance(value, _GROWING):
                counts[f"{kind}.{name}"] += len(value)
    return counts


def _reached(root: object) -> Iterator[object]:
    """Each object once, containers left out."""
    seen: set[int] = set()
    left: list[object] = [root]
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, _CONTAINERS):
            left += filter(_is_counted, _elements(each))
            continue
        yield each
        left += [value for _, value in _attributes(each) if _is_counted(value)]


def _is_counted(value: object) -> bool:
    if isinstance(value, _CONTAINERS):
        return bool(value)
    module = type(value).__module__
    return module.startswith("pykbroker.") and not module.startswith(_NOT_COUNTED)


def _elements(container: Any) -> Iterable[object]:
    return [*container, *container.values()] if isinstance(container, dict) else container


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield name, getattr(value, name)


class OpenFiles:
    """The files that each process has open, by the disk that it sees.

    A file of which nobody knows any more is closed, as a real one is.
    """

    def __init__(self) -> None:
        self._paths: WeakKeyDictionary[ProcessDisk, WeakKeyDictionary[ProcessFile, str]] = WeakKeyDictionary()

    @contextmanager
    def watching(self) -> Iterator[None]:
        open_file, close_file, rename = ProcessDisk.open, ProcessFile.close, ProcessDisk.rename

        def open_and_tell(disk: ProcessDisk, path: str, *, create: bool = False) -> ProcessFile:
            file = open_file(disk, path, create=create)
            self._paths.setdefault(disk, WeakKeyDictionary())[file] = path
            return file

        def close_and_tell(file: ProcessFile) -> None:
            close_file(file)
            if file._process in self._paths:
                self._paths[file._process].pop(file, None)

        def rename_and_tell(disk: ProcessDisk, source: str, target: str) -> None:
            rename(disk, source, target)
            self._renamed(disk, source, target)

        with (
            patch.object(ProcessDisk, "open", open_and_tell),
            patch.object(ProcessFile, "close", close_and_tell),
            patch.object(ProcessDisk, "rename", rename_and_tell),
        ):
            yield

    def _renamed(self, disk: ProcessDisk, source: str, target: str) -> None:
        """A file, or a directory with the files in it."""
        paths = self._paths.get(disk, WeakKeyDictionary())
        for file, path in list(paths.items()):
            if path == source or path.startswith(f"{source}/"):
                paths[file] = target + path.removeprefix(source)

    def of(self, disk: ProcessDisk) -> Counter[str]:
        return Counter(self._paths[disk].values())


class Resources:
    """What the nodes hold together at one quiet moment: who leads and who follows may be another one later."""

    def __init__(self, lives: Lives) -> None:
        self.counts: Counter[str] = Counter()
        for life in lives.values():
            self.counts += census(life.parts)

    def compare(self, fresh: Resources) -> None:
        """fresh: right after a clean start of the same nodes."""
        grown = [
            f"{name} has {count}, after a start {fresh.counts[name]}"
            for name, count in sorted(self.counts.items())
            if name not in EXPLAINED and count > _FACTOR * fresh.counts[name] + _SLACK
        ]
        ensure(not grown, "Census", *grown)

    @property
    def pending(self) -> dict[str, int]:
        return {name: count for name, count in self.counts.items() if name in PENDING and count}


async def resources_at_rest(lives: Lives) -> Resources:
    """At a moment at which nothing is pending: a record that says nothing may be on its way now and then."""
    give_up_s = trio.current_time() + _RESTS_WITHIN_S
    while (resources := Resources(lives)).pending:
        ensure(trio.current_time() < give_up_s, "Pending", resources.pending)
        await trio.sleep(_LOOK_EVERY_S)
    return resources


@beside_the_loop()
def check_connections(life: Life) -> None:
    for each in _reached(life.parts):
        if isinstance(each, NodeConnections):
            ensure(len(each._open) <= MOST_TO_OTHERS, "Connections", f"node {life.node_id} has", *each._open)
    for listener in (*life.parts.controller_listeners, *life.parts.client_listeners):
        left = [each for each in listener._connections if each._transport.has_peer_left()]
        what = f"node {life.node_id}, listener {listener.name}"
        ensure(not left, "Connections", what, f"serves {len(left)} whose peers have left")
        memory = listener._memory
        bytes_held = {"of requests": memory.request_bytes, "of answers": memory.answer_bytes}
        ensure(not memory.answer_bytes, "Memory", what, bytes_held)
        ensure(memory.request_bytes <= BYTES_OF_REQUEST * listener.connection_count, "Memory", what, bytes_held)


@beside_the_loop()
def check_files(node_id: int, disk: ProcessDisk, files: OpenFiles) -> None:
    paths = files.of(disk)
    if any(count > 1 or not disk.exists(path) for path, count in paths.items()):
        gc.collect()  # runs collect seldom, and what was open may know of itself
        paths = files.of(disk)
    several = {path: count for path, count in paths.items() if count > 1}
    ensure(not several, "Files", "node", node_id, "has open several times:", several)
    removed = [path for path in paths if not disk.exists(path)]
    ensure(not removed, "Files", "node", node_id, "has open what it has removed:", removed)
