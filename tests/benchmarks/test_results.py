"""Results of a run of the benchmarks: written, read back, and refused where they are something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.results import (
    MOST_BYTES,
    VERSION,
    HotFunction,
    ProfileResult,
    ResultsRefused,
    Row,
    RunResults,
    TargetResult,
    finite,
    parse_results,
    read_results,
    spread,
    write_results,
)
from tests.benchmarks.recorded_run import RUN


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.json"
    write_results(RUN, path)
    assert read_results(path) == RUN
    assert [each.name for each in path.parent.iterdir()] == ["results.json"]


_NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
_MAYBE = st.none() | _NUMBERS
_ROUNDS = st.lists(st.dictionaries(st.text(), _NUMBERS, max_size=3), max_size=3).map(tuple)
_TARGETS = st.builds(TargetResult, ratio=_MAYBE, absolute=_MAYBE)
_FUNCTIONS = st.lists(st.builds(HotFunction, own=_NUMBERS, total=_NUMBERS), max_size=2).map(tuple)
_PROFILES = st.builds(ProfileResult, functions=_FUNCTIONS)
_ROWS = st.builds(
    Row,
    ours=_ROUNDS,
    theirs=_ROUNDS,
    targets=st.lists(_TARGETS, max_size=2).map(tuple),
    profiles=st.lists(_PROFILES, max_size=2).map(tuple),
)


@given(run=st.builds(RunResults, version=st.just(VERSION), scale=_NUMBERS, rows=st.lists(_ROWS, max_size=3).map(tuple)))
def test_any_run_goes_through_json_and_back(run: RunResults) -> None:
    document = json.loads(json.dumps(asdict(run)))
    assert parse_results(document) == run


def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(asdict(RUN)))
    return document


def _put(*path: str | int, value: object) -> Callable[[dict[str, Any]], None]:
    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        document[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (_put("version", value=2), "version 2, and this reader knows 1"),
        (_put("version", value=True), "version True"),
        (_put("colour", value="blue"), "results has a field that is not known: 'colour'"),
        (
            _put("rows", 0, "targets", 0, "verdict", value="perhaps"),
            r"results.rows\[0\].targets\[0\].verdict is 'perhaps'",
        ),
        (_put("rows", 0, "ours", 0, "MB/s", value="fast"), r"results.rows\[0\].ours\[0\].MB/s is 'fast'"),
        (_put("rows", 0, "ours", 0, "MB/s", value=True), r"results.rows\[0\].ours\[0\].MB/s is True"),
        (_put("rows", 0, "ours", 0, "MB/s", value=10**400), r"results.rows\[0\].ours\[0\].MB/s is no finite number"),
        (_put("rounds", value=3.0), "results.rounds is 3.0"),
        (_put("machine", value=[]), r"results.machine is \[\], not an object"),
        (_put("rows", value={}), r"results.rows is \{\}"),
        (lambda document: document.pop("commit"), "results has no commit"),
    ],
)
def test_what_is_not_known_is_refused(change: Callable[[dict[str, Any]], None], refusal: str) -> None:
    document = _document()
    change(document)
    with pytest.raises(ResultsRefused, match=refusal):
        parse_results(document)


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"version": 1, "version": 1}', '{"version": NaN}', "[" * 100_000, '{"version": 1e999}', "\udcff"],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ResultsRefused, match=r"results\.json has no results: "):
        read_results(path)


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    with path.open("wb") as file:
        file.truncate(MOST_BYTES + 1)
    with pytest.raises(ResultsRefused, match="larger than 64 MB"):
        read_results(path)


def test_a_figure_is_its_median_with_the_least_and_the_most_of_the_rounds_that_have_it() -> None:
    found = spread([{"s": 3.0}, {"s": 1.0}, {}, {"s": 7.0}], "s")
    assert found is not None
    assert (found.median, found.least, found.most) == (3.0, 1.0, 7.0)
    assert spread([{}], "s") is None
    assert finite({"a": float("nan"), "b": float("inf"), "c": 1}) == {"c": 1.0}
