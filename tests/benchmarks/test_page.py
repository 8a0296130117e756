"""The page of results: each row, target and verdict is in it, and nothing that it would load from elsewhere."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'pykbroker[bench]'")
pytest.importorskip("jinja2", reason="needs Jinja2: pip install 'pykbroker[bench]'")

from benchmarks.__main__ import SCENES
from benchmarks.page import main, page_of
from benchmarks.results import write_results
from tests.benchmarks.recorded_run import HOT, PROFILE, RUN

ROOT = Path(__file__).parents[2]
_VOID = {"meta", "use", "path", "rect", "br"}


class _Reader(HTMLParser):
    """Checks that elements are closed as they were opened; keeps ids, links and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("href", "src"):
                self.links.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in _VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def page(tmp_path: Path) -> str:
    stacks = tmp_path / PROFILE.stacks
    stacks.parent.mkdir(parents=True)
    stacks.write_text("main (x.py);<lambda> (pykbroker/api/y.py) 300\nmain (x.py) 100\n")
    return page_of(RUN, tmp_path)


def test_every_figure_target_and_verdict_is_in_the_page(page: str) -> None:
    reader = _Reader()
    reader.feed(page)
    assert reader.open == []
    for row in RUN.rows:
        assert row.measure in reader.text
        for figure in row.figures():
            assert figure in reader.text
    for expected in (
        "≥ 1.5 ×",
        "falls short",
        "≤ 30",
        "reached",
        "310",
        "300 – 330",
        "1.38 ×",
        "2 reached",
        "1 fall short",
    ):
        assert expected in reader.text
    for function in (HOT.name, "25.0 %", "50.0 %", "<lambda> (pykbroker/api/y.py)"):
        assert function in reader.text


def test_the_page_loads_nothing_and_its_links_have_their_places(page: str) -> None:
    assert "//" not in re.sub(r"/\*.*?\*/", "", page)
    assert not re.search(r"<(script|link|img|iframe|object)\b|@import|url\((?!#)", page)
    reader = _Reader()
    reader.feed(page)
    assert len(reader.ids) == len(set(reader.ids))
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)
    assert set(re.findall(r"url\(#([^)]*)\)", page)) <= set(reader.ids)


def test_names_are_text_and_no_markup(page: str) -> None:
    assert "<1 kB>" not in page
    assert "produce <1 kB>" in unescape(page)


def test_colours_of_plots_are_those_of_the_page(page: str) -> None:
    plots = re.findall(r'<svg class="plot".*?</svg>', page, re.DOTALL)
    assert len(plots) == 4  # bars of limits and tails, curves of growth and tails
    assert not any(re.search(r"#[0-9a-f]{6}\b(?!-)", plot) for plot in plots)
    assert all("var(--ours)" in plot for plot in plots)


def test_a_profile_whose_file_is_gone_is_named(tmp_path: Path) -> None:
    assert f"The file {PROFILE.stacks} is not there." in page_of(RUN, tmp_path)


def test_a_page_is_made_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_results(RUN, tmp_path / "results.json")
    main([str(tmp_path / "results.json"), str(tmp_path / "new" / "page.html")])
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert capsys.readouterr().out.strip() == str(tmp_path / "new" / "page.html")


def test_what_is_no_file_of_results_ends_with_a_line(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(SystemExit, match="version None"):
        main([str(tmp_path / "results.json"), str(tmp_path / "page.html")])
    with pytest.raises(SystemExit, match="No such file"):
        main([str(tmp_path / "missing.json"), str(tmp_path / "page.html")])
    with pytest.raises(SystemExit, match="usage"):
        main([])


def test_what_make_measures_for_the_page_are_scenes() -> None:
    found = re.search(r"^BENCH_SCENES \?= (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None
    assert set(found[1].split()) <= set(SCENES)
