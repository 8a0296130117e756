"""pykbroker answers the recorded sequences as Apache Kafka did, but for the differences that are meant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from compat_tests.brokers import BrokerProcess
from compat_tests.conftest import assert_all_went_well

from .nodes import our_node
from .recordings import Chapter, chapter_names
from .replaying import replay

MOST_SHOWN = 30
CHAPTERS = (
    "directed-plain",
    "errors-plain",
    "errors-rights",
    "groups-01",
    "groups-directed",
    "groups-errors",
    "groups-rights",
    "plain-01",
    "plain-02",
    "plain-03",
    "plain-04",
)
"""Those that are drawn have numbers."""


def test_every_chapter_that_is_recorded_is_asked() -> None:
    assert list(CHAPTERS) == chapter_names()


@contextmanager
def running(directory: Path, scene: str) -> Iterator[BrokerProcess]:
    node = our_node(directory, scene)
    node.start()
    try:
        yield node
    finally:
        node.stop()
    assert_all_went_well(node)


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter_is_answered_as_by_apache_kafka(name: str, tmp_path: Path) -> None:
    chapter = Chapter.read(name)
    with running(tmp_path / "node", chapter.scene) as node:
        outcome = replay(node, chapter.scene, chapter.sequences)
    shown = "\n".join(map(str, outcome.disagreements[:MOST_SHOWN]))
    assert not outcome.disagreements, f"{len(outcome.disagreements)} disagreements in {outcome.cases} cases\n{shown}"
    assert outcome.cases == sum(len(each.sequence.steps) for each in chapter.sequences)
