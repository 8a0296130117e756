"""`python -m benchmarks.page RESULTS.json PAGE.html`: a run's results as one page, which loads nothing from elsewhere.

RESULTS.json is what `python -m benchmarks --json` has left (`benchmarks/results.py`), with its profiles beside it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from benchmarks.plots import Bar, Curve, bars_svg, growth_svg, must_reach, number, percentiles_svg, ratio
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.partition(".")[0] not in ("jinja2", "markupsafe", "matplotlib"):
        raise
    raise SystemExit(f"the page needs {missing.name}: pip install 'pykbroker[bench]'") from missing

from benchmarks.curves import parse_curve_point, parse_percentile
from benchmarks.flames import flame_svg
from benchmarks.profiles import MOST_FUNCTIONS, ProfileMalformed, has_telling_total, parse_stacks
from benchmarks.results import HotFunction, ProfileResult, ResultsRefused, Row, RunResults, Spread, read_results, spread

_LONG = 40
"""A scene's table of more lines is folded up at first."""
_MOST_PERF_BYTES = 64 << 10
_MOST_STACKS_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """A figure of a measure, as text."""

    measure: str
    anchor: str
    figure: str
    ours: str
    our_range: str
    theirs: str
    their_range: str
    ratio: str
    must_reach: str
    verdict: str


@dataclass(frozen=True, slots=True)
class ProfileView:
    """flame: None where the file with the stacks is not there. perf: the report's text, empty without one."""

    process: str
    samples: int
    stacks: str
    by_own: Sequence[HotFunction]
    by_total: Sequence[HotFunction]
    flame: Markup | None
    perf: str


@dataclass(frozen=True, slots=True)
class MeasureView:
    name: str
    anchor: str
    about: str
    lines: Sequence[Line]
    plots: Sequence[Markup]
    profiles: Sequence[ProfileView]


@dataclass(frozen=True, slots=True)
class SceneView:
    name: str
    anchor: str
    bars: Markup | None
    is_long: bool
    measures: Sequence[MeasureView]


def page_of(results: RunResults, beside: Path) -> str:
    """The page. beside: the folder to which the names of the profiles' files are relative.

    Raises ProfileMalformed for a profile that cannot be read; one that is not there is named in the page.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    rows_by_scene: dict[str, list[Row]] = {}
    for row in results.rows:
        rows_by_scene.setdefault(row.scene, []).append(row)
    scenes = [_scene(name, rows, beside) for name, rows in rows_by_scene.items()]
    lines = [line for scene in scenes for measure in scene.measures for line in measure.lines]
    page: str = environment.get_template("page.html").render(
        run=results,
        scenes=scenes,
        reached=sum(line.verdict == "reached" for line in lines),
        short=[line for line in lines if line.verdict == "falls short"],
    )
    return page


def _scene(name: str, rows: Sequence[Row], beside: Path) -> SceneView:
    bars = [bar for row in rows for bar in _bars(row)]
    measures = [_measure(row, beside) for row in rows]
    return SceneView(
        name,
        _anchor("scene", name),
        Markup(bars_svg(bars, f"{name}: figures of both brokers")) if bars else None,
        sum(len(each.lines) for each in measures) > _LONG,
        measures,
    )


def _bars(row: Row) -> list[Bar]:
    """The figures that are not just points of a curve: those have a bar where they have a target."""
    on_curves = {name for name in row.figures() if parse_curve_point(name) or _is_one_of_several(row, name)}
    return [
        Bar(row.measure, figure, spread(row.ours, figure), spread(row.theirs, figure), row.target(figure))
        for figure in row.figures()
        if figure not in on_curves or row.target(figure) is not None
    ]


def _is_one_of_several(row: Row, name: str) -> bool:
    """Whether it is a percentile of a latency of which there are others: one point makes no curve."""
    parsed = [parse_percentile(each) for each in row.figures()]
    mine = parse_percentile(name)
    return mine is not None and sum(each is not None and each[0] == mine[0] for each in parsed) > 1


def _measure(row: Row, beside: Path) -> MeasureView:
    anchor = _anchor(row.scene, row.measure)
    return MeasureView(
        row.measure,
        anchor,
        row.about,
        [_line(row, figure, anchor) for figure in row.figures()],
        _plots(row),
        [_profile(each, beside, row.measure) for each in row.profiles],
    )


def _line(row: Row, figure: str, anchor: str) -> Line:
    ours, theirs, target = spread(row.ours, figure), spread(row.theirs, figure), row.target(figure)
    return Line(
        row.measure, anchor, figure, _median(ours), _range(ours), _median(theirs), _range(theirs), ratio(ours, theirs),
        must_reach(target) if target else "", target.verdict if target else "",
    )  # fmt: skip


def _median(figure: Spread | None) -> str:
    return number(figure.median) if figure else "–"


def _range(figure: Spread | None) -> str:
    return f"{number(figure.least)} – {number(figure.most)}" if figure else ""


def _plots(row: Row) -> list[Markup]:
    growth = _curves(row, parse_curve_point)
    latencies = [each for each in _curves(row, parse_percentile) if len({*each.ours, *each.theirs}) > 1]
    grows = row.measure.rpartition(": ")[2]
    plots = [growth_svg(growth, grows, f"{row.measure}: how costs grow")] if growth else []
    plots += [percentiles_svg(latencies, f"{row.measure}: percentiles of latencies")] if latencies else []
    return [Markup(plot) for plot in plots]


def _curves(row: Row, parse: Callable[[str], tuple[str, float] | None]) -> list[Curve]:
    curves: dict[str, tuple[dict[float, Spread], dict[float, Spread]]] = {}
    for name in row.figures():
        if (point := parse(name)) is None:
            continue
        figure, at = point
        for side, rounds in zip(curves.setdefault(figure, ({}, {})), (row.ours, row.theirs), strict=True):
            if (found := spread(rounds, name)) is not None:
                side[float(at)] = found
    return [Curve(figure, ours, theirs) for figure, (ours, theirs) in curves.items()]


def _profile(profile: ProfileResult, beside: Path, measure: str) -> ProfileView:
    by_own = sorted(profile.functions, key=lambda each: -each.own)
    by_total = sorted(filter(has_telling_total, profile.functions), key=lambda each: -each.total)
    return ProfileView(
        profile.process,
        profile.samples,
        profile.stacks,
        [each for each in by_own if each.own][:MOST_FUNCTIONS],
        by_total[:MOST_FUNCTIONS],
        _flame(beside / profile.stacks, f"Flame graph of {measure}, {profile.process}"),
        _text(beside / profile.perf) if profile.perf else "",
    )


def _flame(path: Path, label: str) -> Markup | None:
    text = _text(path, _MOST_STACKS_BYTES)
    return Markup(flame_svg(parse_stacks(text.splitlines()), label)) if text else None


def _text(path: Path, most_bytes: int = _MOST_PERF_BYTES) -> str:
    """The file's whole lines within the bound; empty where there is no file."""
    try:
        with path.open("rb") as file:
            text = file.read(most_bytes + 1)
    except OSError:
        return ""
    return (text if len(text) <= most_bytes else text[: text.rfind(b"\n") + 1]).decode(errors="replace")


def _anchor(*names: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", " ".join(names).lower()).strip("-")


def main(arguments: Sequence[str]) -> None:
    if len(arguments) != 2:
        raise SystemExit("usage: python -m benchmarks.page RESULTS.json PAGE.html")
    source, target = map(Path, arguments)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page_of(read_results(source), source.parent), encoding="utf-8")
    except (ResultsRefused, ProfileMalformed, OSError) as error:
        raise SystemExit(str(error)) from error
    print(target)


if __name__ == "__main__":
    main(sys.argv[1:])
