"""Whoever deletes the first records of a partition (KIP-107)."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.offsets import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic

from .partitions import LATEST as LATEST_OFFSET
from .partitions import list_offsets
from .sizes import TRIMMED
from .stage import RETRIABLE, Lost, Stage, Wire, topic_of


async def delete_records(stage: Stage) -> None:
    wire = Wire(stage, "trimmer")
    while not stage.is_quiet:
        await stage.pause(1_500)
        try:
            await _delete_some(stage, wire, stage.rng.choice(stage.keys_of(TRIMMED)))
        except Lost:
            pass
    wire.cut()


async def _delete_some(stage: Stage, wire: Wire, key: str) -> None:
    """Raises Lost."""
    end = (await list_offsets(wire, [key], LATEST_OFFSET, is_committed=False))[key]
    below = stage.rng.randint(0, end)
    proc = stage.recorder.new_process()
    stage.recorder.tell(proc, "trim", below={key: below})
    topic, index = topic_of(key)
    partition = DeleteRecordsPartition(partition_index=index, offset=below)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=2000)
    recording = stage.recorder.invoke(proc, "offsets")
    try:
        response = await wire.ask(request, 2)
    except Lost:
        recording.info()
        raise
    [answer] = response.topics[0].partitions
    if answer.error_code:
        assert answer.error_code in RETRIABLE | {ErrorCode.OFFSET_OUT_OF_RANGE}, ErrorCode(answer.error_code)
        recording.info()
        return
    recording.note(start={key: answer.low_watermark})
    recording.ok()
