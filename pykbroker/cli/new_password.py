"""A new password of a user: the one line of a file or of standard input, or what is typed twice at a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .command import EXIT_INTERRUPTED, CommandFailed
from .output import is_terminal

_MOST_CHARACTERS = 1000


def new_password(user: str, file: Path | None) -> str:
    """Return the one line of the file, or of standard input; or what is typed twice. Raises CommandFailed."""
    if file is None:
        return _typed(user)
    if str(file) == "-" and sys.stdin is None:
        raise CommandFailed("Standard input is closed")
    try:
        text = sys.stdin.read(_MOST_CHARACTERS + 2) if str(file) == "-" else _read(file)
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CommandFailed("The password is no text in UTF-8") from None
    password = text.removesuffix("\n").removesuffix("\r")
    if not password or "\n" in password or len(password) > _MOST_CHARACTERS:
        raise CommandFailed(f"The password must be one line of 1 to {_MOST_CHARACTERS} characters")
    return password


def _typed(user: str) -> str:
    if not is_terminal(sys.stdin):
        raise CommandFailed("A password is missing: give --password-file, or - for standard input")
    try:
        password: str = click.prompt(f"Password of {user}", hide_input=True, confirmation_prompt=True)
    except click.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise SystemExit(EXIT_INTERRUPTED) from None
        raise CommandFailed("A password is missing") from None
    return password


def _read(file: Path) -> str:
    with file.open(encoding="utf-8") as lines:
        return lines.read(_MOST_CHARACTERS + 2)
