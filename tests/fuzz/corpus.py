"""The kept inputs: a file for each target, in it a line of Base64 for each input, from the shortest to the longest."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).with_name("corpus")
LARGEST_FILE_BYTES: Final = 256 << 10


def file_of(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def read(name: str) -> list[bytes]:
    """Return the inputs of a target, none where no search has kept any."""
    try:
        return [b64decode(line, validate=True) for line in file_of(name).read_text().splitlines()]
    except FileNotFoundError:
        return []


def write(name: str, inputs: Iterable[bytes]) -> None:
    """Keep the shortest inputs, as many as there is room for."""
    lines: list[str] = []
    room = LARGEST_FILE_BYTES
    for data in sorted(set(inputs), key=lambda each: (len(each), each)):
        line = b64encode(data).decode() + "\n"
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
    file_of(name).write_text("".join(lines))
