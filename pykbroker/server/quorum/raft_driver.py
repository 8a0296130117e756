"""The raft driver carries out what raft asks of a node: the election and the log on disk, requests and answers, and
time.

Raft is pure (`raft.node`); the driver gives it the metadata log, the network, a clock and threads. Kafka's counterpart
is `KafkaRaftClientDriver`. The rules are these:

- One task feeds raft: first the events that came in, in their order, then the time. What raft is ready for is carried
  out until it wants nothing more.
- Persist, then send. The election, a truncation, a piece of a snapshot and a follower's appends are on the disk before
  the responses and requests of the same `Ready` go out. Only then raft is told how much is durable (`advance`).
- A leader's batches are written by `propose` at once and go to followers while the disk works. Another task flushes;
  batches that arrive meanwhile share the next flush. What is not durable here does not count towards the high
  watermark.
- A lack of room has changed nothing: a proposal is refused, and what raft itself wants written is tried again every
  second, with proposals refused meanwhile. Any other failure of the disk ends the node.
- A request of a peer waits under a token until raft answers it. A caller that is cancelled withdraws its request.
- Watchers are called when role, epoch, leader, high watermark or majority have changed, and see them as they are at
  that moment.

Not handled here: who may append what (`controller_driver`), what committed records mean (`metadata_publisher`), and
connections (`raft_channel`).
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count

import trio

from pykbroker.protocol.messages.fetch import FetchResponse
from pykbroker.protocol.messages.quorum import FetchSnapshotResponse
from pykbroker.protocol.schema import Message
from pykbroker.raft.events import (
    Append,
    ControlRecords,
    Destination,
    Event,
    OutgoingRequest,
    OutgoingResponse,
    Ready,
    RequestReceived,
    RequestWithdrawn,
    SnapshotChunk,
    SnapshotInstalled,
)
from pykbroker.raft.leader_state import LeaderState
from pykbroker.raft.node import NotLeader, RaftNode
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.states import Role
from pykbroker.storage.files.errors import CorruptLog, DiskFailed, NoRoom

from ..logs.full_directories import FullDirectories
from ..logs.log_truncations import carry_out
from ..runtime.clock import Clock
from ..runtime.deferred_answer import DeferredAnswer
from ..runtime.signal import Signal
from ..runtime.startup_error import StartupError
from ..runtime.threads import Threads
from .encoded_records import EncodedRecords
from .metadata_log import MetadataBatch, MetadataLog, MetadataRecord
from .raft_channel import RaftChannel

logger = logging.getLogger(__name__)

_RESIGNATION_S = 1.0
"""At most so long until another one leads."""

_RETRY_MS = 1000
"""After a lack of room, where nobody waits for an answer."""


class RaftDriver:
    """The driver is this node's part in the metadata quorum, as a voter or as an observer."""

    def __init__(
        self,
        raft: RaftNode,
        log: MetadataLog,
        channel: RaftChannel,
        *,
        clock: Clock,
        threads: Threads,
        flush_threads: Threads | None = None,
        append_linger_ms: int = 0,
    ) -> None:
        """Drive `raft` from now on. flush_threads: for what is little, and durable when it is done; None for `threads`.
        append_linger_ms: how long a leader waits for more to be written before it flushes.
        """
        self._raft = raft
        self._log = log
        self._channel = channel
        self._clock = clock
        self._threads = threads
        self._flush_threads = flush_threads or threads
        self._append_linger_s = append_linger_ms / 1000
        self._first_high_watermark = raft.high_watermark
        self._watchers: list[Callable[[], None]] = []
        self._events: deque[Event] = deque()
        self._proposed: deque[MetadataBatch] = deque()
        """What this node appended as the leader and nobody has taken yet as committed."""
        self._answers: dict[int, DeferredAnswer[Message]] = {}
        """By the token of a request that somebody waits for the quorum's answer to."""
        self._next_token = 0
        self._told: object = None
        self._work = Signal()
        self._wants_flush = Signal()
        self._flushing = trio.Lock()
        self._durable_end_offset = log.end_offset
        self.full = FullDirectories(clock)
        """The metadata log's directory, where it has no room."""
        self._refusal: NoRoom | None = None
        """Of what raft itself wants written, as long as there is no room for it."""
        self._wants_to_resign = False
        self._changed = Signal()
        self._failure: DiskFailed | StartupError | None = None
        channel.on_foreign = self._found_foreign_peer

    @property
    def metadata_log(self) -> MetadataLog:
        return self._log

    @property
    def node_id(self) -> int:
        return self._raft.node_id

    @property
    def role(self) -> Role:
        return self._raft.role

    @property
    def leader_id(self) -> int | None:
        return self._raft.leader_id

    @property
    def leader_endpoint(self) -> Destination | None:
        """The leader's controller listener; None where nobody leads that this node knows."""
        return self._raft.leader_endpoint

    @property
    def has_peers(self) -> bool:
        """Tell whether anybody follows this node, the leader."""
        leader = self._raft.leader_state
        return leader is not None and (len(leader.voters) > 1 or bool(leader.observers))

    @property
    def epoch(self) -> int:
        return self._raft.epoch

    @property
    def high_watermark(self) -> int:
        """The offset behind the last record that is known to be committed."""
        return self._raft.high_watermark

    @property
    def knows_high_watermark(self) -> bool:
        """Tell whether a leader said since the start what is committed; until then it is what the latest snapshot
        covers.
        """
        return self.leads or self._raft.high_watermark != self._first_high_watermark

    @property
    def log_end_offset(self) -> int:
        return self._raft.log_end_offset

    @property
    def epoch_start_offset(self) -> int:
        """The offset of this node's first record as the leader of the epoch."""
        return self._raft.epoch_start_offset

    @property
    def leads(self) -> bool:
        """Tell whether this node leads, and everything is committed that earlier leaders left in its log."""
        return self._raft.role is Role.LEADER and self._raft.high_watermark > self._raft.epoch_start_offset

    @property
    def kraft_version(self) -> int:
        """1 where the voters are in the log, with their directories (KIP-853)."""
        return self._raft.kraft_version

    @property
    def leader_state(self) -> LeaderState | None:
        """The leader's state tells how far the others are; None where another node leads."""
        return self._raft.leader_state

    async def leave(self) -> None:
        """Let the others know before a clean shutdown that this leader goes: they need not wait for
        its silence then.
        """
        if self._raft.role is Role.LEADER and self.has_peers:
            self._wants_to_resign = True
            self._work.set()
            with trio.move_on_after(_RESIGNATION_S):
                while self._raft.leader_id == self.node_id and self._raft.has_majority:
                    await self._changed.next()

    async def wait_until_alone(self) -> None:
        """Return when too few voters are there for a leader."""
        while self._raft.has_majority:
            await self._changed.next()

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` whenever something of the above may have changed. It must not wait."""
        self._watchers.append(watcher)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Take part until the surrounding scope is cancelled. Raises CorruptLog, FileError; StartupError where the
        quorum is that of another cluster.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._flush_when_wanted)
            task_status.started()
            while True:
                if self._failure is not None:
                    raise self._failure
                await self._take_a_turn(nursery)
                await self._wait_for_work()

    async def answer(self, request: Message, api_version: int, listener_name: str) -> Message:
        """The response to a peer's or an administrator's request to the quorum itself."""
        self._next_token += 1
        token = self._next_token
        answer = self._answers[token] = DeferredAnswer[Message]()
        try:
            self._feed(RequestReceived(token, request, api_version, listener_name))
            return await answer.wait()
        finally:
            del self._answers[token]
            if not answer.is_complete:
                self._feed(RequestWithdrawn(token))

    # The leader's appends

    def propose(self, records: EncodedRecords) -> int:
        """Append one atomic batch and return its first offset; it counts when it is committed.

        The log has the records before anybody acts on them, if only in the page cache: what it has no room for has not
        happened. Raises NotLeader, NoRoom; DiskFailed, after which `run` ends.
        """
        if self._raft.role is not Role.LEADER:
            raise NotLeader(self._raft.leader_id)
        if self._refusal is not None:
            raise self._refusal.with_traceback(None)  # raft's own records come first
        assert self._log.end_offset == self._raft.log_end_offset, "what was appended before is in the log"
        try:
            size_bytes = self._log.append_encoded(records, self._raft.epoch)
        except NoRoom as refusal:
            self.full.refused(self._log.directory, refusal)
            raise
        except DiskFailed as failure:
            self._failure = failure
            self._work.set()
            raise
        if self.full:
            self.full.written(self._log.directory)
        messages = records.messages
        base_offset = self._raft.propose(messages, len(messages)).base_offset
        proposed = map(MetadataRecord, count(base_offset), messages)
        self._proposed.append(MetadataBatch(base_offset, self._raft.log_end_offset, size_bytes, proposed))
        self._work.set()
        return base_offset

    # What is committed

    def committed(self, offset: int) -> Iterator[MetadataBatch]:
        """The batches from offset to the high watermark, each to be taken once and in this order.

        Raises CorruptLog, FileError.
        """
        while offset < self._raft.high_watermark:
            while self._proposed and self._proposed[0].base_offset < offset:
                self._proposed.popleft()
            if self._proposed and self._proposed[0].base_offset == offset:
                batch = self._proposed.popleft()
                offset = batch.next_offset
                yield batch
                continue
            end = self._proposed[0].base_offset if self._proposed else self._raft.high_watermark
            for batch in self._log.batches(offset, min(end, self._raft.high_watermark)):
                offset = batch.next_offset
                yield batch

    # The loop

    def _feed(self, event: Event) -> None:
        self._events.append(event)
        self._work.set()

    async def _wait_for_work(self) -> None:
        now_ms = self._clock.monotonic_ms()
        deadline_ms = self._raft.next_deadline_ms(now_ms)
        wait_s = math.inf if deadline_ms is None else max(deadline_ms - now_ms, 0) / 1000
        await self._work.wait(wait_s)

    async def _take_a_turn(self, nursery: trio.Nursery) -> None:
        """Feed raft what came in and what is due, and carry out what it wants then, until it wants nothing."""
        now_ms = self._clock.monotonic_ms()
        while self._events:
            self._raft.step(self._events.popleft(), now_ms)
        if self._wants_to_resign:
            self._wants_to_resign = False
            self._raft.resign()
        self._raft.tick(now_ms)
        await self._carry_out(self._raft.ready(), nursery)
        while ready := self._raft.ready():
            await self._carry_out(ready, nursery)

    async def _carry_out(self, ready: Ready, nursery: trio.Nursery) -> None:
        """Persists, then sends: raft's contract."""
        await self._persist(ready)
        for response in ready.responses:
            if response.read is not None:
                self._respond(response)
        if ready.appends:
            if self._raft.role is Role.LEADER:
                self._wants_flush.set()
            else:
                await self._flush()
        for request in ready.requests:
            nursery.start_soon(self._ask, request)
        for response in ready.responses:
            if response.read is None:
                self._respond(response)
        self._raft.advance(election=ready.election, durable_end_offset=self._durable_end_offset)
        self._tell()

    def _tell(self) -> None:
        raft = self._raft
        now = raft.role, raft.epoch, raft.leader_endpoint, raft.high_watermark, raft.has_majority
        if now != self._told:
            self._told = now
            for watcher in self._watchers:
                watcher()
            self._changed.set()

    async def _persist(self, ready: Ready) -> None:
        election = ready.election
        if election is not None:
            # As of when it was asked for: the voters may change while the disk works.
            store = partial(self._log.store_election, election, self._raft.voters.ids, self._raft.kraft_version)
            await self._when_there_is_room(store, in_thread=True)
        if ready.truncate_to is not None:
            await self._truncate(ready.truncate_to)
        if ready.snapshot_chunk is not None:
            await self._take_chunk(ready.snapshot_chunk)
        for append in ready.appends:
            await self._append(append)

    async def _append(self, append: Append) -> None:
        match append.payload:
            case ControlRecords(messages):
                write = partial(self._log.append_control_records, messages, append.epoch, self._clock.now_ms())
                await self._when_there_is_room(write)
            case bytes() | memoryview():
                await self._when_there_is_room(partial(self._log.append_batch, append.payload))
            case _:
                pass  # `propose` has written it

    async def _ask(self, request: OutgoingRequest) -> None:
        self._feed(await self._channel.ask(request))
        namesake = self._raft.namesake
        if namesake is not None:
            self._refuse(
                f"node.id={self.node_id} is taken: the leader of the quorum, at {namesake.host}:{namesake.port}, has it"
            )

    def _found_foreign_peer(self) -> None:
        refusal = self._channel.foreign.refusal(self._raft.quorum_destinations)
        if refusal is not None:
            self._refuse(refusal)

    def _refuse(self, why: str) -> None:
        """End the start; whoever has been in the quorum since belongs there."""
        if not self.knows_high_watermark:
            self._failure = StartupError(why)
            self._work.set()

    def _respond(self, outgoing: OutgoingResponse) -> None:
        answer = self._answers.get(outgoing.token)
        if answer is None:
            return  # who asked has gone
        response, read = outgoing.response, outgoing.read
        if read is not None:
            if isinstance(response, FetchResponse):
                response.responses[0].partitions[0].records = self._log.read_bytes(read.offset, read.max_bytes)
            elif isinstance(response, FetchSnapshotResponse):
                piece = response.topics[0].partitions[0]
                snapshot_id = SnapshotId(piece.snapshot_id.end_offset, piece.snapshot_id.epoch)
                piece.unaligned_records = self._log.snapshots.read_bytes(snapshot_id, read.offset, read.max_bytes)
        answer.complete(response)

    # Snapshots of a leader

    async def _take_chunk(self, chunk: SnapshotChunk) -> None:
        await self._when_there_is_room(partial(self._log.write_chunk, chunk), in_thread=True)
        if chunk.is_last:
            snapshot = await self._threads.run(self._log.complete_snapshot, chunk.snapshot_id)
            async with self._flushing:
                self._log.begin_behind(chunk.snapshot_id, snapshot, self._clock.now_ms())
                self._proposed.clear()
                self._durable_end_offset = self._log.end_offset
            path = self._log.snapshots.path(chunk.snapshot_id)
            logger.info("the metadata begins with the leader's snapshot %s", path)
            installed = SnapshotInstalled(chunk.snapshot_id, snapshot.quorum.messages())
            # Raft learns of it before it is told how much is durable.
            self._raft.step(installed, self._clock.monotonic_ms())

    # The disk

    async def _truncate(self, offset: int) -> None:
        while self._proposed and self._proposed[-1].next_offset > offset:
            self._proposed.pop()
        async with self._flushing:
            logger.info("the metadata log is truncated at offset %d, where the leader's differs", offset)
            truncation = self._log.begin_truncation(offset)
            if truncation is not None:
                await carry_out(truncation, self._threads)
            if self._log.end_offset != offset:
                raise CorruptLog(f"{self._log.directory}: no batch ends at {offset}, where the leader's log differs")
            self._durable_end_offset = min(self._durable_end_offset, offset)

    async def _flush_when_wanted(self) -> None:
        """Flush what the leader appends, while it goes to others at the same time."""
        while True:
            await self._wants_flush.wait()
            if self._append_linger_s:
                await trio.sleep(self._append_linger_s)
            self._wants_flush.clear()
            await self._flush()
            self._work.set()

    async def _flush(self) -> None:
        async with self._flushing:
            end_offset = self._log.end_offset
            if self._durable_end_offset < end_offset:
                await self._when_there_is_room(self._log.flush, in_thread=True)
                self._durable_end_offset = end_offset

    async def _when_there_is_room(self, step: Callable[[], object], *, in_thread: bool = False) -> None:
        """Try the step until it is not for lack of room that it fails. Raises DiskFailed."""
        while True:
            try:
                if in_thread:
                    await self._flush_threads.run(step)
                else:
                    step()
                self._refusal = None
                return
            except NoRoom as refusal:
                self._refusal = refusal
                self.full.refused(self._log.directory, refusal)
            await trio.sleep(_RETRY_MS / 1000)
