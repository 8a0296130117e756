"""One data directory that pykbroker and Apache Kafka take over from each other, after a stop and after kill -9."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.broker import ApacheKafka
from compat_tests.apache_kafka.dump_log_segments import find_complaints
from compat_tests.brokers import Broker, BrokerProcess, Pykbroker
from compat_tests.conftest import assert_all_went_well, watch_log
from pykbroker.cli.main import main

from . import kafkas_own
from .estate import GROUPS, LONG_NAME, TIMES, Estate
from .inventory import Inventory
from .kafkas_own import KafkasOwn

pytestmark = pytest.mark.java

FEW_PARTITIONS = {
    "node.id": "1",
    "offsets.topic.num.partitions": "2",
    "log.cleaner.backoff.ms": "200",
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "200",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    "group.max.session.timeout.ms": "1800000",
    "group.consumer.max.session.timeout.ms": "600000",
    "group.consumer.session.timeout.ms": "600000",
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
OF_KAFKA = {
    "group.share.max.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
    "group.streams.max.session.timeout.ms": "600000",
    "group.streams.session.timeout.ms": "600000",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
}


def pykbroker(directory: Path, log_dirs: str, number: int) -> BrokerProcess:
    return Pykbroker(directory / f"pykbroker-{number}", FEW_PARTITIONS | {"log.dirs": log_dirs})


def apache_kafka(directory: Path, log_dirs: str, number: int, *, is_standalone: bool = False) -> BrokerProcess:
    properties = FEW_PARTITIONS | OF_KAFKA | {"log.dirs": log_dirs}
    path = directory / f"kafka-{number}"
    return ApacheKafka(path, properties, is_formatted=number > 0, is_standalone=is_standalone)


def standalone_kafka(directory: Path, log_dirs: str, number: int) -> BrokerProcess:
    """As Kafka's quick start sets it up: a dynamic quorum of one."""
    return apache_kafka(directory, log_dirs, number, is_standalone=True)


KILLED = 1
"""The turn that ends with kill -9."""
TROUBLE = re.compile(
    r"corrupt|(?<!and )rebuilding|cutting off|truncating|WARN.*index|does not follow|quarantined", re.IGNORECASE
)
"""Kafka writes of every log that it is "reloading from producer snapshot and rebuilding producer state"."""

KAFKA_RECOVERS = "since no clean shutdown file was found"

Make = Callable[[Path, str, int], BrokerProcess]


@pytest.mark.parametrize(
    "order",
    [(pykbroker, apache_kafka, pykbroker, apache_kafka), (standalone_kafka, pykbroker, standalone_kafka, pykbroker)],
    ids=["ours-first", "kafka-first"],
)
def test_a_directory_changes_hands(tmp_path: Path, order: tuple[Make, ...], request: pytest.FixtureRequest) -> None:
    """Twice after a stop, once after kill -9."""
    directories = tmp_path / "one", tmp_path / "two"
    handover = Handover(Estate(directories))
    untouched: list[dict[str, str]] = []
    for turn, make in enumerate(order):
        broker = make(tmp_path, ",".join(map(str, directories)), turn)
        watch_log(request.node, broker)
        broker.start()
        try:
            handover.take_a_turn(broker, turn)
        finally:
            broker.kill() if turn == KILLED else broker.stop()
        assert_no_trouble(broker)
        if turn and broker.kind == "apache-kafka":
            assert (KAFKA_RECOVERS in broker.log_text()) == (turn == KILLED + 1), "only what was killed is recovered"
        if turn != KILLED:
            assert_sound(directories, with_kafkas_tool=broker.kind == "pykbroker")
            untouched.append(digests(directories))
    assert untouched[-2] == untouched[-1], "what nobody asked for anew was not written anew"
    assert any(directories[0].glob("__cluster_metadata-0/*-*.checkpoint")), "there were snapshots to begin with"


class Handover:
    """Compares what each broker shows when it has started with what the one before showed at its end."""

    def __init__(self, estate: Estate) -> None:
        self._estate = estate
        self._seen: dict[str, Any] = {}
        self._kafkas_own: dict[str, Any] = {}

    def take_a_turn(self, broker: Broker, turn: int) -> None:
        if turn:
            compare(self._seen, self._look(broker), f"turn {turn}")
            self._estate.go_on(broker, turn)
        else:
            self._estate.found(broker)
        if broker.kind == "apache-kafka":
            self._take_kafkas_turn(KafkasOwn(broker))
        self._seen = self._look(broker)

    def _look(self, broker: Broker) -> dict[str, Any]:
        others = kafkas_own.GROUPS if self._kafkas_own else ()
        seen = Inventory(broker).take(GROUPS, others, TIMES)
        if self._kafkas_own:
            kafkas_own.check(seen)
        return seen

    def _take_kafkas_turn(self, own: KafkasOwn) -> None:
        if self._kafkas_own:
            compare(self._kafkas_own, own.inventory(), "what Apache Kafka alone writes")
        else:
            own.write()
            self._kafkas_own = own.inventory()


def assert_sound(directories: tuple[Path, ...], *, with_kafkas_tool: bool) -> None:
    if with_kafkas_tool:
        assert find_complaints(directories, compacted=["compacted-0"]) == []
    partitions = [str(path) for each in directories for path in each.iterdir() if path.is_dir()]
    shown = CliRunner().invoke(main, ["dump", "--only-findings", "--deep-iteration", *partitions])
    assert shown.exit_code == 0, shown.output


def digests(directories: tuple[Path, ...]) -> dict[str, str]:
    """Of logs that are read and nothing else. Their leaders' epochs go on."""
    return {
        f"{path.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for partition in (f"{LONG_NAME}-0", "again-0", f"{kafkas_own.TRANSACTIONAL}-0")
        for directory in directories
        for path in (directory / partition).glob("*")
        if path.name != "leader-epoch-checkpoint"
    }


def assert_no_trouble(broker: Broker) -> None:
    """What the other left was in order: nothing was mended, no index built anew, nothing cut off."""
    assert_all_went_well(broker)
    found = [line for line in broker.log_text().splitlines() if TROUBLE.search(line)]
    assert not found, "\n".join(found)


def compare(before: dict[str, Any], after: dict[str, Any], what: str) -> None:
    earlier = TestAnswers("before")
    earlier.all_same(before)
    TestAnswers(f"after ({what})", earlier.given, by="before").all_same(after)
