"""How many offset commits a broker takes from many consumers, each of which waits for one before the next."""

from __future__ import annotations

from uuid import uuid4

import trio

from benchmarks.askers import SECONDS, ask_for, asking
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


def offset_commits(bench: Bench) -> Figures:
    """A group of 100 members; each commits the offsets of its two partitions again and again."""
    bench.create_topic(TOPIC, TOPIC_PARTITIONS)
    requests = trio.run(_join, bench)
    with asking(bench.broker.address, requests, _check) as selector:
        return bench.with_cpu(lambda: {"commits/s": ask_for(selector, max(SECONDS * bench.scale, 1.0))})


def _check(answer: bytes) -> None:
    response, _ = decode(OffsetCommitResponse, COMMIT_VERSION, answer, RESPONSE_BODY)
    codes = {partition.error_code for topic in response.topics for partition in topic.partitions}
    assert codes == {0}, f"the commit was refused: {codes}"


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


COMMITS: dict[str, Measure] = {"offset commits, 100 consumers": offset_commits}
