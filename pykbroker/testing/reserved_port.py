"""Ports of this machine that are kept for brokers which may be down for a while."""

from __future__ import annotations

from pykbroker.server.runtime import reserved_port

from .errors import BrokerFailed


class ReservedPort(reserved_port.ReservedPort):
    """A port as `pykbroker.server.runtime.reserved_port` has it. Raises BrokerFailed."""

    def __init__(self, host: str, port: int = 0) -> None:
        try:
            super().__init__(host, port)
        except OSError as error:
            raise BrokerFailed(f"cannot listen on {host}:{port}: {error.strerror or error}") from None
