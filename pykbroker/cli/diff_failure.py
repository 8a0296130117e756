"""The failures of `pykbroker diff`, which end with 2, bad flags included."""

from __future__ import annotations

from .command import ClientCommand, CommandFailed

COULD_NOT_RUN = 2


class Failed(CommandFailed):
    """Ends with 2, since 1 says that there are differences."""

    exit_code = COULD_NOT_RUN


class DiffCommand(ClientCommand):
    """A command whose bad flags are one line and exit code 2."""

    failure = Failed
