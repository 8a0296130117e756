"""How many offset commits a broker takes from many consumers, each of which waits for one before the next."""

from __future__ import annotations

import selectors
import socket
import time
from dataclasses import dataclass, field
from uuid import uuid4

import trio

from benchmarks.bench import Bench, Figures, Measure
from benchmarks.classic_members import ClassicMember, connections, settle
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

CONSUMERS = 100
TOPIC_PARTITIONS = 200
TOPIC = "commits"
COMMIT_VERSION = 9
RESPONSE_BODY = 4 + 5
"""Behind the size, the correlation id and the tagged fields of the header."""
WARM_UP_S = 2.0
SECONDS = 10.0
STEP_TIMEOUT_S = 10.0


def offset_commits(bench: Bench) -> Figures:
    """A group of 100 members; each commits the offsets of its two partitions again and again."""
    bench.create_topic(TOPIC, TOPIC_PARTITIONS)
    requests = trio.run(_join, bench)
    committers = [_Committer(socket.create_connection(bench.broker.address), request) for request in requests]
    try:
        with selectors.DefaultSelector() as selector:
            for committer in committers:
                committer.connection.setblocking(False)
                selector.register(committer.connection, selectors.EVENT_READ, committer)
                committer.send()
            _commit_for(selector, WARM_UP_S)
            return bench.with_cpu(lambda: {"commits/s": _commit_for(selector, max(SECONDS * bench.scale, 1.0))})
    finally:
        for committer in committers:
            committer.connection.close()


async def _join(bench: Bench) -> list[bytes]:
    """A commit of each member, in a frame; a commit keeps the member's session, on whichever connection it comes."""
    group_id = f"group-{uuid4()}"
    async with connections(bench.broker.address, group_id, CONSUMERS) as opened:
        members = [ClassicMember(connection, group_id, TOPIC, TOPIC_PARTITIONS) for connection in opened]
        await settle(members)
        return [_commit_of(member) for member in members]


def _commit_of(member: ClassicMember) -> bytes:
    request = OffsetCommitRequest(
        group_id=member.group_id,
        generation_id_or_member_epoch=member.generation_id,
        member_id=member.member_id,
        topics=[
            OffsetCommitRequestTopic(
                name=member.topic,
                partitions=[
                    OffsetCommitRequestPartition(
                        partition_index=partition, committed_offset=1000, committed_metadata=""
                    )
                    for partition in member.partitions
                ],
            )
        ],
    )
    return encode_request(request, COMMIT_VERSION, 1, "bench")


@dataclass(slots=True)
class _Committer:
    """accepted: the answer to a commit that was taken; every later one has the same bytes."""

    connection: socket.socket
    request: bytes
    accepted: bytes = b""
    received: bytearray = field(default_factory=bytearray)

    def send(self) -> None:
        sent = self.connection.send(self.request)
        assert sent == len(self.request), "a small request fits into the socket's buffer"

    def receive(self) -> bool:
        """Whether the answer is complete; it says that the commit was taken."""
        piece = self.connection.recv(65536)
        assert piece, "the broker closed the connection"
        self.received += piece
        if len(self.received) < 4 or len(self.received) < 4 + int.from_bytes(self.received[:4], "big"):
            return False
        answer = bytes(self.received)
        self.received.clear()
        if answer != self.accepted:
            self._check(answer)
        return True

    def _check(self, answer: bytes) -> None:
        response, _ = decode(OffsetCommitResponse, COMMIT_VERSION, answer, RESPONSE_BODY)
        codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
        assert codes == {0}, f"the commit was refused: {codes}"
        self.accepted = answer


def _commit_for(selector: selectors.BaseSelector, seconds: float) -> float:
    """Commits per second."""
    answered, started = 0, time.perf_counter()
    while (now := time.perf_counter()) - started < seconds:
        ready = selector.select(STEP_TIMEOUT_S)
        assert ready, f"no answer within {STEP_TIMEOUT_S} s"
        for key, _ in ready:
            if key.data.receive():
                answered += 1
                key.data.send()
    return answered / (now - started)


COMMITS: dict[str, Measure] = {"offset commits, 100 consumers": offset_commits}
