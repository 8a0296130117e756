"""A producer at a steady rate and a consumer of what Spark has copied, in a process of their own.

`python -m benchmarks.spark_latency BOOTSTRAP TOPIC COPY RATE SECONDS` prints p50 and p99 of the records' latencies in
milliseconds, from their send to the copies' arrival, once the first copy is there.
"""

from __future__ import annotations

import json
import struct
import sys
import threading
import time

from confluent_kafka import Consumer, Producer

_TIME = struct.Struct(">q")
_RECORD_BYTES = 100
_PADDING = b"x" * (_RECORD_BYTES - _TIME.size)
_TURN_S = 0.01
_WAIT_S = 120.0


def send(producer: Producer, topic: str, rate: int, seconds: float) -> int:
    """Records of 100 B that begin with their time; how many there are."""
    started = time.perf_counter()
    sent = 0
    while (passed := time.perf_counter() - started) < seconds:
        while sent < passed * rate:
            producer.produce(topic, _TIME.pack(time.time_ns()) + _PADDING)
            sent += 1
        producer.poll(0)
        time.sleep(_TURN_S)
    producer.flush(_WAIT_S)
    return sent


def receive(consumer: Consumer, latencies: list[int], done: threading.Event) -> None:
    """Note how old each record is; those that a topic began with are none of them."""
    while not done.is_set():
        messages = consumer.consume(2000, timeout=0.1)
        now = time.time_ns()
        values = (message.value() for message in messages if not message.error())
        latencies += [now - _TIME.unpack_from(value)[0] for value in values if len(value) == _RECORD_BYTES]


def percentile(latencies: list[int], part: float) -> float:
    """In milliseconds."""
    return sorted(latencies)[int(len(latencies) * part)] / 1e6


def main(bootstrap: str, topic: str, copy: str, rate: int, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"{copy}-latency", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([copy])
    deadline = time.monotonic() + _WAIT_S
    while not consumer.assignment():
        assert time.monotonic() < deadline, "the consumer has no partitions"
        consumer.poll(0.1)
    latencies: list[int] = []
    done = threading.Event()
    receiver = threading.Thread(target=receive, args=(consumer, latencies, done))
    receiver.start()
    warming = send(producer, topic, rate, 10.0)
    _await(latencies, warming)
    latencies.clear()
    _await(latencies, send(producer, topic, rate, seconds))
    done.set()
    receiver.join()
    consumer.close()
    print(json.dumps({"p50 ms": percentile(latencies, 0.5), "p99 ms": percentile(latencies, 0.99)}))


def _await(latencies: list[int], count: int) -> None:
    deadline = time.monotonic() + _WAIT_S
    while len(latencies) < count:
        assert time.monotonic() < deadline, f"{len(latencies)} of {count} copies have come"
        time.sleep(_TURN_S)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]), float(sys.argv[5]))
