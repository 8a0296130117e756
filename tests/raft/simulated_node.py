"""A process with a member of a quorum in it: it carries out what raft asks, on a disk that forgets what is not flushed.

What a driver does in an order of its own is done here in the order of the contract, and takes its time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from pykbroker.protocol.messages.fetch import FetchResponse
from pykbroker.protocol.messages.quorum import FetchSnapshotResponse
from pykbroker.protocol.schema import Message
from pykbroker.raft.election_state import ElectionState
from pykbroker.raft.events import (
    ControlRecords,
    Event,
    OutgoingResponse,
    Ready,
    RequestReceived,
    SnapshotChunk,
    SnapshotInstalled,
)
from pykbroker.raft.node import RaftNode, Role
from pykbroker.raft.replica import LocalReplica
from pykbroker.raft.snapshots import SnapshotId
from pykbroker.raft.timeouts import Timeouts
from pykbroker.raft.voters import Endpoint, VoterSet

from .invariants import Invariants
from .memory_log import Batch, MemoryLog, MemorySnapshot, batch_of, batches_in, control_batch_of
from .simulated_world import World

TIMEOUTS = Timeouts(
    election_ms=200,
    election_backoff_max_ms=200,
    fetch_ms=400,
    request_ms=300,
    retry_backoff_ms=20,
    reconnect_backoff_ms=10,
    reconnect_backoff_max_ms=100,
)
"""A fifth of Kafka's, so that more happens in a run."""


def directory_of(node_id: int, count: int = 0) -> bytes:
    return (node_id + 1000 * (count + 1)).to_bytes(16, "big")


class SimulatedNode:
    def __init__(self, world: World, invariants: Invariants, replica: LocalReplica, voters: VoterSet) -> None:
        self.world = world
        self.invariants = invariants
        self.replica = replica
        self.configured = voters
        self.bootstrap: list[Endpoint] = []
        self.log = MemoryLog()
        self.election = self._election_of_ready = ElectionState(0)
        self.is_up = False
        self.is_paused = False
        self.life = 0
        self.raft: RaftNode | None = None
        self.clock_rate = world.rng.uniform(0.95, 1.05)
        self.clock_offset_ms = world.rng.uniform(0, 10_000)
        self.flush_ms = 4.0
        self.timeouts = TIMEOUTS
        self.flushes = True
        """Planted bugs switch off what must be durable before it is told."""
        self.stores_elections = True
        self.waits_for_flush = True
        self.change_raft: Callable[[RaftNode], None] | None = None
        self._rng = Random(world.rng.random())
        self._answers: dict[int, Callable[[Message], None]] = {}
        self._last_token = 0
        self._is_carrying_out = False
        self._later: list[Callable[[], None]] = []
        self._alarm_ms: float | None = None
        self._directories = 0
        self._partial: dict[SnapshotId, bytes] = {}

    @property
    def node_id(self) -> int:
        return self.replica.node_id

    @property
    def now_ms(self) -> int:
        return int(self.world.now_ms * self.clock_rate + self.clock_offset_ms)

    # Life and death

    def start(self) -> None:
        assert not self.is_up
        self.is_up, self.is_paused = True, False
        self.life += 1
        self.raft = RaftNode(
            self.replica,
            self.configured,
            self.election,
            self.log,
            rng=Random(self._rng.random()),
            timeouts=self.timeouts,
            bootstrap=self.bootstrap,
        )
        if self.change_raft is not None:
            self.change_raft(self.raft)
        self._answers.clear()
        self._later.clear()
        self._partial.clear()
        self._alarm_ms = None
        self._is_carrying_out = False
        self.invariants.started(self)
        self._go_on()

    def crash(self) -> None:
        """What was not flushed may be gone."""
        self.is_up = False
        self.life += 1
        self.raft = None
        end_offset = self.log.end_offset
        self.log.crash(self._rng.randint(self.log.durable_end_offset, max(end_offset, self.log.durable_end_offset)))
        if self.log.end_offset < end_offset:
            self.world.seen["unflushed records lost"] += 1

    def lose_disk(self) -> None:
        """It comes back with an empty directory, as another replica."""
        if self.is_up:
            self.crash()
        self._directories += 1
        self.replica = replace(self.replica, directory_id=directory_of(self.node_id, self._directories))
        self.log, self.election = MemoryLog(), ElectionState(0)
        self.configured = VoterSet.unknown()

    def resume(self) -> None:
        self.is_paused = False
        waiting, self._later = self._later, []
        for what in waiting:
            what()
        self._go_on()

    # What comes in

    def receive(self, request: Message, version: int, answer: Callable[[Message], None]) -> None:
        if self.is_up and isinstance(request, ApiVersionsRequest):
            kraft = SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            answer(ApiVersionsResponse(supported_features=[kraft]))
        elif self.is_up:
            self._last_token += 1
            self._answers[self._last_token] = answer
            self.step(self.life, RequestReceived(self._last_token, request, version))

    def step(self, life: int, event: Event) -> None:
        if life != self.life or self.raft is None:
            return
        if self.is_paused:
            self._later.append(lambda: self.step(life, event))
            return
        self.raft.step(event, self.now_ms)
        self._go_on()

    def propose(self, value: str) -> bool:
        """As its controller does: what is proposed is in the log at once."""
        if self.raft is None or self.is_paused or self.raft.role is not Role.LEADER or self._has_appends:
            return False
        base_offset = self.raft.log_end_offset
        self.log.append([batch_of([value], base_offset, self.raft.epoch)])
        self.raft.propose(value, 1)
        self.invariants.proposed(self, base_offset, value)
        self._go_on()
        return True

    @property
    def _has_appends(self) -> bool:
        """Raft's own records are still on the way into the log."""
        assert self.raft is not None
        return self.log.end_offset != self.raft.log_end_offset

    # Carrying out

    def _go_on(self) -> None:
        raft = self.raft
        assert raft is not None
        self.invariants.check(self)
        if self._is_carrying_out:
            return
        ready, self._election_of_ready = raft.ready(), raft.election
        if not ready and self.log.durable_end_offset == self.log.end_offset:
            deadline_ms = raft.next_deadline_ms(self.now_ms)
            if deadline_ms is None or deadline_ms > self.now_ms:
                self._set_alarm(deadline_ms)
                return
            raft.tick(self.now_ms)
        self._carry_out(ready)

    def _set_alarm(self, deadline_ms: int | None) -> None:
        if deadline_ms is None:
            return
        life, wait_ms = self.life, max(1.0, (deadline_ms - self.now_ms) / self.clock_rate)
        if self._alarm_ms is not None and self.world.now_ms < self._alarm_ms <= self.world.now_ms + wait_ms:
            return
        alarm_ms = self._alarm_ms = self.world.now_ms + wait_ms

        def ring() -> None:
            if life == self.life and not self.is_paused and self.raft is not None and alarm_ms == self._alarm_ms:
                self._alarm_ms = None
                self._go_on()

        self.world.at(wait_ms, ring)

    def _carry_out(self, ready: Ready) -> None:
        raft = self.raft
        assert raft is not None
        if ready.election is not None and self.stores_elections:
            self.election = ready.election
        if ready.truncate_to is not None:
            self.invariants.truncated(self, ready.truncate_to)
            self.world.seen["truncations"] += self.log.end_offset > ready.truncate_to
            self.log.truncate(ready.truncate_to)
        if ready.snapshot_chunk is not None:
            self._take_chunk(ready.snapshot_chunk)
        for append in ready.appends:
            if isinstance(append.payload, ControlRecords):
                self.log.append([control_batch_of(append.payload.messages, append.base_offset, append.epoch)])
            elif isinstance(append.payload, bytes):
                self.log.append(batches_in(append.payload))
        for response in ready.responses:
            if response.read is not None:
                self._respond(response)
        end_offset, life = self.log.end_offset, self.life
        if end_offset == self.log.durable_end_offset:
            self._finish(ready, end_offset)
            return
        self._is_carrying_out = True
        if not self.waits_for_flush:
            self._send(ready)
            ready = Ready(ready.election, ready.truncate_to, ready.snapshot_chunk, ready.appends)
        self.world.at(self.world.rng.random() * self.flush_ms, lambda: self._flushed(life, ready, end_offset))

    def _flushed(self, life: int, ready: Ready, end_offset: int) -> None:
        if life != self.life:
            return
        if self.is_paused:
            self._later.append(lambda: self._flushed(life, ready, end_offset))
            return
        self._is_carrying_out = False
        if self.flushes:
            self.log.flush(end_offset)
        self._finish(ready, end_offset)

    def _finish(self, ready: Ready, end_offset: int) -> None:
        raft = self.raft
        assert raft is not None
        self._send(ready)
        chunk = ready.snapshot_chunk
        if chunk is not None and chunk.is_last:
            raft.step(SnapshotInstalled(chunk.snapshot_id, self.log.snapshots[chunk.snapshot_id].control), self.now_ms)
        raft.advance(election=ready.election, durable_end_offset=end_offset)
        self._go_on()

    def _send(self, ready: Ready) -> None:
        if ready.requests:
            self.invariants.told(self, self._election_of_ready)
        for request in ready.requests:
            self.world.send(self, request)
        for response in ready.responses:
            if response.read is None:
                self._respond(response)

    def _respond(self, outgoing: OutgoingResponse) -> None:
        response, read = outgoing.response, outgoing.read
        if read is not None and isinstance(response, FetchResponse):
            response.responses[0].partitions[0].records = self.log.read(read.offset, read.max_bytes)
        elif read is not None and isinstance(response, FetchSnapshotResponse):
            piece = response.topics[0].partitions[0]
            snapshot = self.log.snapshots.get(SnapshotId(piece.snapshot_id.end_offset, piece.snapshot_id.epoch))
            if snapshot is None:
                piece.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
            else:
                piece.unaligned_records = snapshot.data[read.offset : read.offset + read.max_bytes]
        self.invariants.told(self, self._election_of_ready)
        self._answers.pop(outgoing.token)(response)

    # Snapshots

    def take_snapshot(self) -> None:
        """Of what is committed, and the log in front of it goes."""
        raft = self.raft
        if raft is None or self.is_paused or raft.high_watermark <= self.log.start_offset or self._is_carrying_out:
            return
        covered = [batch for batch in self.log.batches if batch.next_offset <= raft.high_watermark]
        if not covered:
            return
        last: Batch = covered[-1]
        snapshot_id = SnapshotId(last.next_offset, last.epoch)
        latest = self.log.latest_snapshot_id
        before = self.log.snapshots[latest] if latest is not None else MemorySnapshot((), (), b"")
        entries = before.entries[: self.log.start_offset] + tuple(
            self.log.entries(self.log.start_offset, last.next_offset)
        )
        control = self.invariants.control_records(self, last.next_offset)
        data = bytes(str(snapshot_id), "ascii") * 40
        snapshot = MemorySnapshot(entries, control, data)
        self.log.snapshots[snapshot_id] = self.invariants.snapshot_taken(self, snapshot_id, snapshot)
        self.log.let_go(snapshot_id)
        self.world.seen["snapshots taken"] += 1

    def _take_chunk(self, chunk: SnapshotChunk) -> None:
        data = (self._partial.get(chunk.snapshot_id, b"") if chunk.position else b"") + chunk.data
        assert len(data) == chunk.position + len(chunk.data)
        self._partial[chunk.snapshot_id] = data
        if chunk.is_last:
            whole = self.invariants.snapshots[chunk.snapshot_id]
            assert data == whole.data, "pieces of a snapshot are put together wrongly"
            self.log.snapshots[chunk.snapshot_id] = whole
            self.log.begin_at(chunk.snapshot_id)
            self.world.seen["snapshots fetched"] += 1
