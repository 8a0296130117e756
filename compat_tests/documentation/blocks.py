"""The code blocks of a page of documentation, and how they are tried.

| fence | what is done |
|---|---|
| `console` | its commands run in bash, in one directory; a `text` block directly behind it is what they print |
| `python` | runs as a program, in the same directory |
| `python` that begins with `# FILE.py` | is a suite of pytest, or a part of a file: tests/testing has it |
| any language with a name, `properties client.properties` | written to that file, for the commands behind it |
| `text` and others without a name | shown only |

Comments in front of a block, which a reader does not see: `<!-- not run: REASON -->` keeps it from running, and
`<!-- first: COMMANDS -->` are commands that make what the page takes for granted, such as a topic with records.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

RUN: Final = ("console", "python")
SHOWN: Final = ("text", "properties", "toml", "yaml", "json", "ini", "diff", "java", "js", "sql", "promql", "http")
OF_THE_SITE: Final = ("{eval-rst}",)
"""What the site's generator reads, such as the names of a package with their docstrings."""
LANGUAGES: Final = (*RUN, *SHOWN, *OF_THE_SITE)
_FENCE: Final = re.compile(r"^ {0,3}```(.*)$")
_OF_A_FILE: Final = re.compile(r"# [\w./-]+\.py\n")
_NOTE: Final = re.compile(r"<!-- (not run|first): (.+) -->")


class BadPage(ValueError):
    """A block that nobody can try, or a fence that is not closed."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block. line: of its opening fence, from 1. not_run: why it does not run. first: commands in front of it."""

    line: int
    language: str
    file: str | None
    text: str
    not_run: str | None = None
    first: str | None = None

    @property
    def last_line(self) -> int:
        return self.line + self.text.count("\n") + 1

    @property
    def is_run(self) -> bool:
        is_of_a_file = _OF_A_FILE.match(self.text) is not None
        return self.language in RUN and self.file is None and self.not_run is None and not is_of_a_file

    def is_output_of(self, other: Block) -> bool:
        """Return whether the block stands directly behind the other, and shows what that prints."""
        return self.language == "text" and other.is_run and self.line <= other.last_line + 2


def blocks_of(page: Path) -> list[Block]:
    """Return the blocks of a page. Raises BadPage."""
    lines = page.read_text().splitlines()
    blocks: list[Block] = []
    opened: int | None = None
    for index, line in enumerate(lines):
        if (fence := _FENCE.match(line)) is None:
            continue
        if opened is None:
            opened = index
            continue
        if fence[1]:
            raise BadPage(f"{page.name}:{index + 1}: a fence in a block")
        blocks.append(_block(page, lines, opened, index))
        opened = None
    if opened is not None:
        raise BadPage(f"{page.name}:{opened + 1}: a fence without an end")
    return blocks


def _block(page: Path, lines: list[str], opened: int, closed: int) -> Block:
    language, _, file = lines[opened].strip().removeprefix("```").partition(" ")
    if language not in LANGUAGES:
        raise BadPage(f"{page.name}:{opened + 1}: a block is one of {', '.join(LANGUAGES)}, not '{language}'")
    above = next((line for line in reversed(lines[:opened]) if line.strip()), "")
    note = _NOTE.fullmatch(above.strip())
    notes = {} if note is None else {note[1]: note[2]}
    text = "".join(f"{line}\n" for line in lines[opened + 1 : closed])
    return Block(opened + 1, language, file or None, text, notes.get("not run"), notes.get("first"))
