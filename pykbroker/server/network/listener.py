"""A listener accepts connections, closes the idle ones, and lets them finish at the end."""

from __future__ import annotations

import errno
import logging
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import trio

from ..runtime.log_lines import RateLimitedLog, printable
from ..runtime.loop_monitor import REQUESTER
from .client_memory import ClientMemory
from .connection import Connection, FrameDispatcher
from .connection_quotas import ConnectionQuotas
from .dispatch import Dispatcher
from .handlers import ConnectionState
from .lane import Lane, WithSocket
from .reached_address import reached_address
from .receive_buffer import BufferPool, ReceiveBuffer
from .request_metrics import RequestMetrics
from .sasl_gate import AUTHENTICATION_S, ListenerSasl
from .seeking_clients import SeekingClients
from .transport import Acceptor, Transport

if TYPE_CHECKING:  # a plaintext broker starts without the modules of TLS
    from .listener_tls import ListenerTls

_log = logging.getLogger(__name__)

_OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ACCEPT_RETRY_S = 0.1
_ACCEPTED_IN_A_TURN = 64
_IDLE_CHECKS = 4
_LOOK_FOR_PEERS_S = 5.0
_LOOKS_IN_A_TURN = 500
_MEMORY_LOOK_S = 1.0
_PATIENT_LOOKS = 10
_MOST_HELD = 1000
"""Connections beyond the rate of their address; more are closed at once."""

_held = attrgetter("request_bytes")
_unfinished = attrgetter("unfinished_bytes")
_unsent = attrgetter("unsent_bytes")
_idleness = attrgetter("idleness")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of a listener's connections come from the broker's configuration."""

    max_request_bytes: int  # socket.request.max.bytes
    max_idle_ms: int  # connections.max.idle.ms; negative: no limit
    drain_s: float = 2.0


class Listener:
    """The listener has a task for each connection, two for those that rest in its lane, and three keepers: for idle
    connections, for peers that have left, and for memory.

    tls: wraps each connection, and has the client's principal when hands are shaken; None without TLS. sasl: how
    clients authenticate; None where the listener asks nobody who he is. tells_reached: its clients are told the address
    of this node that they have reached, in the place of the one that is registered. seeking: notes who asks where to
    go, and who comes; None for the listeners of controllers. requests: counts them with those of other listeners.
    """

    def __init__(
        self,
        name: str,
        acceptor: Acceptor,
        dispatcher: Dispatcher[Any],
        limits: ConnectionLimits,
        pool: BufferPool,
        refusals: RateLimitedLog,
        quotas: ConnectionQuotas,
        tls: ListenerTls | None = None,
        sasl: ListenerSasl | None = None,
        *,
        tells_reached: bool = False,
        seeking: SeekingClients | None = None,
        requests: RequestMetrics | None = None,
    ) -> None:
        self.name = name
        self.created_connections = self.closed_connections = self.refused_connections = 0
        self._requests = requests or RequestMetrics()
        self._tls = tls
        self._acceptor = acceptor
        self._dispatcher = dispatcher
        self._limits = limits
        self._pool = pool
        self._memory = pool.memory
        self._memory.on_excess.append(self._relieve_memory)
        self._refusals = refusals
        self._sasl = sasl
        self._tells_reached = tells_reached
        self._seeking = seeking
        self._quotas = quotas
        quotas.close_least_used[name] = self._close_least_used
        self._held = 0
        self._lane = Lane()
        self._has_lane = False
        self._accepting = trio.CancelScope()
        self._connections: dict[Connection, str] = {}

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def throttled_connections(self) -> int:
        """Connections that wait to be closed, since their address came too fast."""
        return self._held

    @property
    def memory(self) -> ClientMemory:
        """The memory that connections of this listener and of others share."""
        return self._memory

    @property
    def buffered_bytes(self) -> int:
        """Memory in receive buffers that connections hold now."""
        return sum(connection.buffered_bytes for connection in self._connections)

    async def serve(self) -> None:
        """Serve until `stop`; then requests in hand get their answer, as long as that does not take too long."""
        try:
            await self._serve_until_stopped()
        finally:
            self._memory.on_excess.remove(self._relieve_memory)

    async def _serve_until_stopped(self) -> None:
        async with trio.open_nursery() as connections:
            with self._accepting:
                async with trio.open_nursery() as keepers:
                    keepers.start_soon(self._close_idle_connections)
                    keepers.start_soon(self._look_for_peers)
                    keepers.start_soon(self._keep_memory)
                    await self._accept_connections(connections, keepers)
            for connection in list(self._connections):
                connection.finish()
            connections.cancel_scope.deadline = trio.current_time() + self._limits.drain_s

    def stop(self) -> None:
        self._acceptor.close()
        self._accepting.cancel()

    async def _accept_connections(self, connections: trio.Nursery, keepers: trio.Nursery) -> None:
        while True:
            await trio.lowlevel.checkpoint()  # a flood of connections must not starve those that are there
            try:
                await self._admit(await self._acceptor.accept(), connections, keepers)
                for _ in range(_ACCEPTED_IN_A_TURN - 1):
                    if (transport := self._acceptor.accept_now()) is None:
                        break
                    await self._admit(transport, connections, keepers)
            except trio.ClosedResourceError:
                return
            except OSError as error:
                if error.errno not in _OUT_OF_DESCRIPTORS:
                    raise
                self._refusals.warning("listener %s accepts no connections for now: %s", self.name, error.strerror)
                await trio.sleep(_ACCEPT_RETRY_S)

    async def _admit(self, transport: Transport, connections: trio.Nursery, keepers: trio.Nursery) -> None:
        try:
            await self._quotas.until_admitted(self.name)
        except BaseException:
            transport.close()
            raise
        host = transport.peer.host
        delay_ms = self._quotas.address_delay_ms(self.name, host)
        if delay_ms and self._held < _MOST_HELD:
            self._held += 1
            keepers.start_soon(self._close_later, transport, delay_ms / 1000)
        elif not delay_ms and self._quotas.enter(self.name, host):
            if self._tls is not None:
                transport = self._tls.wrap(transport)
            if not self._has_lane and isinstance(transport, WithSocket):
                self._has_lane = True
                keepers.start_soon(self._lane.run)
            connections.start_soon(self._serve_connection, self._register(transport), transport)
        else:
            self.refused_connections += 1
            self._refusals.warning("closed %s on listener %s: too many connections", transport.peer, self.name)
            transport.close()

    async def _close_later(self, transport: Transport, delay_s: float) -> None:
        """Keep a client that comes too fast from coming again at once (KIP-612)."""
        try:
            await trio.sleep(delay_s)
        finally:
            self._held -= 1
            transport.close()

    def _register(self, transport: Transport) -> Connection:
        host = transport.peer.host
        buffer = ReceiveBuffer(self._pool, self._limits.max_request_bytes)
        state = ConnectionState(
            listener_name=self.name, client_address=host, seeking=self._seeking, transport=transport
        )
        if self._tells_reached:
            state.reached = reached_address(transport.local)
        dispatcher: FrameDispatcher = self._dispatcher
        if self._sasl is not None:
            state.authentication = trio.CancelScope()
            dispatcher = self._sasl.gate(self._dispatcher, buffer, state.authentication)
        self.created_connections += 1
        connection = Connection(
            transport,
            state,
            dispatcher,
            buffer,
            self._refusals,
            self._memory,
            self._requests,
            self._dispatcher if self._sasl is None else None,
            self._lane if isinstance(transport, WithSocket) else None,
        )
        self._connections[connection] = host
        return connection

    async def _serve_connection(self, connection: Connection, transport: Transport) -> None:
        REQUESTER.set(connection.state)
        try:
            if self._tls is None or await self._shake_hands(self._tls, connection, transport):
                await self._serve(connection, transport)
        except Exception:
            _log.exception("connection of %s on listener %s failed", transport.peer, self.name)
        finally:
            self.closed_connections += 1
            self._quotas.leave(self.name, self._connections.pop(connection))

    def _close_least_used(self) -> bool:
        """Close the connection that has been idle for longest: others need its place. False where all are in use."""
        idle = [connection for connection in self._connections if connection.is_idle]
        if not idle:
            return False
        max(idle, key=_idleness).evict("is idle, and there are more connections than max.connections")
        return True

    async def _serve(self, connection: Connection, transport: Transport) -> None:
        if self._sasl is None:
            await connection.serve()
        elif not await self._sasl.serve(connection):
            reason = f"has not authenticated within {AUTHENTICATION_S:g} s"
            self._refusals.warning("closed %s on listener %s: %s", transport.peer, self.name, reason)

    async def _shake_hands(self, tls: ListenerTls, connection: Connection, transport: Transport) -> bool:
        """Return False where the connection has been closed, which is logged unless the peer itself has left."""
        from .tls_transport import HandshakeFailed, TlsTransport

        assert isinstance(transport, TlsTransport)
        try:
            await transport.shake_hands()
            if self._sasl is None:
                connection.state.principal = tls.principal(transport)
        except HandshakeFailed as failure:
            reason = printable(str(failure))
            self._refusals.warning("closed %s on listener %s: %s", transport.peer, self.name, reason)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        except BaseException:
            transport.close()
            raise
        else:
            return True
        transport.close()
        return False

    async def _look_for_peers(self) -> None:
        while True:
            await trio.sleep(_LOOK_FOR_PEERS_S)
            for number, connection in enumerate(list(self._connections)):
                connection.look_for_peer()
                if not (number + 1) % _LOOKS_IN_A_TURN:
                    await trio.lowlevel.checkpoint()

    async def _keep_memory(self) -> None:
        """Close connections while requests wait for memory: those that hold some and bring nothing, the greediest
        first.

        Where all bring something and somebody has waited for long, the greediest of all has to go.
        """
        memory, waited = self._memory, 0
        while True:
            await memory.until_wanted()
            for connection in self._connections:
                connection.note_progress()
            await trio.sleep(_MEMORY_LOOK_S)
            waited = waited + 1 if memory.is_wanted else 0
            if not waited:
                continue
            stuck = [connection for connection in self._connections if connection.is_stuck]
            stuck.sort(key=_held, reverse=True)
            for connection in stuck:
                if memory.request_bytes <= memory.request_limit_bytes // 2:
                    break
                connection.evict(f"holds {connection.request_bytes} bytes of a request that does not come, others wait")
            if not stuck and waited >= _PATIENT_LOOKS and self._connections:
                greediest = max(self._connections, key=_held)
                greediest.evict(f"holds {greediest.request_bytes} bytes of a request, others wait for long")
            memory.retry()

    def _relieve_memory(self) -> None:
        memory = self._memory
        if memory.has_too_many_answers:
            for connection in sorted(self._connections, key=_unsent, reverse=True):
                if memory.answer_bytes <= memory.answer_limit_bytes // 2 or not connection.unsent_bytes:
                    break
                connection.evict(f"did not take {connection.unsent_bytes} bytes of an answer, and memory is short")
        if memory.has_too_many_requests:
            for connection in sorted(self._connections, key=_unfinished, reverse=True):
                if memory.request_bytes <= memory.request_limit_bytes or not connection.unfinished_bytes:
                    break
                connection.evict(f"holds {connection.unfinished_bytes} bytes of a request, and memory is short")

    async def _close_idle_connections(self) -> None:
        """A connection without progress is closed after one period to one and a quarter."""
        if self._limits.max_idle_ms < 0:
            return
        interval_s = max(self._limits.max_idle_ms, 1) / 1000 / _IDLE_CHECKS
        while True:
            await trio.sleep(interval_s)
            for connection in list(self._connections):
                connection.close_if_idle(_IDLE_CHECKS)
