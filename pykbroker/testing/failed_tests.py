"""The traces of a failed test: the last lines that brokers have logged, the last requests, and the journal in files.

Each failed test has files of its own, named after it and the worker of pytest-xdist that ran it; another run of the
same test replaces them.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import WeakKeyDictionary

from .journal import BrokerJournal, recent_journals
from .threaded_kafka import recent_logs

if TYPE_CHECKING:
    import pytest

    from .broker_log import BrokerLog

_LINES_SHOWN: Final = 60
_LONGEST_NAME: Final = 120
_DIRECTORY: Final = "kafka-journals"

Marks: TypeAlias = WeakKeyDictionary["BrokerLog | BrokerJournal", int]
"""Positions by what they are of, as long as it is there: `id` may be that of a later one."""


def marks() -> Marks:
    """Return the positions of all logs and journals."""
    found: Marks = WeakKeyDictionary()
    for log in recent_logs():
        found[log] = log.count
    for journal in recent_journals():
        found[journal] = journal.position
    return found


def sections(test: str, since: Marks | None, directory: Path) -> Iterator[tuple[str, str]]:
    """The sections of a report about the time since the marks; the journals are written into the directory."""
    since = Marks() if since is None else since
    for log in recent_logs():
        lines = log.lines(since.get(log, 0))[-_LINES_SHOWN:]
        if lines:
            yield f"log of {log.name}", "\n".join(lines)
    for number, journal in enumerate(recent_journals(), start=1):
        position = since.get(journal, 0)
        if journal.position > position:
            stem = directory / file_name(test, number)
            yield f"requests of {journal.name}", "\n".join(_journal_lines(journal, position, stem))


def journal_directory(config: pytest.Config) -> Path:
    """Return the directory of the option, or one beside the run's other temporary files."""
    given = config.getoption("kafka_journal")
    if given:
        return Path(config.invocation_params.dir, given)
    factory: Any = getattr(config, "_tmp_path_factory", None)  # None where the plugin tmpdir is off
    return Path(factory.getbasetemp() if factory is not None else tempfile.gettempdir(), _DIRECTORY)


def file_name(test: str, number: int = 1) -> str:
    """Return a name that no other test, worker or cluster of the same run has."""
    readable = re.sub("[^a-zA-Z0-9_.]+", "-", test).strip("-.")[-_LONGEST_NAME:]
    told_apart = hashlib.sha256(test.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    parts = [readable, told_apart, os.environ.get("PYTEST_XDIST_WORKER", ""), str(number) if number > 1 else ""]
    return "-".join(filter(None, parts))


def _journal_lines(journal: BrokerJournal, since: int, stem: Path) -> Iterator[str]:
    yield from journal.last_lines(since)
    if journal.forgotten:
        yield f"({journal.forgotten} earlier entries are forgotten)"
    try:
        stem.parent.mkdir(parents=True, exist_ok=True)
        json_lines = journal.json_lines(stem.with_name(f"{stem.name}.jsonl"), since)
        pcap = journal.pcap(stem.with_name(f"{stem.name}.pcap"), since)
    except OSError as error:
        yield f"the journal could not be kept: {error.strerror or error}: {error.filename}"
    else:
        yield f"all of them: {json_lines}"
        yield f"for Wireshark: {pcap}"
