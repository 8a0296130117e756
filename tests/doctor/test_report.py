"""The report of a diagnosis, as text and as JSON, bounded and harmless to a terminal."""

from __future__ import annotations

import json
from dataclasses import replace

from pykbroker.doctor.diagnosis import Diagnosis
from pykbroker.doctor.findings import error, warning
from pykbroker.doctor.report import MOST_FINDINGS, document_of, lines_of

from .cluster_facts import healthy


def test_nothing_wrong_is_said_in_words() -> None:
    lines = list(lines_of(Diagnosis(healthy(), []), "127.0.0.1:9092"))
    assert lines[0] == "127.0.0.1:9092 is served: cluster one, 1 broker, metadata.version 30 (Kafka 4.3)"
    assert lines[-1] == "Nothing wrong was found."


def test_findings_and_what_is_not_known_are_lines() -> None:
    facts = replace(healthy(), unknown=["groups were not looked at: no right"])
    lines = list(lines_of(Diagnosis(facts, [error("a", "b", "c", "d."), warning("e", "f", "g", "h.")]), ""))
    assert lines[2:4] == ["ERROR a: b: c", "  d."]
    assert "Not known: groups were not looked at: no right" in lines
    assert lines[-1] == "1 error, 1 warning"


def test_what_others_sent_moves_no_cursor() -> None:
    hostile = error("a", "broker 1", "\x1b[2Jname\u202e\r\n", "d.")
    text = "\n".join(lines_of(Diagnosis(healthy(), [hostile]), ""))
    assert not any(each in text for each in "\x1b\u202e\r")


def test_both_forms_are_bounded() -> None:
    many = [error("a", str(number), "c" * 10_000, "d.") for number in range(10 * MOST_FINDINGS)]
    diagnosis = Diagnosis(healthy(), many)
    assert len("\n".join(lines_of(diagnosis, ""))) < 300_000
    document = json.loads(document_of(diagnosis, "127.0.0.1:9092"))
    assert (len(document["findings"]), document["findings_left_out"]) == (MOST_FINDINGS, 9 * MOST_FINDINGS)
