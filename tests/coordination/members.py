"""Members of a classic group: they join, share partitions, commit, leave, and die without a word."""

from __future__ import annotations

from pykbroker.client.consumer_protocol import decode_assignment, encode_assignment, encode_subscription
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from pykbroker.protocol.topic_partition import TopicPartition

from .group_offsets import commit
from .stage import ORDERS, RETRIABLE, Gone, Lost, Stage, Wire, topic_of

CLASSIC_GROUP = "classic"
_SESSION_MS, _REBALANCE_MS = 1_500, 2_000


async def live_in_a_classic_group(stage: Stage) -> None:
    """One member after another, each a process of its own."""
    while not stage.is_quiet:
        member = _ClassicMember(stage)
        try:
            await member.live()
        except Gone:
            pass
        await stage.pause(300)


class _ClassicMember:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._proc = stage.recorder.new_process()
        self._wire = Wire(stage, "member")
        self._member_id = ""
        self._generation = -1
        self._keys: list[str] = []

    async def live(self) -> None:
        """Raises Gone when it dies."""
        while not self._stage.is_quiet:
            if not await self._join():
                await self._stage.pause(100)
                continue
            while not self._stage.is_quiet and await self._work():
                await self._stage.pause(150)
        await self._leave()

    async def _ask(self, request: object, version: int, timeout_s: float = 3.0) -> object | None:
        """The answer, or None. Raises Gone when it dies."""
        if self._stage.chance(0.02):
            self._wire.cut()
            raise Gone
        try:
            return await self._wire.ask(request, version, timeout_s=timeout_s)  # type: ignore[arg-type]
        except Lost:
            await self._stage.pause(50)
            return None

    async def _join(self) -> bool:
        request = JoinGroupRequest(
            group_id=CLASSIC_GROUP,
            member_id=self._member_id,
            session_timeout_ms=_SESSION_MS,
            rebalance_timeout_ms=_REBALANCE_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=encode_subscription(["orders"]))],
        )
        joined = await self._ask(request, 7, timeout_s=6.0)
        if joined is None:
            return False
        code = ErrorCode(joined.error_code)  # type: ignore[attr-defined]
        if code is not ErrorCode.NONE:
            if code is ErrorCode.UNKNOWN_MEMBER_ID:
                self._member_id = ""
            elif code is ErrorCode.MEMBER_ID_REQUIRED:
                self._member_id = joined.member_id  # type: ignore[attr-defined]
            else:
                assert code in RETRIABLE or code is ErrorCode.REBALANCE_IN_PROGRESS, code
            return False
        self._member_id, self._generation = joined.member_id, joined.generation_id  # type: ignore[attr-defined]
        return await self._sync([each.member_id for each in joined.members])  # type: ignore[attr-defined]

    async def _sync(self, members: list[str]) -> bool:
        request = SyncGroupRequest(
            group_id=CLASSIC_GROUP,
            generation_id=self._generation,
            member_id=self._member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=member_id,
                    assignment=encode_assignment(TopicPartition(*topic_of(key)) for key in ORDERS[at :: len(members)]),
                )
                for at, member_id in enumerate(members)
            ],
        )
        recording = self._stage.recorder.invoke(self._proc, "own")
        try:
            synced = await self._ask(request, 5, timeout_s=4.0)
        except Gone:
            recording.info()
            raise
        if synced is None or synced.error_code:  # type: ignore[attr-defined]
            recording.info()
            return False
        self._keys = [
            f"{of.topic}-{of.partition}"
            for of in decode_assignment(synced.assignment)  # type: ignore[attr-defined]
        ]
        recording.note(group=CLASSIC_GROUP, member=self._member_id, epoch=self._generation, keys=self._keys)
        recording.ok()
        return True

    async def _work(self) -> bool:
        """Whether the generation goes on."""
        stage = self._stage
        beat = HeartbeatRequest(
            group_id=CLASSIC_GROUP, generation_id=self._generation, member_id=self._member_id, group_instance_id=None
        )
        answer = await self._ask(beat, 4)
        if answer is not None and answer.error_code not in RETRIABLE | {ErrorCode.NONE}:  # type: ignore[attr-defined]
            return False
        if self._keys and stage.rng.random() < 0.7:
            member = {"member_id": self._member_id, "generation": self._generation}
            key = stage.rng.choice(self._keys)
            code = await commit(stage, self._wire, self._proc, CLASSIC_GROUP, key, **member)  # type: ignore[arg-type]
            if code not in RETRIABLE | {None, ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}:
                return False
        if stage.chance(0.05):
            await self._leave()
            raise Gone
        return True

    async def _leave(self) -> None:
        leaving = MemberIdentity(member_id=self._member_id)
        try:
            await self._wire.ask(LeaveGroupRequest(group_id=CLASSIC_GROUP, members=[leaving]), 4)
        except Lost:
            pass
        self._wire.cut()
