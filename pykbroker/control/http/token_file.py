"""The token of a broker's control lies in a file that nobody else can read."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from pykbroker.config import ConfigurationError

SHORTEST_TOKEN: Final = 16
_MOST_BYTES: Final = 4096


def read_token(path: Path) -> str:
    """Return the token. Raises ConfigurationError."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"--ctl-token-file {path}: {error.strerror or error}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise ConfigurationError(f"--ctl-token-file {path}: others may read it; chmod 600 mends that")
    try:
        token = text.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not SHORTEST_TOKEN <= len(token) <= _MOST_BYTES or not token.isprintable() or " " in token:
        raise ConfigurationError(
            f"--ctl-token-file {path}: one token of {SHORTEST_TOKEN} characters or more, without spaces, is its content"
        )
    return token
