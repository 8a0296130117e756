"""Committing offsets and asking for them."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.history.operations import FAIL, INFO, OK

from .stage import ORDERS, RETRIABLE, WITHOUT_EFFECT, Lost, Stage, Wire, topic_of

SIMPLE_GROUP = "simple"


async def commit(
    stage: Stage, wire: Wire, proc: int, group: str, key: str, *, member_id: str = "", generation: int = -1
) -> ErrorCode | None:
    """What the coordinator said, or None."""
    recording = stage.recorder.invoke(proc, "commit")
    offset = stage.new_number()
    recording.commits(group, {key: offset})
    topic, index = topic_of(key)
    partition = OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata="")
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    try:
        response = await wire.ask(request, 9)
    except Lost:
        recording.info()
        return None
    code = ErrorCode(response.topics[0].partitions[0].error_code)
    is_unknown = code in RETRIABLE and code not in WITHOUT_EFFECT
    recording.ended(OK if code is ErrorCode.NONE else INFO if is_unknown else FAIL)
    return code


async def committed_offsets(stage: Stage, wire: Wire, proc: int, group: str, key: str) -> int:
    """When no transaction is about to change it. Raises Lost, also where the coordinator is not ready."""
    recording = stage.recorder.invoke(proc, "committed")
    topic, index = topic_of(key)
    wanted = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[index])]
    )
    try:
        response = await wire.ask(OffsetFetchRequest(groups=[wanted], require_stable=True), 9)
    except Lost:
        recording.info()
        raise
    found = response.groups[0]
    code = ErrorCode(found.error_code or found.topics[0].partitions[0].error_code)
    if code is not ErrorCode.NONE:
        assert code in RETRIABLE, code
        recording.fail()
        raise Lost
    offset = int(found.topics[0].partitions[0].committed_offset)
    recording.commits(group, {key: offset})
    recording.ok()
    return offset


async def commit_simply(stage: Stage) -> None:
    """Without a member: whoever comes last wins."""
    while not stage.is_quiet:
        proc = stage.recorder.new_process()
        wire = Wire(stage, "committer")
        while not stage.is_quiet and not stage.chance(0.05):
            await stage.pause(100)
            code = await commit(stage, wire, proc, SIMPLE_GROUP, stage.rng.choice(ORDERS))
            assert code in (None, ErrorCode.NONE) or code in RETRIABLE, code
        wire.cut()
