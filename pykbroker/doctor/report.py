"""The report: plain lines for people, JSON for scripts. What others sent is shown as one line of ASCII."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from pykbroker.server.runtime.log_lines import printable

from .diagnosis import Diagnosis
from .facts import Facts
from .findings import Severity, counted
from .knocks import BrokerAnswer

MOST_FINDINGS: Final = 100
MOST_UNKNOWN: Final = 20
_LONGEST: Final = 2_000
_METADATA_VERSION: Final = "metadata.version"
_RELEASES: Final = (
    (31, "4.4"), (30, "4.3"), (28, "4.2"), (26, "4.1"), (22, "4.0"), (21, "3.9"), (20, "3.8"), (15, "3.7"), (12, "3.6"),
    (9, "3.5"), (8, "3.4"), (4, "3.3"), (3, "3.2"), (2, "3.1"), (1, "3.0"),
)  # fmt: skip
"""The first metadata.version of each release of Kafka."""
_NEWEST_LEVEL: Final = 33
"""The last one of the first release there."""


def lines_of(diagnosis: Diagnosis, address: str) -> Iterator[str]:
    facts = diagnosis.facts
    if facts.entry is not None and facts.entry.answer is not None:
        yield _clean(f"{facts.entry.address} is served: {_described(facts.entry.answer)}")
    else:
        yield _clean(f"{address}: no broker was reached")
    for each in diagnosis.findings[:MOST_FINDINGS]:
        yield ""
        yield _clean(f"{each.severity.upper()} {each.id}: {each.subject}: {each.seen}")
        yield _clean(f"  {each.advice}")
    if len(diagnosis.findings) > MOST_FINDINGS:
        yield ""
        yield f"{len(diagnosis.findings) - MOST_FINDINGS} more findings are left out"
    if facts.unknown:
        yield ""
        for reason in facts.unknown[:MOST_UNKNOWN]:
            yield _clean(f"Not known: {reason}")
        if len(facts.unknown) > MOST_UNKNOWN:
            yield f"Not known: {len(facts.unknown) - MOST_UNKNOWN} more"
    yield ""
    yield summary(diagnosis)


def summary(diagnosis: Diagnosis) -> str:
    counts = Counter(each.severity for each in diagnosis.findings)
    if not counts:
        return (
            "Nothing wrong was found, as far as it is known." if diagnosis.facts.unknown else "Nothing wrong was found."
        )
    return f"{counted(counts[Severity.ERROR], 'error')}, {counted(counts[Severity.WARNING], 'warning')}"


def document_of(diagnosis: Diagnosis, address: str) -> str:
    """One JSON object on one line."""
    facts = diagnosis.facts
    answer = None if facts.entry is None else facts.entry.answer
    document: dict[str, Any] = {
        "address": address,
        "served_by": None if facts.entry is None else facts.entry.address,
        "cluster_id": None if answer is None else answer.cluster_id,
        "metadata_version": None if answer is None else answer.features.get(_METADATA_VERSION),
        "controller_id": None if facts.quorum is None else facts.quorum.leader_id,
        "clock_ahead_ms": None if facts.quorum is None else facts.quorum.clock_ahead_ms,
        "brokers": [
            {
                "node_id": each.node_id,
                "host": each.host,
                "port": each.port,
                "outcome": each.knock.outcome,
                "is_same_cluster": each.is_same_cluster,
                "is_this_broker": each.is_node,
                "works_at": None if each.working is None else list(each.working),
            }
            for each in facts.addresses
        ],
        "looked_at": _counts(facts),
        "findings": [
            {
                "id": each.id,
                "severity": each.severity,
                "subject": each.subject,
                "seen": each.seen,
                "advice": each.advice,
            }
            for each in diagnosis.findings[:MOST_FINDINGS]
        ],
        "findings_left_out": max(len(diagnosis.findings) - MOST_FINDINGS, 0),
        "unknown": facts.unknown[:MOST_UNKNOWN],
    }
    return json.dumps(document)


def _counts(facts: Facts) -> dict[str, int]:
    return {
        "brokers": len(facts.addresses),
        "topics": len(facts.topics),
        "groups": len(facts.groups) + len(facts.share_groups),
        "log_directories": len(facts.directories),
    }


def _described(answer: BrokerAnswer) -> str:
    level = answer.features.get(_METADATA_VERSION)
    release = next((release for first, release in _RELEASES if level is not None and level >= first), None)
    version = f", metadata.version {level}" if level is not None else ""
    newer = " or newer" if level is not None and level > _NEWEST_LEVEL else ""
    named = f" (Kafka {release}{newer})" if release is not None else ""
    return f"cluster {answer.cluster_id}, {counted(len(answer.nodes), 'broker')}{version}{named}"


def _clean(line: str) -> str:
    """One line, without characters that move a terminal's cursor."""
    if line.isascii() and line.isprintable() and len(line) <= _LONGEST:
        return line
    return "".join(each if each.isprintable() else printable(each) for each in line)[:_LONGEST]
