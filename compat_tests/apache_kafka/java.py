"""The Java that runs Apache Kafka and Spark: the one of `JAVA_HOME`, else the first on PATH, if it is 17 or newer."""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST_JAVA = 17


class JavaMissing(Exception):
    """No Java of a sufficient version is installed; the text says in one line what was looked for."""


@functools.cache
def find_java() -> str:
    """The `java` command. Raises JavaMissing."""
    found = []
    for candidate in _candidates():
        version = _major_version(candidate)
        if version >= OLDEST_JAVA:
            return str(candidate)
        found.append(f"{candidate} is version {version}")
    raise JavaMissing(f"needs Java {OLDEST_JAVA} or newer on PATH or in JAVA_HOME ({'; '.join(found) or 'none found'})")


def _candidates() -> list[Path]:
    home = os.environ.get("JAVA_HOME")
    places = [Path(home) / "bin" / "java"] if home else []
    on_path = shutil.which("java")
    if on_path:
        places.append(Path(on_path))
    return [place for place in places if place.is_file()]


def _major_version(command: Path) -> int:
    """17 for `openjdk version "17.0.15"`; 8 for the old `"1.8.0_402"`; 0 where the command does not say."""
    answer = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(match[1]) if match else 0
