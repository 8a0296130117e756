"""What `pykbroker top` makes of two looks: rates, lags, and what it shows of them in little room."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from pykbroker.cli import top_requests, top_run
from pykbroker.cli.command import CommandFailed
from pykbroker.cli.top_observation import BrokerSeen, GroupSeen, LogDirSeen, Observation, Sample
from pykbroker.cli.top_rates import ClusterView, TopicRow, view_of
from pykbroker.cli.top_requests import DEFAULT_URL, RequestMetrics, RequestView, metrics_urls, totals_of
from pykbroker.cli.top_screen import Choice, SortKey, screen_lines
from pykbroker.cli.top_text import Snapshot, bytes_text, lag_text
from pykbroker.client.cluster import Cluster
from pykbroker.client.metadata import Node, PartitionMetadata, TopicMetadata
from pykbroker.protocol.topic_partition import TopicPartition

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)


def topic(name: str, *, partitions: int = 1, topic_id: bytes = b"1" * 16, isr: tuple[int, ...] = (1,)) -> TopicMetadata:
    rows = {index: PartitionMetadata(index, isr[0] if isr else -1, 0, (1, 2), isr, ()) for index in range(partitions)}
    return TopicMetadata(name, topic_id, False, rows)


def look(at_s: float, topics: list[TopicMetadata], ends: Mapping[str, int], **more: object) -> Observation:
    """ends: by `topic-partition`; they were seen when the look began."""
    samples = {TopicPartition(name.rsplit("-")[0], int(name.rsplit("-")[1])): end for name, end in ends.items()}
    found = Observation(
        at_s,
        brokers={1: BrokerSeen(Node(1, "h", 9092))},
        topics={each.name: each for each in topics},
        ends={of: Sample(end, at_s) for of, end in samples.items()},
    )
    return dataclasses.replace(found, **more)  # type: ignore[arg-type]


def rate_of(before: Observation | None, now: Observation) -> float | None:
    return view_of(before, now).topics[0].records_per_s


def test_a_rate_is_the_growth_of_all_partitions_in_the_time_between_two_looks() -> None:
    before = look(10, [topic("t", partitions=2)], {"t-0": 100, "t-1": 0})
    now = look(12, [topic("t", partitions=2)], {"t-0": 130, "t-1": 10})
    assert rate_of(before, now) == 20
    assert view_of(before, now).records_per_s == 20


def test_the_lag_of_a_share_group_is_what_its_coordinator_says_and_its_rate_that_of_its_start_offsets() -> None:
    at = TopicPartition("t", 0)

    def shared(start: int, lag: int, at_s: float) -> dict[str, GroupSeen]:
        return {"g": GroupSeen("g", "share", "Stable", {at: Sample(start, at_s)}, {at: lag})}

    before = look(10, [topic("t")], {"t-0": 100}, groups=shared(0, 90, 10))
    now = look(12, [topic("t")], {"t-0": 100}, groups=shared(30, 40, 12))
    (row,) = view_of(before, now).groups
    assert (row.kind, row.lag, row.is_partial) == ("share", 40, False)
    assert row.consumed_per_s == 15


def test_without_an_earlier_look_there_is_no_rate() -> None:
    assert rate_of(None, look(10, [topic("t")], {"t-0": 100})) is None


def test_a_topic_that_was_created_anew_has_no_rate_whatever_its_offsets_are() -> None:
    before = look(10, [topic("t", topic_id=b"1" * 16)], {"t-0": 100})
    for end in (5, 500):
        assert rate_of(before, look(12, [topic("t", topic_id=b"2" * 16)], {"t-0": end})) is None


def test_offsets_that_went_back_give_no_rate_and_spoil_no_other() -> None:
    before = look(10, [topic("t", partitions=2)], {"t-0": 100, "t-1": 100})
    assert rate_of(before, look(12, [topic("t", partitions=2)], {"t-0": 50, "t-1": 140})) == 20
    assert rate_of(before, look(12, [topic("t", partitions=2)], {"t-0": 50, "t-1": 40})) is None


def test_a_partition_that_came_in_between_counts_from_the_next_look_on() -> None:
    before = look(10, [topic("t")], {"t-0": 100})
    now = look(12, [topic("t", partitions=2)], {"t-0": 120, "t-1": 4_000})
    assert rate_of(before, now) == 10


def test_bytes_are_the_growth_of_the_leaders_logs_and_none_when_retention_deletes() -> None:
    sizes = {TopicPartition("t", 0): Sample(1_000, 10)}
    before = look(10, [topic("t")], {}, sizes=sizes)
    grown = view_of(before, look(12, [topic("t")], {}, sizes={TopicPartition("t", 0): Sample(5_000, 12)}))
    assert (grown.topics[0].bytes_per_s, grown.topics[0].size_bytes) == (2_000, 5_000)
    shrunk = view_of(before, look(12, [topic("t")], {}, sizes={TopicPartition("t", 0): Sample(10, 12)}))
    assert (shrunk.topics[0].bytes_per_s, shrunk.bytes_per_s) == (None, None)


def group(committed: Mapping[int, int] | None, at_s: float = 10) -> dict[str, GroupSeen]:
    offsets = None
    if committed is not None:
        offsets = {TopicPartition("t", index): Sample(offset, at_s) for index, offset in committed.items()}
    return {"g": GroupSeen("g", "classic", "Stable", offsets)}


def test_the_lag_of_a_group_is_what_its_committed_partitions_have_ahead() -> None:
    now = look(10, [topic("t", partitions=3)], {"t-0": 100, "t-1": 50, "t-2": 7}, groups=group({0: 90, 1: 60}))
    [row] = view_of(None, now).groups
    assert (row.lag, row.is_partial, row.consumed_per_s) == (10, False, None)
    partial = look(10, [topic("t", partitions=3)], {"t-0": 100}, groups=group({0: 90, 1: 60}))
    assert lag_text(view_of(None, partial).groups[0]) == ">=10"
    for committed in (None, {}):
        unknown = look(10, [topic("t")], {"t-0": 100}, groups=group(committed))
        assert lag_text(view_of(None, unknown).groups[0]) == "-"


def test_a_group_that_is_deleted_goes_and_one_that_begins_again_has_no_negative_rate() -> None:
    before = look(10, [topic("t")], {"t-0": 100}, groups=group({0: 80}))
    assert view_of(before, look(12, [topic("t")], {"t-0": 100})).groups == ()
    reset = look(12, [topic("t")], {"t-0": 100}, groups=group({0: 5}, 12))
    assert view_of(before, reset).groups[0].consumed_per_s is None
    further = look(12, [topic("t")], {"t-0": 100}, groups=group({0: 90}, 12))
    assert view_of(before, further).groups[0].consumed_per_s == 5


def test_partitions_that_want_replicas_and_brokers_that_are_gone_are_named() -> None:
    now = look(10, [topic("a"), topic("b", isr=()), topic("c", isr=(1, 2))], {})
    view = view_of(None, now)
    assert [(each.under_replicated, each.offline) for each in view.topics] == [(1, 0), (1, 1), (0, 0)]
    assert (view.under_replicated, view.offline, view.down) == (2, 1, (2,))
    assert "brokers that are down: 2" in snapshot(view).problems


def snapshot(view: ClusterView, **more: object) -> Snapshot:
    return dataclasses.replace(Snapshot(NOW, view, RequestView()), **more)  # type: ignore[arg-type]


def many(count: int) -> ClusterView:
    rows = tuple(TopicRow(f"topic-{n:04d}", 10, float(n), float(-n % 7), n * 1000, 0, 0) for n in range(count))
    view = view_of(None, look(10, [topic("t")], {"t-0": 1}, groups=group({0: 0})))
    directory = LogDirSeen(1, "/data", None, 5_000_000, 10_000_000_000, 5_000_000_000)
    return dataclasses.replace(view, topics=rows, log_dirs=(directory,))


def shown(view: ClusterView, choice: Choice, width: int = 100, height: int = 30) -> list[str]:
    return [line.plain for line in screen_lines(snapshot(view), choice, width, height, 2.0)]


@pytest.mark.parametrize("width", [1, 2, 11, 12, 20, 39, 40, 80, 300])
@pytest.mark.parametrize("height", [1, 2, 3, 5, 8, 24, 60])
def test_the_screen_fits_however_small_the_terminal_is(width: int, height: int) -> None:
    lines = shown(many(1_000), Choice(), width, height)
    assert 1 <= len(lines) <= height
    assert max(map(len, lines)) <= width
    if height >= 24 and width >= 40:
        assert any(line.startswith("topic-0999") for line in lines)


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        (SortKey.RECORDS, "topic-0999"),
        (SortKey.SIZE, "topic-0999"),
        (SortKey.NAME, "topic-0000"),
        (SortKey.BYTES, "topic-0001"),
    ],
)
def test_topics_are_sorted_by_what_was_chosen(sort: SortKey, first: str) -> None:
    lines = shown(many(1_000), Choice(sort))
    names = [line.split()[0] for line in lines if line.startswith("topic-")]
    assert names[0] == first


def test_scrolling_stops_at_both_ends() -> None:
    view, choice = many(1_000), Choice(SortKey.NAME)
    assert choice.scrolled(-5, 1_000).first == 0
    end = choice.scrolled(10**9, 1_000)
    names = [line.split()[0] for line in shown(view, end) if line.startswith("topic-")]
    assert names[-1] == "topic-0999"
    assert len(names) > 3
    assert end.scrolled(1, 3).first == 2, "topics may become fewer"


def test_control_characters_of_names_do_not_reach_the_terminal() -> None:
    name = "g\x1b[2J\x07\n"
    view = view_of(None, look(10, [topic("t")], {}, groups={name: GroupSeen(name, "classic\r", "Empty\x9b", None)}))
    found = snapshot(view, failure="\x1b[31m")
    text = "\n".join([*found.lines(), *(line.plain for line in screen_lines(found, Choice(), 200, 40, 1.0))])
    assert not set(text) & {"\x1b", "\x07", "\r", "\x9b"}
    assert "g\\x1b[2J" in text


def test_more_problems_than_there_is_room_for_are_counted() -> None:
    view = view_of(
        None, look(10, [topic("t", isr=(1, 2))], {}, missing=Counter({f"problem {n}": n for n in range(1, 9)}))
    )
    lines = [line for line in shown(view, Choice()) if line.startswith("!")]
    assert lines[-1] == "! 6 more: see `pykbroker top --once`"
    assert "problem 8 (8 times)" in snapshot(view).lines()


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "-"),
        (0, "0 B"),
        (999, "999 B"),
        (1_000, "1.0 kB"),
        (99_940, "99.9 kB"),
        (999_600, "1.0 MB"),
        (10**19, "10000 PB"),
    ],
)
def test_bytes_have_three_digits(count: int | None, text: str) -> None:
    assert bytes_text(count) == text


METRICS = """\
# TYPE kafka_network_requestmetrics_requests_total counter
kafka_network_requestmetrics_requests_total{request="Produce",version="11"} 100
kafka_network_requestmetrics_requests_total{request="Produce",version="12"} 20
kafka_network_requestmetrics_requests_total{request="Fetch",version="17"} NaN
# TYPE kafka_network_requestmetrics_totaltimems histogram
kafka_network_requestmetrics_totaltimems_bucket{request="Produce",le="1"} 60
kafka_network_requestmetrics_totaltimems_bucket{request="Produce",le="16"} 119
kafka_network_requestmetrics_totaltimems_bucket{request="Produce",le="+Inf"} 120
kafka_network_requestmetrics_totaltimems_sum{request="Produce"} 300
kafka_network_requestmetrics_totaltimems_count{request="Produce"} 120
# TYPE pykbroker_build_info gauge
pykbroker_build_info{cluster_id="CLUSTER",node_id="1",version="1"} 1
# TYPE other counter
other_total 5
"""
OF_KAFKA = """\
kafka_network_requestmetrics_requestspersec_count{request="Produce",version="13",} 5
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.50",} 1.5
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99",} 20
"""


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RequestView]:
    """`metrics("text", "text", …)`: what one look after the other sees at one address, the last one returned."""
    pytest.importorskip("prometheus_client")

    def look(*texts: str) -> RequestView:
        async def work() -> RequestView:
            seen = RequestMetrics(["http://a/metrics"])
            for text in texts:
                monkeypatch.setattr(top_requests, "_fetch", lambda url, limit_s, text=text: text)
                view = await seen.look(5, "CLUSTER")
            return view

        return trio.run(work)

    return look


def test_requests_are_counted_over_the_versions_of_an_api(metrics: Callable[..., RequestView]) -> None:
    assert totals_of(METRICS, 3.0).counts == {"Produce": 120.0}
    [row] = metrics(METRICS).rows
    assert (row.api, row.per_s, row.p50_ms, row.p99_ms) == ("Produce", None, 1, 16)


def test_latencies_are_those_of_the_last_interval(metrics: Callable[..., RequestView]) -> None:
    later = METRICS.replace('le="16"} 119', 'le="16"} 219').replace('Inf"} 120', 'Inf"} 220')
    [row] = metrics(METRICS, later).rows
    assert (row.p50_ms, row.p99_ms) == (16, 16)
    [quiet] = metrics(METRICS, METRICS).rows
    assert (quiet.per_s, quiet.p50_ms, quiet.p99_ms) == (0, None, None)
    slow = METRICS.replace('Inf"} 120', 'Inf"} 220')
    assert metrics(METRICS, slow).rows[0].p99_ms == 16, "the largest bound that there is"


def test_a_broker_that_began_to_count_anew_has_no_negative_rate(metrics: Callable[..., RequestView]) -> None:
    anew = METRICS.replace("} 100", "} 1").replace("} 20", "} 0").replace("} 60", "} 1").replace("} 119", "} 1")
    [row] = metrics(METRICS, anew.replace("} 120", "} 1")).rows
    assert (row.per_s, row.p99_ms) == (None, 1)


def test_quantiles_of_kafkas_exporter_are_taken_as_they_are(metrics: Callable[..., RequestView]) -> None:
    [row] = metrics(OF_KAFKA, OF_KAFKA.replace("} 5\n", "} 9\n")).rows
    assert row.per_s is not None
    assert row.per_s > 0
    assert (row.p50_ms, row.p99_ms) == (1.5, 20)


def test_metrics_of_another_cluster_are_not_shown(metrics: Callable[..., RequestView]) -> None:
    view = metrics(METRICS.replace("CLUSTER", "ANOTHER"))
    assert view == RequestView((), ("requests: http://a/metrics is of another cluster, ANOTHER",))


@pytest.mark.parametrize("text", ["{", "a b c d", "<html>", 'a{b="c} 1\n', "a 1 2 3 4 x"])
def test_what_is_not_the_format_of_metrics_is_a_line(metrics: Callable[..., RequestView], text: str) -> None:
    view = metrics(text)
    assert view.rows == ()
    assert all(each.startswith("requests: http://a/metrics: ") for each in view.problems)


def test_looks_follow_each_other_and_a_slow_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[float] = []
    took_s = iter([0.5, 3.0, 0.5])

    async def slow(cluster: Cluster, limit_s: float) -> Observation:
        began.append(trio.current_time())
        await trio.sleep(next(took_s))
        return look(began[-1], [topic("t")], {})

    async def work() -> list[tuple[str, ...]]:
        snapshots = top_run.look_again(Cluster([]), RequestMetrics([]), 2.0, at_once=True)
        async with aclosing(snapshots):
            return [(await anext(snapshots)).notes for _ in range(3)]

    monkeypatch.setattr(top_run, "observe", slow)
    notes = trio.run(work, clock=trio.testing.MockClock(autojump_threshold=0))
    assert notes == [(), ("a look took 3.0 s, longer than the interval of 2 s",), ()]
    assert [at - began[0] for at in began] == pytest.approx([0, 2, 5])


def test_an_address_of_metrics_is_http_and_the_default_is_that_of_a_broker_here() -> None:
    assert metrics_urls(None, "127.0.0.1:9092") == (DEFAULT_URL,)
    assert metrics_urls(None, "broker:9092") == ()
    assert metrics_urls("http://a:1/metrics, https://b/m", "broker:9092") == ("http://a:1/metrics", "https://b/m")
    for url in ("ftp://a/", "a:9480", "file:///etc/passwd", "http://", "http://a:99999/", "http://[::/"):
        with pytest.raises(CommandFailed):
            metrics_urls(url, "broker:9092")
