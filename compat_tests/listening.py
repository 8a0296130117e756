"""Listeners that a broker opens after the one that answered first: Apache Kafka opens them one by one, in any order."""

from __future__ import annotations

import socket
from functools import partial

from compat_tests.waiting import until

_CONNECT_DEADLINE_S = 5.0


def until_it_listens(address: tuple[str, int]) -> None:
    until(partial(_listens, address), f"somebody listens at {address}")


def _listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=_CONNECT_DEADLINE_S).close()
    except ConnectionRefusedError:
        return False
    return True
