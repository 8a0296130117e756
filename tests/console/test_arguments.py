"""Arguments of the console's endpoints: what is missing or of another kind is one line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pykbroker.client.errors import BadInput
from pykbroker.console.api.pages import PageAsked, page_of
from pykbroker.console.endpoint import Arguments, Json


@pytest.mark.parametrize("value", [7, "7"])
def test_a_number_may_be_text_as_in_a_query(value: Json) -> None:
    assert Arguments({"n": value}).whole("n") == 7


@pytest.mark.parametrize("value", ["", "x", "1.5", 1.5, True, "٣", "1" * 5000, -1, 11, float("nan"), [], {}])
def test_what_is_no_number_in_range_is_refused(value: Json) -> None:
    with pytest.raises(BadInput, match="'n' is a whole number from 0 to 10"):
        Arguments({"n": value}).whole("n", most=10)


@pytest.mark.parametrize(("value", "expected"), [(True, True), ("true", True), ("false", False), (False, False)])
def test_flags(value: Json, expected: bool) -> None:
    assert Arguments({"f": value}).flag("f") is expected


@pytest.mark.parametrize(
    "read",
    [
        lambda given: given.flag("x"),
        lambda given: given.text("x"),
        lambda given: given.one_of("x", ["a", "b"]),
        lambda given: given.mapping("x"),
    ],
)
@pytest.mark.parametrize("value", [7, ["a"], ["true", "true"]])
def test_another_kind_is_refused(read: Callable[[Arguments], object], value: Json) -> None:
    with pytest.raises(BadInput, match="'x' is "):
        read(Arguments({"x": value}))


def test_what_is_missing_is_named() -> None:
    with pytest.raises(BadInput, match="'name' is missing"):
        Arguments({}).text("name")
    assert Arguments({}).text("name", "default") == "default"


def test_lists_of_a_query_are_one_text_or_several() -> None:
    assert Arguments({"x": "a"}).texts("x") == ["a"]
    assert Arguments({"x": ["a", "b"]}).texts("x") == ["a", "b"]
    with pytest.raises(BadInput, match="2 texts at most"):
        Arguments({"x": ["a"] * 3}).texts("x", most=2)


def test_a_page_behind_the_last_one_is_the_last_one() -> None:
    page = page_of(range(7), PageAsked(number=9, size=3))
    assert (list(page.rows), page.page, page.pages, page.total) == ([6], 3, 3, 7)
    nothing = page_of([], PageAsked(number=1, size=3))
    assert (list(nothing.rows), nothing.page, nothing.pages) == ([], 1, 1)
