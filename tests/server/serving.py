"""A listener with handlers of a test's own, on real sockets or on the simulated network."""

from __future__ import annotations

import logging
import random
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import trio

from pykbroker.config import BrokerConfig
from pykbroker.protocol.api_keys import response_type
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import decode_response_header, encode_request
from pykbroker.protocol.schema import Message
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.server.network.client_memory import ClientMemory
from pykbroker.server.network.connection_quotas import ConnectionQuotas
from pykbroker.server.network.dispatch import Dispatcher
from pykbroker.server.network.handlers import HandlerTable
from pykbroker.server.network.host_addresses import HostAddresses
from pykbroker.server.network.listener import ConnectionLimits, Listener
from pykbroker.server.network.listener_tls import ListenerTls
from pykbroker.server.network.receive_buffer import BufferPool
from pykbroker.server.network.sasl_gate import ListenerSasl
from pykbroker.server.network.socket_transport import SocketNetwork, SocketOptions
from pykbroker.server.network.throttling import Throttling
from pykbroker.server.network.transport import Network, Transport
from pykbroker.server.runtime.clock import Clock, SystemClock
from pykbroker.server.runtime.log_lines import RateLimitedLog
from pykbroker.server.runtime.threads import OnTheLoop, Threads, WorkerThreads
from pykbroker.sim.clock import SimulatedClock
from pykbroker.sim.determinism import run_deterministic
from pykbroker.sim.network import SimulatedNetwork
from pykbroker.storage.files.errors import FileError

refusals_log = logging.getLogger("pykbroker.refusals")


@dataclass
class Client:
    """Speaks the protocol over one connection, in raw bytes where a test wants that."""

    transport: Transport
    correlation_id: int = 0

    async def send(self, request: Message, version: int) -> None:
        self.correlation_id += 1
        await self.transport.send([encode_request(request, version, self.correlation_id, "test")])

    async def receive_frame(self) -> bytes:
        """Raises EOFError at the end of the stream."""
        (size,) = struct.unpack(">i", await self.receive_exactly(4))
        return await self.receive_exactly(size)

    async def receive(self, api_key: int, version: int) -> tuple[int, Message]:
        frame = await self.receive_frame()
        correlation_id, body = decode_response_header(frame, api_key, version)
        return correlation_id, decode(response_type(api_key), version, frame, body)[0]

    async def ask(self, request: Message, version: int) -> Message:
        await self.send(request, version)
        api_key = request.__schema__.api_key
        assert api_key is not None
        correlation_id, response = await self.receive(api_key, version)
        assert correlation_id == self.correlation_id
        return response

    async def receive_exactly(self, size: int) -> bytes:
        data = bytearray(size)
        view = memoryview(data)
        while len(view):
            count = await self.transport.receive_into(view)
            if not count:
                raise EOFError
            view = view[count:]
        return bytes(data)

    async def is_closed(self) -> bool:
        """Wait for the end of the stream, which must come without another byte."""
        try:
            return await self.transport.receive_into(memoryview(bytearray(1))) == 0
        except trio.BrokenResourceError:
            return True


@dataclass
class Served:
    listener: Listener
    network: Network
    port: int
    pool: BufferPool
    clients: list[Client]
    connections: ConnectionQuotas

    async def connect(self) -> Client:
        client = Client(await self.network.connect("127.0.0.1", self.port))
        self.clients.append(client)
        return client


def limits(**changes: int | float) -> ConnectionLimits:
    values = {
        "max_request_bytes": 100 * 1024 * 1024,
        "max_idle_ms": 600_000,
    }
    return ConnectionLimits(**{**values, **changes})  # type: ignore[arg-type]


async def eventually(condition: Callable[[], bool]) -> None:
    with trio.fail_after(5):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await trio.sleep(0.001)


def connection_quotas(listener: str, clock: Clock, properties: Mapping[str, str] | None = None) -> ConnectionQuotas:
    """The limits of one listener's connections. properties: of the broker."""
    return ConnectionQuotas(
        BrokerConfig(properties or {}),
        [listener],
        protected=None,
        windows=QuotaWindows(),
        clock=clock,
        hosts=HostAddresses(OnTheLoop()),
    )


def dispatcher_of(
    handlers: HandlerTable[Any],
    threads: Threads | None = None,
    *,
    kind: type[Dispatcher[Any]] = Dispatcher,
    quotas: ClientQuotas | None = None,
    clock: Clock | None = None,
) -> Dispatcher[Any]:
    """For handlers that ask nothing of a node, and answers without files."""
    throttling = None if quotas is None else Throttling(quotas, clock or SystemClock())
    return kind(None, handlers, threads or OnTheLoop(), disk_failed=_unexpected, throttling=throttling)


def _unexpected(failure: FileError) -> None:
    raise failure


@dataclass
class Made:
    """What a server is made of besides its listener."""

    properties: Mapping[str, str]
    quotas: Callable[[], ClientQuotas] | None


class Server:
    """Runs scenarios against a listener, in real or in simulated time."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    @property
    def is_simulated(self) -> bool:
        return self.kind == "simulated"

    def run(
        self,
        handlers: HandlerTable,
        scenario: Callable[[Served], Awaitable[None]],
        connection_limits: ConnectionLimits | None = None,
        *,
        memory: Callable[[], ClientMemory] = ClientMemory,
        sasl: Callable[[Clock], ListenerSasl] | None = None,
        tls: ListenerTls | None = None,
        properties: Mapping[str, str] | None = None,
        quotas: Callable[[], ClientQuotas] | None = None,
    ) -> None:
        """properties: of the broker, which limit connections. quotas: makes those of its clients."""
        made = Made(properties or {}, quotas)

        async def on_sockets() -> None:
            with trio.fail_after(10):
                await self._serve(
                    SocketNetwork(SocketOptions(), WorkerThreads()),
                    handlers,
                    scenario,
                    connection_limits,
                    memory(),
                    made,
                    sasl,
                    tls,
                )

        async def simulated(seed: int) -> None:
            network = SimulatedNetwork(random.Random(seed))
            await self._serve(network, handlers, scenario, connection_limits, memory(), made, sasl, tls)

        if self.is_simulated:
            for seed in range(3):
                run_deterministic(simulated, seed, seed=seed)
        else:
            trio.run(on_sockets)

    async def _serve(
        self,
        network: Network,
        handlers: HandlerTable,
        scenario: Callable[[Served], Awaitable[None]],
        connection_limits: ConnectionLimits | None,
        memory: ClientMemory,
        made: Made,
        sasl: Callable[[Clock], ListenerSasl] | None,
        tls: ListenerTls | None,
    ) -> None:
        clock: Clock = SimulatedClock() if self.is_simulated else SystemClock()
        acceptor = await network.listen("127.0.0.1", 0)
        pool = BufferPool(memory)
        dispatcher = dispatcher_of(handlers, quotas=None if made.quotas is None else made.quotas(), clock=clock)
        refusals = RateLimitedLog(refusals_log, clock)
        connections = connection_quotas("PLAINTEXT", clock, made.properties)
        gates = None if sasl is None else sasl(clock)
        listener = Listener(
            "PLAINTEXT",
            acceptor,
            dispatcher,
            connection_limits or limits(),
            pool,
            refusals,
            connections,
            tls=tls,
            sasl=gates,
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(listener.serve)
            nursery.start_soon(connections.run)
            served = Served(listener, network, acceptor.address.port, pool, [], connections)
            await scenario(served)
            listener.stop()
            nursery.cancel_scope.cancel()
        for client in served.clients:
            client.transport.close()
