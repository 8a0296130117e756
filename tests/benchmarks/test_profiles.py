"""Profiles of a row: stacks as py-spy writes them, what they cost, and the flame graph of them."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.flames import flame_svg
from benchmarks.profiles import (
    MOST_STACKS,
    RARE,
    ProfileMalformed,
    folder_name,
    format_stacks,
    hot_functions,
    parse_stacks,
)

MAIN, SERVE, APPEND = "main (pykbroker/cli/start.py)", "serve (pykbroker/api/x.py)", "append (pykbroker/storage/y.py)"
RECORDED = f"""\
0x7fa9fec4524a (libc.so.6);0x7f01 (libc.so.6);{MAIN[:-1]}:12);{SERVE[:-1]}:3);{APPEND};writev (libc.so.6) 6
0x7fa9fec4524a (libc.so.6);{MAIN};{SERVE};{APPEND} 3
(libc.so.6);{MAIN} 1
(libc.so.6);{MAIN};run (trio/_core/_run.py);select_epoll_poll_impl (selectmodule.c);epoll_wait (libc.so.6) 50
thread_run (libpython3.11.so.1.0);lock_PyThread_acquire_lock (libpython3.11.so.1.0);0x7f02 (libc.so.6) 90

"""


def test_waits_lines_and_addresses_are_left_out_of_stacks() -> None:
    assert parse_stacks(RECORDED.splitlines()) == {
        ("(libc.so.6)", MAIN, SERVE, APPEND, "writev (libc.so.6)"): 6,
        ("(libc.so.6)", MAIN, SERVE, APPEND): 3,
        ("(libc.so.6)", MAIN): 1,
    }


def test_functions_have_what_they_take_and_what_they_call() -> None:
    hot = {each.name: (each.own, each.total) for each in hot_functions(parse_stacks(RECORDED.splitlines()))}
    assert hot == {"writev (libc.so.6)": (0.6, 0.6), APPEND: (0.3, 0.9), MAIN: (0.1, 1.0)}
    (most,) = hot_functions(parse_stacks(RECORDED.splitlines()), most=1)
    assert most.name == "writev (libc.so.6)"


def test_a_function_that_calls_itself_counts_once() -> None:
    name = "walk (pykbroker/api/x.py)"
    (hot, other) = hot_functions({(name, "other (x.py)", name): 1, ("other (x.py)",): 1})
    assert {(hot.name, hot.total), (other.name, other.total)} == {(name, 0.5), ("other (x.py)", 1.0)}


@pytest.mark.parametrize("line", ["main", "main x", "5", " 5", "main -5", "main ٣"])
def test_a_line_that_is_no_stack_is_told(line: str) -> None:
    with pytest.raises(ProfileMalformed, match="line 2 is no stack"):
        parse_stacks(["main 1", line])


def test_the_rarest_stacks_are_counted_as_one() -> None:
    lines = [f"main;f{number} {number + 1}" for number in range(MOST_STACKS + 10)]
    stacks = parse_stacks(lines)
    assert len(stacks) == MOST_STACKS + 1
    assert stacks[(RARE,)] == sum(range(1, 11))
    assert stacks.total() == sum(range(1, MOST_STACKS + 11))


_NAMES = st.text(st.characters(codec="utf-8", exclude_characters="; \r\n", categories=["L", "N", "P", "S"]), min_size=1)
_STACKS = st.dictionaries(st.lists(_NAMES, min_size=1, max_size=8).map(tuple), st.integers(1, 1000), max_size=20)


@given(stacks=_STACKS)
def test_a_kept_profile_is_read_as_it_was_kept(stacks: dict[tuple[str, ...], int]) -> None:
    kept = parse_stacks(format_stacks(stacks).split("\n"))
    assert parse_stacks(format_stacks(kept).split("\n")) == kept


@given(stacks=_STACKS)
def test_a_flame_graph_is_well_formed_and_within_its_width(stacks: dict[tuple[str, ...], int]) -> None:
    graph = ElementTree.fromstring(flame_svg(stacks, 'of "<all>"'))
    width, height = map(float, graph.attrib["viewBox"].split()[2:])
    for rect in graph.iter("rect"):
        assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width + 0.5
        assert 0 <= float(rect.attrib["y"]) < height


def test_names_of_measures_make_names_of_folders() -> None:
    assert folder_name("limit: 1 x 100 B, acks=all") == "limit-1-x-100-b-acks=all"
    assert folder_name("../..") == "measure"
