"""A command that asks control names a broker's control, and a token where there is one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .command import CommandFailed, one_line

if TYPE_CHECKING:
    from pykbroker.control.http.asking import ControlClient


@dataclass(frozen=True, slots=True)
class ControlTarget:
    """The control that is asked. address: `HOST:PORT`. token_file: None where it asks for no token."""

    address: str
    token_file: Path | None

    def client(self) -> ControlClient:
        """Raises CommandFailed for a file that has no token."""
        from pykbroker.config import ConfigurationError
        from pykbroker.control.http.asking import ControlClient
        from pykbroker.control.http.token_file import read_token

        try:
            return ControlClient(self.address, None if self.token_file is None else read_token(self.token_file))
        except ConfigurationError as error:
            raise CommandFailed(one_line(error)) from None
