"""Every scenario has the answers and the records that Apache Kafka 4.3.1 gave when its transcript was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.server.coordinators.group_coordinator import CONSUMER_OFFSETS

from . import (  # noqa: F401 - registers their scenarios
    classic_scenarios,
    consumer_scenarios,
    migration_scenarios,
    share_scenarios,
    streams_scenarios,
)
from .scenarios import CONFIG, SCENARIOS, TOPICS
from .session import Session
from .world import World, run_simulated

TRANSCRIPTS = Path(__file__).parent / "transcripts"


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_are_those_of_apache_kafka(name: str) -> None:
    lines: list[str] = []

    async def main() -> None:
        world = World(CONFIG)
        for topic in TOPICS:
            world.create_topic(topic, 3)
        world.create_topic(CONSUMER_OFFSETS, 3)
        async with world.running():
            await world.sleep(1000)
            session = Session(world)
            await SCENARIOS[name](session)
            session.tell_records()
            lines.extend(session.lines)

    run_simulated(main)
    recorded = (TRANSCRIPTS / f"{name}.txt").read_text().splitlines()
    assert lines == recorded


def test_every_transcript_has_its_scenario() -> None:
    assert {path.stem for path in TRANSCRIPTS.iterdir()} == set(SCENARIOS)
