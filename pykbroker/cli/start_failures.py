"""The one line about a start that failed: what is in the way, who it is, and what would help.

Not here: the reasons themselves, which the node raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykbroker.storage.files.errors import DirectoryLocked

from .command import one_line
from .holders import Holder, holder_of_port, is_listened_on, who_holds

if TYPE_CHECKING:
    from pykbroker.config import BrokerConfig
    from pykbroker.server.runtime.startup_error import PortInUse


def told_failure(failure: BaseException, config: BrokerConfig) -> str:
    """Return the line for what ended the start."""
    from pykbroker.server.runtime.startup_error import PortInUse
    from pykbroker.storage.directories.log_dirs import LOCK_FILE

    match failure:
        case PortInUse():
            return f"{one_line(failure)}{_who(_of_port(failure.port))}; {_other_port(failure, config)}"
        case DirectoryLocked():
            who = who_holds(failure.path, f"{failure.path}/{LOCK_FILE}")
            return f"the log directory {failure.path} is in use by {who}; --data-dir DIR takes another one"
        case _:
            return one_line(failure)


def _of_port(port: int) -> Holder | str:
    holder = holder_of_port(port)
    if holder is not None:
        return holder
    if is_listened_on(port):
        return "a process that is not visible from here: of another user, or outside of this container"
    return ""


def _who(holder: Holder | str) -> str:
    return f" by {holder}" if holder else ""


def _other_port(failure: PortInUse, config: BrokerConfig) -> str:
    client = config.listeners.client
    if client and failure.listener == client[0].name:
        return "--port N takes another one, --port 0 any that is free, and listeners= says which"
    return f"listeners= gives {failure.listener} another one"
