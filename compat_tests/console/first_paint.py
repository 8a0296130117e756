"""How long pages of the console take to be seen, in Chromium.

    python -m compat_tests.console.first_paint [TOPICS [ROUNDS]]

Measured from the navigation on: the first paint, the heading with what the page shows, and its first table; of a broker
without topics, and of one with so many of ten partitions. The very first visit imports the console.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from confluent_kafka.admin import AdminClient, NewTopic
from selenium.webdriver import Chrome

from .chromium import running_chromium
from .console_broker import ConsoleBroker
from .page import Page

PAGES = ("/", "/topics", "/groups", "/cluster", "/quotas")
PARTITIONS = 10
AT_ONCE = 100
WATCH = """
    window.seen = {};
    const look = () => {
        for (const [name, selector] of [["heading", "main h1"], ["table", "main table"]]) {
            if (!(name in seen) && document.querySelector(selector)) seen[name] = performance.now();
        }
    };
    new MutationObserver(look).observe(document, { childList: true, subtree: true });
"""
FOUND = """
    const paint = performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
    return "table" in seen && paint !== undefined ? [paint, seen.heading, seen.table] : null;
"""


def times_ms(page: Page, path: str) -> Sequence[float]:
    """First paint, heading and table of one visit."""
    page.driver.get("about:blank")
    page.open(path)
    return page.until(lambda: page.driver.execute_script(FOUND), "table and paint")


def make_topics(console: ConsoleBroker, count: int) -> None:
    admin = AdminClient({"bootstrap.servers": console.bootstrap})
    names = [f"of.many.{number}" for number in range(count)]
    for first in range(0, count, AT_ONCE):
        made = admin.create_topics([NewTopic(each, PARTITIONS, 1) for each in names[first : first + AT_ONCE]])
        for future in made.values():
            future.result(timeout=120)


def tell(title: str, times: Sequence[Sequence[float]]) -> None:
    paint, heading, table = (median(each) for each in zip(*times, strict=True))
    line = f"{title:<32} paint {paint:6.0f} ms  heading {heading:6.0f} ms  table {table:6.0f} ms\n"
    sys.stdout.write(line)
    sys.stdout.flush()


def measure(driver: Chrome, console: ConsoleBroker, topics: int, rounds: int) -> None:
    driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
    page = Page(driver, console.url)
    tell("first visit after the start", [times_ms(page, "/")])
    for path in PAGES:
        tell(path, [times_ms(page, path) for _ in range(rounds)])
    make_topics(console, topics)
    for path in (*PAGES, "/topics/of.many.0"):
        tell(f"{path}, {topics} topics", [times_ms(page, path) for _ in range(rounds)])


def main() -> None:
    topics, rounds = (int(each) for each in (sys.argv[1:] + ["1000", "5"][len(sys.argv) - 1 :])[:2])
    with tempfile.TemporaryDirectory() as directory, running_chromium(Path(directory) / "chromium") as driver:
        console = ConsoleBroker(Path(directory) / "broker")
        console.start()
        try:
            measure(driver, console, topics, rounds)
        finally:
            console.close()


if __name__ == "__main__":
    main()
