"""A page as a person sees it: headings, links, buttons, labelled fields, tables with captions, dialogs.

Elements are found by role and name, as a screen reader tells them, so a page that these tests can use can be used
without eyes or a mouse. Every look waits: until what is looked for is there, or half a minute is over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib import resources
from typing import Any, TypeVar

from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

T = TypeVar("T")

PATIENCE_S = 30
_LOOK_EVERY_S = 0.05


class NotShown(AssertionError):
    """The page does not show in time what was looked for."""


class Page:
    def __init__(self, driver: Chrome, url: str) -> None:
        self.driver = driver
        self.url = url

    # ---- where one is

    def open(self, path: str = "/") -> Page:
        self.driver.get(self.url + path)
        return self

    @property
    def path(self) -> str:
        """The address behind the host."""
        return self.driver.current_url.removeprefix(self.url)

    def back(self) -> None:
        self.driver.back()

    def reload(self) -> None:
        self.driver.refresh()

    # ---- what one sees

    def until(self, look: Callable[[], T | None], what: str, patience_s: float = PATIENCE_S) -> T:
        """Return what `look` returns as soon as that is true. Raises NotShown."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                found = look()
            except StaleElementReferenceException:  # the page has drawn it anew meanwhile
                found = None
            if found:
                return found
            if time.monotonic() > deadline:
                raise NotShown(f"no {what} at {self.path}:\n{self.text()[:3000]}")
            time.sleep(_LOOK_EVERY_S)

    def text(self) -> str:
        return self.driver.find_element(By.TAG_NAME, "body").text

    def sees(self, text: str) -> None:
        self.until(lambda: text in self.text(), repr(text))

    def sees_no(self, text: str) -> None:
        self.until(lambda: text not in self.text(), f"page without {text!r}")

    def heading(self, text: str) -> WebElement:
        return self._one("h1", text, "heading")

    def failure(self) -> str:
        """The text of a failure that is told."""
        return self.until(lambda: next((each.text for each in self._shown("[role=alert]")), None), "failure")

    def fact(self, title: str) -> str:
        """The value of a fact in a list of them."""

        def look() -> str | None:
            for each in self._shown("dl > div"):
                term, value = each.find_element(By.TAG_NAME, "dt").text, each.find_element(By.TAG_NAME, "dd").text
                if term == title:
                    return value
            return None

        return self.until(look, f"fact {title!r}")

    def table(self, caption: str) -> list[dict[str, str]]:
        """The rows of the table with that caption, by the columns' titles."""
        return self.until(lambda: self._rows(caption), f"table {caption!r}")[1:]

    def _rows(self, caption: str) -> list[dict[str, str]] | None:
        script = """
            for (const table of document.querySelectorAll("table")) {
                if (table.caption?.textContent !== arguments[0]) continue;
                const textOf = (cell) => cell.innerText.replace(/ [↑↓]$/, "").trim();
                const titles = [...table.tHead.rows[0].cells].map(textOf);
                const rows = [...table.tBodies[0].rows].filter((row) => row.cells.length === titles.length);
                const named = (row) => Object.fromEntries(titles.map((title, at) => [title, textOf(row.cells[at])]));
                return [{}, ...rows.map(named)];
            }
            return null;
        """
        return self.driver.execute_script(script, caption)

    def names_in(self, caption: str, column: str = "Name") -> list[str]:
        return [row[column] for row in self.table(caption)]

    # ---- what one does

    def click_link(self, name: str) -> None:
        self._click("a", name, "link")

    def click(self, name: str) -> None:
        """Click a button, in the dialog where one is open."""
        self._click(f"{self._within()}button", name, "button")

    def _click(self, selector: str, name: str, role: str) -> None:
        """Click what is there at that moment: a live page is drawn anew between a look and a click."""

        def click() -> bool:
            found = self._find(selector, name)
            if found is not None:
                found.click()
            return found is not None

        self.until(click, f"{role} {name!r}")

    def has_button(self, name: str) -> bool:
        return any(self._name(each) == name for each in self._shown("button"))

    def fill(self, label: str, text: str) -> None:
        entry = self.field(label)
        entry.clear()
        entry.send_keys(text)

    def choose(self, label: str, option: str) -> None:
        entry = self.field(label)
        self.until(
            lambda: next((each for each in entry.find_elements(By.TAG_NAME, "option") if each.text == option), None),
            f"option {option!r}",
        ).click()

    def tick(self, label: str) -> None:
        self.field(label).click()

    def field(self, label: str) -> WebElement:
        """The entry with that label."""
        within = self._within()
        return self.until(
            lambda: next(
                (each for each in self._shown(f"{within}:is(input, select, textarea)") if self._name(each) == label),
                None,
            ),
            f"field {label!r}",
        )

    def type(self, *keys: str) -> None:
        """Press keys, wherever the focus is."""
        ActionChains(self.driver).send_keys(*keys).perform()

    def tab_to(self, name: str, most: int = 60) -> None:
        """Press the tabulator until what has the name has the focus. Raises NotShown."""
        for _ in range(most):
            self.type(Keys.TAB)
            if self._name(self.driver.switch_to.active_element) == name:
                return
        raise NotShown(f"the tabulator does not lead to {name!r} at {self.path}")

    # ---- how it looks

    def on_a_phone(self, width: int = 360) -> None:
        size = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": True}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def in_the_dark(self, theme: str = "dark") -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def as_at_first(self) -> None:
        """Without anything that a test has set."""
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        self.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": self.url, "storageTypes": "all"})

    def ground(self) -> str:
        """The colour of the page's ground."""
        return str(self.driver.execute_script("return getComputedStyle(document.body).backgroundColor"))

    def scrolls_sideways(self) -> bool:
        script = "return document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.driver.execute_script(script))

    def barriers(self) -> list[str]:
        """What axe finds wrong for people with a screen reader, a keyboard, or weak eyes."""
        self.driver.execute_script((resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8"))
        script = "const done = arguments[0]; axe.run(document).then(done, (error) => done({failed: String(error)}))"
        found: dict[str, Any] = self.driver.execute_async_script(script)
        assert "failed" not in found, found
        return [
            f"{each['id']}: {each['help']}: {json.dumps([node['html'] for node in each['nodes']][:3])}"
            for each in found["violations"]
        ]

    def complaints(self) -> list[str]:
        """What the browser's console has: errors of scripts, and what the content policy has forbidden."""
        log = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [
            each["message"]
            for each in log
            if each["level"] == "SEVERE" and "Failed to load resource" not in each["message"]
        ]

    # ----

    def _within(self) -> str:
        return "dialog[open] " if self._shown("dialog[open]") else ""

    def _one(self, selector: str, name: str, role: str) -> WebElement:
        return self.until(lambda: self._find(selector, name), f"{role} {name!r}")

    def _find(self, selector: str, name: str) -> WebElement | None:
        return next((each for each in self._shown(selector) if self._name(each) == name), None)

    def _shown(self, selector: str) -> list[WebElement]:
        return [each for each in self.driver.find_elements(By.CSS_SELECTOR, selector) if each.is_displayed()]

    def _name(self, element: WebElement) -> str:
        return element.accessible_name.strip()
