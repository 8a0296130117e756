"""The service manager that started this process, if it waits for word: systemd's `Type=notify`.

The protocol is a datagram to the socket in `NOTIFY_SOCKET` (`sd_notify(3)`); a name that begins with `@` is abstract.
"""

from __future__ import annotations

import logging
import os
import socket

_log = logging.getLogger(__name__)
VARIABLE = "NOTIFY_SOCKET"


def tell_service_manager(state: str) -> None:
    """Tell the service manager, if there is one. state: `READY=1`, say. A manager that is gone is no error."""
    address = os.environ.get(VARIABLE, "")
    if not address.startswith(("/", "@")):
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as notifying:
            notifying.sendto(state.encode(), f"\0{address[1:]}" if address.startswith("@") else address)
    except OSError as error:
        _log.warning("%s: %s is not told %s: %s", VARIABLE, address, state, error.strerror or error)
