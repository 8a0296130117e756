"""The connections of an audit's clients, by numbers."""

from __future__ import annotations

from itertools import count
from weakref import WeakKeyDictionary, WeakValueDictionary

from pykbroker.server.network.handlers import ConnectionState


class Connections:
    """The connections to all nodes of an audit, as far as clients have asked by them."""

    def __init__(self) -> None:
        self._next = count(1)
        self._numbers: WeakKeyDictionary[ConnectionState, int] = WeakKeyDictionary()
        self._states: WeakValueDictionary[int, ConnectionState] = WeakValueDictionary()

    def number_of(self, connection: ConnectionState) -> int:
        """Return the number of a connection, which no other one has."""
        number = self._numbers.get(connection)
        if number is None:
            number = self._numbers[connection] = next(self._next)
            self._states[number] = connection
        return number

    def is_open(self, number: int) -> bool:
        """Tell whether both ends of a connection are there, as far as this one hears of the other."""
        connection = self._states.get(number)
        return connection is not None and connection.transport is not None and not connection.transport.has_peer_left()
