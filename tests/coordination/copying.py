"""Exactly once: consume, process, produce. Several processes have one transactional id, and one group."""

from __future__ import annotations

from .group_offsets import committed_offsets
from .partitions import fetch
from .stage import COPY, SOURCE, Gone, Lost, Stage
from .transactional import Fenced, TransactionalClient

COPIERS = "copiers"
_TRANSACTIONAL_ID = "copier"
_MOST_RECORDS = 5


async def copy(stage: Stage) -> None:
    while not stage.is_quiet:
        await _copy_once(stage)
        await stage.pause(300)


async def copy_the_rest(stage: Stage) -> None:
    """Until the copy is complete."""
    while not await _copy_once(stage):
        await stage.pause(100)


async def _copy_once(stage: Stage) -> bool:
    """One process, until there is nothing to copy for now (True), or until it fails."""
    client = TransactionalClient(stage, _TRANSACTIONAL_ID, is_new=stage.rng.random() < 0.5, timeout_ms=2_000)
    try:
        await client.init()
        stage.recorder.tell(client.proc, "subscribe")
        position = max(0, await committed_offsets(stage, client.wire, client.proc, COPIERS, SOURCE))
        while True:
            await stage.pause(50)
            found = (await fetch(client.wire, {SOURCE: position}, is_committed=True))[SOURCE]
            if found.next_offset == position:
                return True
            records = found.records[:_MOST_RECORDS]
            position = records[-1][0] + 1 if len(found.records) > _MOST_RECORDS else found.next_offset
            if records:
                await _copy_some(client, records, position)
    except (Fenced, Gone, Lost):
        return False
    finally:
        client.wire.cut()


async def _copy_some(client: TransactionalClient, records: list[tuple[int, str]], position: int) -> None:
    """Raises Fenced, Gone."""
    stage = client.stage
    recording = client.begin()
    recording.polled({SOURCE: records})
    try:
        await client.send(recording, COPY, [(value, str(stage.new_number())) for _, value in records])
        if stage.chance(0.05):
            recording.info()
            raise Gone
        await client.commit_offset(recording, COPIERS, SOURCE, position)
    except Fenced:
        recording.fail()
        raise
    is_commit = not stage.chance(0.15)
    await client.end(recording, is_commit=is_commit)
    if not is_commit:
        raise Fenced  # the records are to be read again
