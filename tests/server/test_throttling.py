"""A client beyond its quotas gets its answer with its throttle time, and nothing more until that is over (KIP-219)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
import trio.lowlevel

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.messages.groups import HeartbeatRequest, HeartbeatResponse
from pykbroker.protocol.messages.produce import ProduceRequest, ProduceResponse
from pykbroker.protocol.schema import Message
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.quotas.entities import ClientQuotaEntity
from pykbroker.quotas.rate import QuotaWindows
from pykbroker.server.network.handlers import ConnectionState, HandlerTable, RequestContext
from pykbroker.server.network.needs import NOTHING
from pykbroker.server.network.request_meter import RequestMeter, Timed
from pykbroker.server.network.throttling import Throttling
from tests.server.serving import Client, Served, Server, limits

EVERYBODY: ClientQuotaEntity = frozenset({("user", "ANONYMOUS")})
PRODUCE_VERSION = 9
BYTES = 100
"""Of a request's frame, less than that of `produce`."""


def quotas(**values: float) -> ClientQuotas:
    found = ClientQuotas(QuotaWindows(), QuotaWindows())
    found.change(EVERYBODY, values)
    return found


def produce(size: int = BYTES, acks: int = 1) -> ProduceRequest:
    return ProduceRequest(transactional_id="x" * size, acks=acks)


class Producers:
    """A handler that counts requests."""

    def __init__(self) -> None:
        self.served = 0
        self.table = HandlerTable[Any]("broker")

        @self.table.handles(ProduceRequest, needs=NOTHING)
        async def handle(context: RequestContext[Any], request: ProduceRequest) -> ProduceResponse | None:
            await trio.lowlevel.checkpoint()
            self.served += 1
            return ProduceResponse() if request.acks else None

        @self.table.handles(HeartbeatRequest, needs=NOTHING)
        async def heartbeat(context: RequestContext[Any], request: HeartbeatRequest) -> HeartbeatResponse:
            await trio.lowlevel.checkpoint()
            return HeartbeatResponse(throttle_time_ms=request.generation_id)


async def throttle_ms(client: Client, request: Message) -> int:
    response: Any = await client.ask(request, PRODUCE_VERSION)
    assert isinstance(response, ProduceResponse)
    return response.throttle_time_ms


def test_the_answer_comes_at_once_and_the_next_one_when_the_time_is_over(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        began_s = trio.current_time()
        told_ms = await throttle_ms(client, produce(5_000))
        assert told_ms > 30_000, "5,000 bytes at 100 a second take 50 seconds, 10 of which the windows allow"
        assert trio.current_time() - began_s < 1
        assert await throttle_ms(client, produce(0)) == 0
        assert trio.current_time() - began_s >= told_ms / 1000

    simulated_server.run(Producers().table, scenario, quotas=partial(quotas, producer_byte_rate=100.0))


def test_many_requests_reach_their_rate(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        began_s = trio.current_time()
        size = len(produce(1_000).transactional_id or "")
        for _ in range(200):
            await throttle_ms(client, produce(1_000))
        rate = 200 * size / (trio.current_time() - began_s)
        assert 800 < rate < 1_200

    simulated_server.run(Producers().table, scenario, quotas=partial(quotas, producer_byte_rate=1_000.0))


def test_what_came_meanwhile_is_served_afterwards(server: Server) -> None:
    producers = Producers()

    async def scenario(served: Served) -> None:
        client = await served.connect()
        for size in (1_100, 0, 0):
            await client.send(produce(size), PRODUCE_VERSION)
        told = [(await client.receive(ApiKey.PRODUCE, PRODUCE_VERSION))[1] for _ in range(3)]
        assert all(isinstance(each, ProduceResponse) and each.throttle_time_ms > 0 for each in told)
        assert producers.served >= 3

    server.run(producers.table, scenario, quotas=partial(quotas, producer_byte_rate=100.0))


def test_without_an_answer_the_client_is_muted_all_the_same(simulated_server: Server) -> None:
    producers = Producers()

    async def scenario(served: Served) -> None:
        client = await served.connect()
        began_s, before = trio.current_time(), producers.served
        await client.send(produce(5_000, acks=0), PRODUCE_VERSION)
        await client.send(produce(0, acks=0), PRODUCE_VERSION)
        await trio.sleep(10)
        assert producers.served == before + 1
        await eventually_served(producers, before + 2)
        assert trio.current_time() - began_s > 30

    simulated_server.run(producers.table, scenario, quotas=partial(quotas, producer_byte_rate=100.0))


async def eventually_served(producers: Producers, count: int) -> None:
    while producers.served < count:  # noqa: ASYNC110 - time is virtual
        await trio.sleep(1)


def test_a_muted_client_holds_no_memory_and_goes_when_it_leaves(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        assert await throttle_ms(client, produce(30_000)) > 60_000
        assert served.listener.buffered_bytes == 0
        client.transport.close()
        with trio.fail_after(20):
            while served.listener.connection_count:  # noqa: ASYNC110 - time is virtual
                await trio.sleep(1)

    simulated_server.run(Producers().table, scenario, quotas=partial(quotas, producer_byte_rate=100.0))


def test_a_muted_client_does_not_keep_the_broker_from_stopping(server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        assert await throttle_ms(client, produce(30_000)) > 60_000
        served.listener.stop()
        assert await client.is_closed()

    server.run(Producers().table, scenario, quotas=partial(quotas, producer_byte_rate=100.0))


def test_the_time_in_which_a_client_is_muted_counts_as_idle(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        assert await throttle_ms(client, produce(30_000)) > 60_000
        with trio.fail_after(60):
            assert await client.is_closed()

    simulated_server.run(
        Producers().table, scenario, limits(max_idle_ms=20_000), quotas=partial(quotas, producer_byte_rate=100.0)
    )


def test_what_a_controller_said_of_its_quota_mutes_too(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        began_s = trio.current_time()
        answer = await client.ask(HeartbeatRequest(group_id="g", generation_id=7_000, member_id="m"), 4)
        assert answer == HeartbeatResponse(throttle_time_ms=7_000)
        await client.ask(HeartbeatRequest(group_id="g", member_id="m"), 4)
        assert trio.current_time() - began_s >= 7

    simulated_server.run(Producers().table, scenario, quotas=partial(quotas, controller_mutation_rate=1.0))


def test_without_quotas_nobody_is_muted(simulated_server: Server) -> None:
    async def scenario(served: Served) -> None:
        client = await served.connect()
        began_s = trio.current_time()
        await client.ask(HeartbeatRequest(group_id="g", generation_id=7_000, member_id="m"), 4)
        assert await throttle_ms(client, produce(30_000)) == 0
        assert trio.current_time() - began_s < 1

    simulated_server.run(Producers().table, scenario)


# Time


class Nanos:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class NoClock:
    def now_ms(self) -> int:
        return 0

    def monotonic_ms(self) -> int:
        return 0


def meter_of(found: ClientQuotas, nanos: Callable[[], int]) -> RequestMeter:
    meter = RequestMeter(found, NoClock(), nanos, ConnectionState("PLAINTEXT", "127.0.0.1"))
    meter.begin(BYTES)
    return meter


def test_a_request_costs_what_it_holds_the_loop_for_and_not_what_it_waits_for() -> None:
    nanos = Nanos()
    meter = meter_of(quotas(request_percentage=1.0), nanos)

    async def work() -> str:
        nanos.now += 30
        await trio.lowlevel.checkpoint()
        nanos.now += 12
        with pytest.raises(trio.ClosedResourceError):
            await wait_in_vain()
        nanos.now += 1
        return "done"

    async def wait_in_vain() -> None:
        await trio.lowlevel.checkpoint()
        raise trio.ClosedResourceError

    async def run() -> str:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(others)
            return await Timed(work, meter)

    async def others() -> None:
        for _ in range(5):
            nanos.now += 10**9
            await trio.lowlevel.checkpoint()

    assert trio.run(run) == "done"
    assert meter.spent_ns == 43


def test_a_cancelled_request_ends_its_measured_steps() -> None:
    async def run() -> None:
        with trio.move_on_after(0.01) as scope:
            await Timed(trio.sleep_forever, meter_of(quotas(request_percentage=1.0), Nanos()))
        assert scope.cancelled_caught

    trio.run(run)


def test_a_client_beyond_its_share_of_the_loop_is_throttled_for_a_window_at_most() -> None:
    nanos = Nanos()
    connection = ConnectionState("PLAINTEXT", "127.0.0.1")
    throttling = Throttling(quotas(request_percentage=10.0), NoClock(), nanos=nanos)
    response = HeartbeatResponse()

    async def ask(spent_ns: int) -> int:
        meter = throttling.begin(connection, BYTES)
        assert meter is connection.meter

        async def work() -> HeartbeatResponse:
            nanos.now += spent_ns
            meter.settle(ApiKey.HEARTBEAT, HeartbeatRequest(), response)
            nanos.now += 2
            return response

        connection.throttle_ms = response.throttle_time_ms = 0
        await Timed(work, meter)
        assert connection.throttle_ms == response.throttle_time_ms
        assert meter.spent_ns == 2, "what comes behind the answer counts with the next request"
        return connection.throttle_ms

    async def run() -> list[int]:
        return [await ask(spent_ns) for spent_ns in (10**9 - 1, 10**8, 10**10)]

    assert trio.run(run) == [0, 1_000, 1_000], "a second in ten is 10 %; 1.1 seconds are 1 second too many"


def test_a_producer_that_wants_no_answer_pays_for_bytes_alone() -> None:
    nanos = Nanos()
    meter = meter_of(quotas(request_percentage=0.001, producer_byte_rate=1.0), nanos)
    meter.step_ns, nanos.now = 0, 10**9
    connection = meter._connection
    meter.settle(ApiKey.PRODUCE, produce(acks=0), None)
    assert connection.throttle_ms == 90_000, "of bytes: 100 at one a second, less ten seconds"
    meter.settle(ApiKey.PRODUCE, produce(acks=1), ProduceResponse())
    assert connection.throttle_ms == 190_000


@pytest.mark.parametrize("api_key", [ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.WRITE_TXN_MARKERS])
def test_authentication_and_other_brokers_markers_cost_nothing(api_key: ApiKey) -> None:
    nanos = Nanos()
    meter = meter_of(quotas(request_percentage=0.001), nanos)
    meter.step_ns, nanos.now = 0, 10**9
    meter.settle(api_key, None, HeartbeatResponse())
    assert meter._connection.throttle_ms == 0
    meter.settle(ApiKey.HEARTBEAT, None, HeartbeatResponse())
    assert meter._connection.throttle_ms == 1_000


def test_quotas_that_come_while_a_request_waits_do_not_disturb_it(simulated_server: Server) -> None:
    found = ClientQuotas(QuotaWindows(), QuotaWindows())
    table = HandlerTable[Any]("broker")

    @table.handles(HeartbeatRequest, needs=NOTHING)
    async def heartbeat(context: RequestContext[Any], request: HeartbeatRequest) -> HeartbeatResponse:
        found.change(EVERYBODY, {"request_percentage": 0.0001})
        await trio.sleep(1)
        found.change(EVERYBODY, None)
        return HeartbeatResponse()

    async def scenario(served: Served) -> None:
        client = await served.connect()
        for _ in range(3):
            assert await client.ask(HeartbeatRequest(group_id="g", member_id="m"), 4) == HeartbeatResponse()

    simulated_server.run(table, scenario, quotas=lambda: found)
