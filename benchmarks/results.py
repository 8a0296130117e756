"""What a run of the benchmarks leaves: a JSON file with every round's figures, read back by types.

The file is one object, and has each of these fields and no other; a reader refuses what it does not know.

    version      1. Another number when a field comes, goes or changes its meaning.
    began, ended UTC, as 2026-01-31T12:00:00Z. A file is written after each scene: `ended` is the time of the last one.
    rounds       how many each broker was to be measured; a row has fewer after a run that was broken off
    scale        1.0: the full amount of work
    commit       of this tree, with `+` where files differ from it; empty outside a clone
    versions     of what was measured and of what it ran on: pykbroker, Apache Kafka, Python, Java
    machine      cores: those this run may use; processor; memory_bytes; kernel
    rows         one for each measure, in the order of the run:
      scene, measure   names, as `python -m benchmarks --scene SCENE --only MEASURE` takes them
      about            a line on what is measured, may be empty
      ours, theirs     a list of rounds; a round has its figures by name, with the unit in the name: {"MB/s": 120.5}.
                       A figure that came out as no finite number is not in its round.
      targets          figure; ratio: bound on ours / theirs; absolute: bound on ours; higher: the bound is a lower one;
                       verdict on the medians: `reached` or `falls short`
      profiles         of pykbroker's processes in a round that was not measured. process: its number, and what it is;
                       samples: how many were taken; stacks: the file with them, relative to this one (py-spy's raw
                       format, as flame graphs are made of); perf: the text file of perf's report, or null; functions:
                       the most expensive ones, with the shares of the samples in which they run (`own`) and in which
                       they or something that they call does (`total`), 0 to 1
"""

from __future__ import annotations

import json
import math
import os
import statistics
import types
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

VERSION = 1
MOST_BYTES = 64 << 20
"""A larger file is refused: a run of all scenes has less than a megabyte."""

Verdict = Literal["reached", "falls short"]
T = TypeVar("T")


class ResultsRefused(ValueError):
    """The file is not one that this tree reads; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Machine:
    cores: int
    processor: str
    memory_bytes: int
    kernel: str


@dataclass(frozen=True, slots=True)
class TargetResult:
    figure: str
    ratio: float | None
    absolute: float | None
    higher: bool
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class HotFunction:
    name: str
    own: float
    total: float


@dataclass(frozen=True, slots=True)
class ProfileResult:
    process: str
    samples: int
    stacks: str
    perf: str | None
    functions: tuple[HotFunction, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over the rounds."""

    median: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Row:
    scene: str
    measure: str
    about: str
    ours: tuple[dict[str, float], ...]
    theirs: tuple[dict[str, float], ...]
    targets: tuple[TargetResult, ...]
    profiles: tuple[ProfileResult, ...]

    def figures(self) -> list[str]:
        """The names of all figures, each once, in the order in which they came."""
        return list(dict.fromkeys(name for each in (*self.ours, *self.theirs) for name in each))

    def target(self, figure: str) -> TargetResult | None:
        return next((each for each in self.targets if each.figure == figure), None)


@dataclass(frozen=True, slots=True)
class RunResults:
    version: int
    began: str
    ended: str
    rounds: int
    scale: float
    commit: str
    versions: dict[str, str]
    machine: Machine
    rows: tuple[Row, ...]


def spread(rounds: Iterable[Mapping[str, float]], figure: str) -> Spread | None:
    """Median, least and most of the rounds that have the figure; None where none has it."""
    values = [each[figure] for each in rounds if figure in each]
    return Spread(statistics.median(values), min(values), max(values)) if values else None


def finite(figures: Mapping[str, float]) -> dict[str, float]:
    """The figures that are numbers: an infinite ratio or a median of nothing has no place in JSON."""
    return {name: float(value) for name, value in figures.items() if math.isfinite(value)}


def write_results(results: RunResults, path: Path) -> None:
    """Put the file in place of the one that is there at once: a run that is broken off leaves one or the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_text(json.dumps(asdict(results), indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(part, path)


def read_results(path: Path) -> RunResults:
    """Read a file of `write_results`. Raises ResultsRefused, and OSError."""
    if path.stat().st_size > MOST_BYTES:
        raise ResultsRefused(f"{path} is larger than {MOST_BYTES >> 20} MB: not a file of results")
    try:
        document = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number, object_pairs_hook=_each_once)
        return parse_results(document)
    except (ValueError, RecursionError) as error:
        raise ResultsRefused(f"{path} has no results: {error}") from error


def parse_results(document: object) -> RunResults:
    """The results in a parsed JSON document. Raises ResultsRefused."""
    if not isinstance(document, dict):
        raise ResultsRefused("not an object")
    version = document.get("version")
    if version != VERSION or isinstance(version, bool):
        raise ResultsRefused(f"version {version!r}, and this reader knows {VERSION}")
    return _parse_object(document, RunResults, "results")


def _parse(value: object, expected: Any, where: str) -> Any:
    """The value as an instance of a type of the classes above, whose parts are parsed as theirs are."""
    if isinstance(expected, type) and is_dataclass(expected):
        return _parse_object(value, expected, where)
    origin, arguments = get_origin(expected), get_args(expected)
    if origin is tuple and isinstance(value, list):
        return tuple(_parse(each, arguments[0], f"{where}[{place}]") for place, each in enumerate(value))
    if origin is dict and isinstance(value, dict):
        return {key: _parse(each, arguments[1], f"{where}.{key}") for key, each in value.items()}
    if origin is Literal and isinstance(value, str) and value in arguments:
        return value
    if origin in (Union, types.UnionType):  # `… | None` is the only one
        return None if value is None else _parse(value, arguments[0], where)
    if expected is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(number := float(value)):
            raise ResultsRefused(f"{where} is no finite number")
        return number
    if expected in (str, bool, int) and type(value) is expected:
        return value
    raise ResultsRefused(f"{where} is {_shown(value)}")


def _parse_object(value: object, expected: type[T], where: str) -> T:
    if not isinstance(value, dict):
        raise ResultsRefused(f"{where} is {_shown(value)}, not an object")
    names = [field.name for field in fields(expected)]  # type: ignore[arg-type]
    if unknown := sorted(set(value) - set(names)):
        raise ResultsRefused(f"{where} has a field that is not known: {_shown(unknown[0])}")
    if missing := [name for name in names if name not in value]:
        raise ResultsRefused(f"{where} has no {missing[0]}")
    hints = get_type_hints(expected)
    return expected(**{name: _parse(value[name], hints[name], f"{where}.{name}") for name in names})


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _no_number(constant: str) -> NoReturn:
    raise ResultsRefused(f"{constant} is no number")


def _each_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    document = dict(pairs)
    if len(document) < len(pairs):
        raise ResultsRefused("an object has a field twice")
    return document
