"""A page of documentation as a script for bash, in which every command stands on the line that it has in the page."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from .blocks import Block

PRELUDE = Path(__file__).with_name("prelude.sh")


def script_of(blocks: Sequence[Block], outputs: Path) -> str:
    """Return the script. outputs: a directory for programs, and for what each block prints, by its line."""
    lines: list[str] = []
    for block in blocks:
        if not block.is_run and block.file is None:
            continue
        lines += [""] * (block.line - 1 - len(lines))
        lines += _lines(block, outputs)
    return "\n".join(lines) + "\n"


def _lines(block: Block, outputs: Path) -> list[str]:
    first = f"{block.first}; " if block.first else ""
    output = shlex.quote(str(outputs / str(block.line)))
    if block.file is not None:
        written = shlex.quote(str(outputs / f"{block.line}.file"))
        return [f"{first}mkdir -p $(dirname {shlex.quote(block.file)}); cp {written} {shlex.quote(block.file)}"]
    if block.language == "python":
        program = shlex.quote(str(outputs / f"{block.line}.py"))
        return [f"{first}python {program} > {output}"]
    return [f"{first}{{", *block.text.splitlines(), f"}} > {output}"]


def write_programs(blocks: Sequence[Block], outputs: Path) -> None:
    """Write what the script copies and calls."""
    for block in blocks:
        if block.file is not None:
            (outputs / f"{block.line}.file").write_text(block.text)
        elif block.language == "python" and block.is_run:
            (outputs / f"{block.line}.py").write_text(block.text)


def differs(expected: str, printed: str) -> bool:
    """Return whether an output is another one than the page shows, where `…` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is None
