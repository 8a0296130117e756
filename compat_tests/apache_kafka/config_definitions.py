"""The configuration keys that Apache Kafka documents: `python -m compat_tests.apache_kafka.config_definitions` asks its
classes, and writes the table that tests and the configuration reference compare with.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .jars import KAFKA_VERSION, class_path
from .java import find_java

TABLE: Final = Path(__file__).parents[2] / "tests" / "kafka_4_3_config_keys.txt"
CLASSES: Final = {
    "broker": "kafka.server.KafkaConfig",
    "topic": "org.apache.kafka.storage.internals.log.LogConfig",
    "group": "org.apache.kafka.coordinator.group.GroupConfig",
}
_KEY: Final = re.compile(r'<h4><a id="([^"]+)">')
_CELL: Final = re.compile(r"<tr><th>([^:]+):</th><td>(.*?)</td></tr>", re.DOTALL)
_IN_WORDS: Final = re.compile(r" \([^)]*\)$")


def rows() -> Iterator[str]:
    """Yield a line for each key: kind, name, type, who may change it, and the default as JSON."""
    for kind, name in CLASSES.items():
        page = subprocess.run(
            [find_java(), "-cp", class_path(), name], capture_output=True, text=True, check=True, timeout=120
        ).stdout
        for key in page.split("<li>\n")[1:]:
            yield _row(kind, key)


def _row(kind: str, text: str) -> str:
    found = _KEY.match(text)
    assert found is not None, text[:200]
    cells = {title: html.unescape(cell) for title, cell in _CELL.findall(text)}
    default = _IN_WORDS.sub("", cells["Default"])
    shown = None if default in ("", "null") else "" if default == '""' else default
    return f"{kind} {found[1]} {cells['Type']} {cells.get('Update Mode', '-')} {json.dumps(shown)}"


def _place(row: str) -> tuple[int, str]:
    kind, name, *_ = row.split()
    return list(CLASSES).index(kind), name


if __name__ == "__main__":
    title = f"# The keys that Apache Kafka {KAFKA_VERSION} documents (main of KafkaConfig, LogConfig, GroupConfig): "
    TABLE.write_text("\n".join([f"{title}type, who may change it, default.", *sorted(rows(), key=_place)]) + "\n")
