"""A `.proto` file as the descriptor set that protoc makes of it, in a process of its own and within a time.

protoc comes with `grpcio-tools`, and so do Protobuf's well-known types. Other imports are looked for beside the file.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pykbroker.client.small_files import read_small_file

from ..command import CommandFailed
from ..printable import printable
from .extras import imported

_LONGEST_S: Final = 60
_LARGEST_BYTES: Final = 64 * 1024 * 1024
_MOST_NAMES: Final = 10
_LONGEST_LINE: Final = 300
_AT_A_LINE: Final = re.compile(r"\S.*:[0-9]+:[0-9]+: (?!warning)")


def compiled(path: Path, *, needed_by: str) -> bytes:
    """Return the descriptor set, with all imports. Raises CommandFailed, with protoc's first complaint."""
    imported("grpc_tools", extra="protobuf", needed_by=needed_by)
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory, "descriptors")
        # -P: of the file's directory nothing is imported as Python.
        command = [sys.executable, "-P", "-m", "grpc_tools.protoc", "--include_imports", f"--descriptor_set_out={made}"]
        try:
            done = subprocess.run(  # noqa: S603 - the file is protoc's to read
                [*command, "-I.", f"./{path.name}"],
                cwd=path.absolute().parent,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_LONGEST_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise CommandFailed(f"{path}: protoc has not compiled it within {_LONGEST_S} s") from None
        except OSError as error:
            raise CommandFailed(f"{path}: protoc cannot be run: {error.strerror or error}") from None
        if done.returncode:
            raise CommandFailed(_complaint(path, done.returncode, done.stderr.decode(errors="replace")))
        return read_small_file(str(made), _LARGEST_BYTES)


def _complaint(path: Path, code: int, text: str) -> str:
    """Return the first line that names a place, which in a file that is imported is that file's."""
    lines = [line for line in text.splitlines() if line.strip()]
    first = next(filter(_AT_A_LINE.match, lines), lines[0] if lines else f"protoc ended with {code}")
    return printable(str(path.parent / first)[:_LONGEST_LINE])


def message_name(path: Path, names: Sequence[str], flag: str) -> str:
    """Return the only message of a file. names: of the file's own messages. Raises CommandFailed."""
    if len(names) == 1:
        return names[0]
    if not names:
        raise CommandFailed(f"{path} has no message")
    raise CommandFailed(
        f"{path} has several messages: name one by {flag.replace('schema', 'message')}: {listed(names)}"
    )


def listed(names: Sequence[str]) -> str:
    """Return names for a message, some of them where there are many."""
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
