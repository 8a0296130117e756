"""`docs/metrics.md` and the files in `docker/monitoring` name what a scrape has, and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykbroker.config.own_keys import own_keys
from pykbroker.metrics.catalog import METRICS, Kind

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "docker" / "monitoring"
PAGE = ROOT / "docs" / "metrics.md"

OF_THE_LIBRARY = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
OF_PROMETHEUS = {"job", "instance"}
_ROW = re.compile(r"\| `([a-z_]+)`( \((?:histogram|summary)\))? \| ([a-z_, ]*) \| (?:`([^`]+)`)? ?\| (.+) \|")
_TEXT = re.compile(r'"[^"]*"')
_RANGE = re.compile(r"\[[^\]]*\]")
_BY = re.compile(r"\b(?:by|on|without|group_right|group_left|ignoring)\s*\(([^)]*)\)")
_SELECTOR = re.compile(r"\{([^}]*)\}")
_NAME = re.compile(r"\b[a-z_]+\b(?!\s*\()")
_WORDS = {"on", "by", "and", "or", "unless", "bool"}


def shown_names() -> dict[str, tuple[str, ...]]:
    """The labels of each name that a query may ask for."""
    names: dict[str, tuple[str, ...]] = {}
    for metric in METRICS.values():
        if metric.kind is Kind.HISTOGRAM:
            names[f"{metric.name}_bucket"] = (*metric.labels, "le")
        if metric.kind in (Kind.HISTOGRAM, Kind.SUMMARY):
            names[f"{metric.name}_sum"] = names[f"{metric.name}_count"] = metric.labels
        else:
            names[metric.shown_name] = metric.labels
    return names


def alerts() -> dict[str, str]:
    """The expression of each alert."""
    found: dict[str, str] = {}
    for rule in (MONITORING / "alerts.yaml").read_text().split("- alert: ")[1:]:
        expression = re.search(r"^ +expr: (?:\|\n((?: {10,}.*\n)+)|(.+)\n)", rule, re.MULTILINE)
        assert expression, rule
        found[rule.splitlines()[0]] = expression[1] or expression[2]
    return found


def panels() -> Iterator[tuple[str, str]]:
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            queried = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["query"])
            assert queried
            assert queried[2] in OF_PROMETHEUS
            yield variable["name"], queried[1]


def check(expression: str) -> set[str]:
    """Return the metrics that a query names. Fails where one is not there, or has no such label."""
    text = _RANGE.sub("", _TEXT.sub('""', expression))
    labels = {label.strip() for named in _BY.findall(text) for label in named.split(",") if label.strip()}
    labels |= {
        part.partition("=")[0].strip(" !~") for each in _SELECTOR.findall(text) for part in each.split(",") if part
    }
    names = set(_NAME.findall(_SELECTOR.sub("", _BY.sub("", text)))) - _WORDS
    known = shown_names()
    assert names, expression
    assert names <= known.keys() | OF_THE_LIBRARY, expression
    assert labels <= OF_PROMETHEUS.union(*(known.get(name, ()) for name in names)), expression
    return names


@pytest.mark.parametrize("name", alerts())
def test_an_alert_names_metrics_and_labels_that_are_there(name: str) -> None:
    check(alerts()[name])


def test_the_dashboard_names_metrics_and_labels_that_are_there() -> None:
    asked = [check(expression) for _, expression in panels()]
    assert len(asked) > 20
    assert len(set().union(*asked)) > 25


def test_the_queries_of_the_page_name_metrics_and_labels_that_are_there() -> None:
    queries = re.findall(r"```promql\n(.+?)```", PAGE.read_text(), re.DOTALL)
    assert len(queries) == 2
    for query in queries:
        check(query)


@pytest.mark.parametrize(
    "expression",
    [
        "kafka_server_no_such_total",
        "sum by (topik) (kafka_log_log_size)",
        'kafka_log_log_size{partitions="1"}',
        "histogram_quantile(0.9, sum by (le) (kafka_log_log_size))",
    ],
)
def test_a_query_for_what_is_not_there_is_found(expression: str) -> None:
    with pytest.raises(AssertionError):
        check(expression)


def test_the_table_of_the_page_is_the_catalog() -> None:
    rows = {row[0]: row for row in _ROW.findall(PAGE.read_text())}
    expected = {
        metric.shown_name: (
            metric.shown_name,
            f" ({metric.kind.value})" if metric.kind in (Kind.HISTOGRAM, Kind.SUMMARY) else "",
            ", ".join(metric.labels),
            metric.mbean,
            metric.meaning,
        )
        for metric in METRICS.values()
    }
    assert rows == expected


def test_the_page_has_the_keys_with_their_defaults() -> None:
    rows = PAGE.read_text().splitlines() + PAGE.with_name("console.md").read_text().splitlines()
    for name, key in own_keys().items():
        beginning = f"| `{name}` | {f'`{key.default}`' if key.default else ''}"
        assert any(row.startswith(beginning) for row in rows), beginning


@pytest.mark.promtool
def test_promtool_takes_the_rules_and_the_configuration() -> None:
    promtool = shutil.which("promtool")
    assert promtool is not None
    for command in (["check", "rules", "alerts.yaml"], ["check", "config", "prometheus.yaml"]):
        done = subprocess.run([promtool, *command], cwd=MONITORING, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
