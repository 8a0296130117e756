"""Every scenario has the answers, the records and the markers that Apache Kafka 4.3.1 gave when it was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from pykbroker.transactions.config import TransactionConfig

from .node_broker import play_on_node
from .scenarios import CONFIG, SCENARIOS
from .session import Session
from .shard_broker import ShardBroker
from .world import TransactionWorld

TRANSCRIPTS = Path(__file__).parent / "transcripts"
CASES = [(level, name) for name, scenario in SCENARIOS.items() for level in scenario.levels]


COORDINATOR_CONFIG = TransactionConfig(
    max_timeout_ms=int(CONFIG["transaction.max.timeout.ms"]),
    transactional_id_expiration_ms=int(CONFIG["transactional.id.expiration.ms"]),
    abort_timed_out_interval_ms=int(CONFIG["transaction.abort.timed.out.transaction.cleanup.interval.ms"]),
    remove_expired_interval_ms=int(CONFIG["transaction.remove.expired.transaction.cleanup.interval.ms"]),
)


def transcript_of(level: int, name: str) -> list[str]:
    return (TRANSCRIPTS / str(level) / f"{name}.txt").read_text().splitlines()


@pytest.mark.parametrize(("level", "name"), [case for case in CASES if not SCENARIOS[case[1]].needs_handlers])
def test_the_coordinator_decides_as_apache_kafka_does(level: int, name: str) -> None:
    world = TransactionWorld(COORDINATOR_CONFIG, level)
    session = Session(ShardBroker(world, int(CONFIG["offsets.topic.num.partitions"])))
    trio.run(SCENARIOS[name].play, session)
    session.tell_log(last=SCENARIOS[name].told_records)
    assert session.lines == transcript_of(level, name)


@pytest.mark.parametrize(("level", "name"), [case for case in CASES if not SCENARIOS[case[1]].is_long])
def test_a_whole_node_answers_as_apache_kafka_does(level: int, name: str) -> None:
    assert play_on_node(SCENARIOS[name], level) == transcript_of(level, name)


def test_every_transcript_has_its_scenario() -> None:
    found = {(int(path.parent.name), path.stem) for path in TRANSCRIPTS.glob("*/*.txt")}
    assert found == set(CASES)
