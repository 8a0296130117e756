"""Parts of a page that are drawn anew while somebody uses them: the focus stays, and a click that has begun arrives."""

from __future__ import annotations

from typing import Any

import pytest

from .page import Page

pytestmark = pytest.mark.chromium

_HEAD = """
    const done = arguments[arguments.length - 1];
    const links = (...names) => names.map((name) => {
        const link = document.createElement("a");
        link.href = `/topics/${name}`;
        link.textContent = name;
        return link;
    });
    import("/static/redraw.js").then(async ({ redraw, untilLetGo }) => {
        const place = document.body.appendChild(document.createElement("section"));
"""
_TAIL = "}).catch((error) => done(`failed: ${error}`));"


def run(page: Page, script: str) -> Any:
    page.open("/topics").heading("Topics")
    return page.driver.execute_async_script(_HEAD + script + _TAIL)


def test_the_focus_stays_with_what_it_was_on_wherever_that_is_now(page: Page) -> None:
    script = """
        redraw(place, ...links("a", "b", "c"));
        place.children[1].focus();
        redraw(place, ...links("0", "a", "b", "c"));
        done(document.activeElement.textContent);
    """
    assert run(page, script) == "b"


def test_the_focus_of_what_is_gone_goes_to_what_is_in_its_place(page: Page) -> None:
    script = """
        redraw(place, ...links("a", "b", "c"));
        place.children[1].focus();
        redraw(place, ...links("a", "c"));
        done(document.activeElement.textContent);
    """
    assert run(page, script) == "c"


def test_a_page_takes_no_focus_that_was_elsewhere(page: Page) -> None:
    script = """
        document.activeElement.blur();
        redraw(place, ...links("a"));
        redraw(place, ...links("a", "b"));
        done(place.contains(document.activeElement));
    """
    assert run(page, script) is False


def test_nothing_is_drawn_anew_between_a_press_and_its_click(page: Page) -> None:
    script = """
        const order = [];
        place.addEventListener("click", () => order.push("click"));
        place.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
        const drawn = untilLetGo().then(() => order.push("drawn"));
        await Promise.resolve();
        place.dispatchEvent(new PointerEvent("pointerup", { bubbles: true }));
        place.click();
        await drawn;
        done(order);
    """
    assert run(page, script) == ["click", "drawn"]
