"""Every scenario has the answers and the records that Apache Kafka 4.3.1 gave when its transcript was recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykbroker.metadata.features import REGISTERED_FEATURES
from pykbroker.metadata.records import decode_record
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.messages.metadata_records import FeatureLevelRecord
from pykbroker.protocol.schema import Message

from .cluster import CLUSTER_ID, Cluster
from .controller_scenarios import PROPERTIES, SCENARIOS
from .dialogue import PROPERTIES as COMMON
from .dialogue import Dialogue

TRANSCRIPTS = Path(__file__).parent / "transcripts"


class OurController:
    cluster_id = CLUSTER_ID

    def __init__(self, properties: dict[str, str]) -> None:
        bootstrap = [
            FeatureLevelRecord(name=name, feature_level=high)
            for name, (_, high) in REGISTERED_FEATURES.items()
            if name != "kraft.version"
        ]
        self._cluster = Cluster({**COMMON, **properties}, node_id=3000, bootstrap=bootstrap)

    def ask(self, request: Message, version: int) -> Message:
        self._cluster.advance(0)
        asked, _ = decode(type(request), version, encode(request, version))
        answer: Message = self._cluster.ask(asked)
        response, _ = decode(type(answer), version, encode(answer, version))
        return response

    def wait(self, ms: int) -> None:
        self._cluster.advance(ms)

    def log(self) -> list[Message]:
        return [decode_record(value) for value in self._cluster.log]


@pytest.mark.parametrize("name", SCENARIOS)
def test_answers_and_records_are_those_of_apache_kafka(name: str) -> None:
    talk = Dialogue(OurController(PROPERTIES[name]))
    SCENARIOS[name](talk)
    assert talk.lines == (TRANSCRIPTS / f"{name}.txt").read_text().splitlines()


def test_every_transcript_has_its_scenario() -> None:
    assert {path.stem for path in TRANSCRIPTS.iterdir()} == set(SCENARIOS)
