"""Logs that grow: what a start takes, and what it costs to find an offset by its time and to read at an offset.

The logs are sparse (`sparse_logs`): a broker that stopped cleanly is given their files while it is away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from random import Random

from benchmarks.bench import Bench, Figures
from benchmarks.brokers import cpu_seconds, rss_bytes
from benchmarks.growing import curve, points
from benchmarks.sparse_logs import SparseLog, write_recovery_points
from benchmarks.starts import create, start, stop
from compat_tests.raw_client import RawClient
from pykbroker.protocol.compile import decode
from pykbroker.protocol.framing import encode_request
from pykbroker.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from pykbroker.protocol.messages.offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from pykbroker.protocol.records.batch import decode_batch_header

GIGABYTES = (1, 10, 100)
PLACES = 500
"""In the log, which are asked for again and again; and as many others, each of which is read once."""
PASSES = 10
LEAST_PASSES = 3
FETCH_BYTES = 200
"""Enough for a small record, and not for what is behind it."""
_LIST_VERSION = 5
_FETCH_VERSION = 11
_BODY = 4

Asked = tuple[bytes, Callable[[bytes], None]]
"""A request, and the check of its answer."""


def log_size(bench: Bench) -> Figures:
    """One partition of 1, 10, 100 GB in segments of 1 GB: a clean start; ListOffsets with times and Fetch at offsets of
    500 random places, again and again; and a first Fetch at 500 others, for which a broker may have more to do.
    """
    costs: dict[str, dict[int, float]] = {}
    for gigabytes in points(GIGABYTES, bench.scale):
        for figure, cost in _measure(bench, gigabytes).items():
            costs.setdefault(figure, {})[gigabytes] = cost
    figures: Figures = {}
    for figure, of_each in costs.items():
        figures |= curve(figure, of_each)
    return figures


def _measure(bench: Bench, gigabytes: int) -> dict[str, float]:
    broker = bench.broker
    topic = f"sparse-{gigabytes}"
    log = SparseLog(gigabytes, first_ms=int(time.time() * 1000) - 1000 * 86_400_000)
    create(bench, {topic: 1})
    bench.configure_topic(topic, {"retention.ms": "-1"})
    stop(broker)
    log.write(broker.data_directory / f"{topic}-0")
    write_recovery_points(broker.data_directory, [(topic, log.end_offset)])
    started_s = start(broker, 1, log.end_offset)
    start_cpu_s = cpu_seconds(broker)
    passes = max(int(PASSES * min(bench.scale, 1.0)), LEAST_PASSES)
    places = Random(gigabytes).sample(range(log.blocks), 2 * PLACES)
    known = [log.small_record(block) for block in places[:PLACES]]
    others = [log.small_record(block) for block in places[PLACES:]]
    times = [_by_time(topic, *place) for place in known]
    fetches = [_at_offset(topic, *place) for place in known]
    with RawClient(broker.address) as client:
        _ask(client, fetches * passes + times * passes)  # Kafka's code is compiled meanwhile
        found = {
            "CPU µs/lookup by time": _cpu_us_of_each(bench, client, times * passes),
            "CPU µs/fetch": _cpu_us_of_each(bench, client, fetches * passes),
            "CPU µs/first fetch": _cpu_us_of_each(bench, client, [_at_offset(topic, *place) for place in others]),
        }
    memory = rss_bytes(broker) / 1e6
    bench.delete_topic(topic)
    return {"start s": started_s, "start CPU s": start_cpu_s, **found, "RSS MB": memory}


def _cpu_us_of_each(bench: Bench, client: RawClient, requests: Sequence[Asked]) -> float:
    before = cpu_seconds(bench.broker)
    _ask(client, requests)
    return (cpu_seconds(bench.broker) - before) * 1e6 / len(requests)


def _ask(client: RawClient, requests: Iterable[Asked]) -> None:
    for request, check in requests:
        check(client.call(request))


def _by_time(topic: str, offset: int, time_ms: int) -> Asked:
    partition = ListOffsetsPartition(partition_index=0, timestamp=time_ms)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[partition])])

    def check(answer: bytes) -> None:
        response, _ = decode(ListOffsetsResponse, _LIST_VERSION, answer, _BODY)
        found = response.topics[0].partitions[0]
        assert (found.error_code, found.offset, found.timestamp) == (0, offset, time_ms), f"{found} of {offset}"

    return encode_request(request, _LIST_VERSION, 1, "bench"), check


def _at_offset(topic: str, offset: int, time_ms: int) -> Asked:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    request = FetchRequest(max_bytes=FETCH_BYTES, topics=[FetchTopic(topic=topic, partitions=[partition])])

    def check(answer: bytes) -> None:
        response, _ = decode(FetchResponse, _FETCH_VERSION, answer, _BODY)
        found = response.responses[0].partitions[0]
        assert found.error_code == 0, f"a fetch at {offset} was answered with {found.error_code}"
        assert isinstance(found.records, bytes | memoryview)
        header = decode_batch_header(found.records)
        assert (header.base_offset, header.max_timestamp) == (offset, time_ms), f"{header} at {offset}"

    return encode_request(request, _FETCH_VERSION, 1, "bench"), check


LOG_GROWTH = {"growth: size of a log": log_size}
