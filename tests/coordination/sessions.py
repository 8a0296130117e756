"""A reader of many partitions with one fetch session at each broker: neither says again what it said (KIP-227)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from pykbroker.server.network.transport import Address

from .partitions import EARLIEST, FETCH_VERSION, Fetched, OutOfRange, fetched, list_offsets
from .reading import isolation_name
from .stage import Lost, Stage, Wire, topic_of

_OVER = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@dataclass(slots=True)
class _Session:
    """What one broker knows: for each partition the offset to read from and the leader's epoch."""

    session_id: int = 0
    epoch: int = 0
    known: dict[str, tuple[int, int]] = field(default_factory=dict)

    def request(self, wanted: dict[str, tuple[int, int]], *, is_committed: bool) -> FetchRequest:
        if self.epoch == 0:
            self.known = {}
        request = FetchRequest(
            max_wait_ms=20,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=int(is_committed),
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=_topics({key: place for key, place in wanted.items() if self.known.get(key) != place}),
        )
        for key in self.known.keys() - wanted.keys():
            name, index = topic_of(key)
            request.forgotten_topics_data.append(ForgottenTopic(topic=name, partitions=[index]))
        self.known = wanted
        return request

    def answered(self, session_id: int) -> None:
        """No session where the broker has no room for one."""
        self.session_id = session_id
        self.epoch = self.epoch + 1 if session_id else 0


def _topics(places: dict[str, tuple[int, int]]) -> list[FetchTopic]:
    topics: dict[str, FetchTopic] = {}
    for key, (offset, epoch) in places.items():
        name, index = topic_of(key)
        partition = FetchPartition(
            partition=index, fetch_offset=offset, current_leader_epoch=epoch, partition_max_bytes=1 << 20
        )
        topics.setdefault(name, FetchTopic(topic=name)).partitions.append(partition)
    return list(topics.values())


async def read_in_sessions(stage: Stage) -> None:
    """All partitions from the beginning on; now and then another reader takes its place."""
    while not stage.is_quiet:
        reader = _Reader(stage, is_committed=stage.rng.random() < 0.5)
        while not stage.is_quiet and not stage.chance(0.03):
            await stage.pause(80)
            await reader.poll()
        reader.wire.cut()


class _Reader:
    def __init__(self, stage: Stage, *, is_committed: bool) -> None:
        self._stage = stage
        self._is_committed = is_committed
        self.wire = Wire(stage, "reader")
        self._proc = stage.recorder.new_process()
        stage.recorder.tell(self._proc, "assign")
        self._positions = dict.fromkeys(stage.keys, 0)
        self._sessions: dict[Address, _Session] = {}

    async def poll(self) -> None:
        recording = self._stage.recorder.invoke(self._proc, "poll")
        recording.note(isolation=isolation_name(is_committed=self._is_committed))
        found: dict[str, Fetched] = {}
        try:
            for address, wanted in (await self.wire.attempt(self._by_leader)).items():
                found |= await self._ask(address, wanted)
        except Lost:
            self._stage.forget_leaders()
        recording.polled({key: each.records for key, each in found.items()})
        recording.note(start={key: each.marks["start"] for key, each in found.items() if "start" in each.marks})
        recording.ok()
        self._positions.update((key, each.next_offset) for key, each in found.items())

    async def _by_leader(self) -> dict[Address, dict[str, tuple[int, int]]]:
        """Whoever has a session is told too of what it does not lead any more."""
        wanted: dict[Address, dict[str, tuple[int, int]]] = {address: {} for address in self._sessions}
        for key, position in self._positions.items():
            address, epoch = await self._stage.leader_of(self.wire, key)
            wanted.setdefault(address, {})[key] = position, epoch
        return wanted

    async def _ask(self, address: Address, wanted: dict[str, tuple[int, int]]) -> dict[str, Fetched]:
        session = self._sessions.setdefault(address, _Session())
        request = session.request(wanted, is_committed=self._is_committed)
        try:
            response = await self.wire.attempt(partial(self.wire.ask_at, address, request, FETCH_VERSION))
        except Lost:
            del self._sessions[address]
            return {}
        if response.error_code:
            assert response.error_code in _OVER, ErrorCode(response.error_code)
            del self._sessions[address]
            return {}
        session.answered(response.session_id)
        return await self._look_into(response, wanted)

    async def _look_into(self, response: Any, wanted: dict[str, tuple[int, int]]) -> dict[str, Fetched]:
        found: dict[str, Fetched] = {}
        for topic in response.responses:
            for data in topic.partitions:
                key = f"{topic.topic}-{data.partition_index}"
                assert key in wanted, f"{key} is not in the session"
                try:
                    found[key] = fetched(data, key, wanted[key][0])
                except Lost:
                    self._stage.forget_leaders()
                except OutOfRange:
                    await self._begin_again(key)
        return found

    async def _begin_again(self, key: str) -> None:
        try:
            self._positions |= await list_offsets(self.wire, [key], EARLIEST, is_committed=False)
        except Lost:
            pass
