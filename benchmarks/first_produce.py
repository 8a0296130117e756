"""The shortest way from a starting process to an acknowledged record: a plain socket and three requests."""

from __future__ import annotations

import time

from benchmarks.brokers import spawn
from compat_tests.brokers import START_DEADLINE_S, BrokerFailed, BrokerProcess
from compat_tests.raw_client import RawClient, Refused, produce_request

TOPIC = "first"


def time_to_first_produce_s(broker: BrokerProcess) -> float:
    """Starts the broker and tries until one record is acknowledged by acks=all. Raises BrokerFailed."""
    started = time.perf_counter()
    spawn(broker)
    while True:
        try:
            with RawClient(broker.address) as client:
                client.create_topic(TOPIC)
                client.produce(produce_request(TOPIC, b"first"))
                return time.perf_counter() - started
        except (ConnectionError, Refused):
            if time.perf_counter() - started > START_DEADLINE_S or (
                broker.process and broker.process.poll() is not None
            ):
                raise BrokerFailed(f"{broker.kind} acknowledged nothing:\n{broker.log_tail()}") from None
            time.sleep(0.002)
