"""Debian's Chromium without a screen, driven by Selenium."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

WIDTH, HEIGHT = 1280, 900
PAGE_LOAD_S = 60


@contextmanager
def running_chromium(directory: Path) -> Iterator[webdriver.Chrome]:
    options = Options()
    options.binary_location = shutil.which("chromium") or ""
    options.add_argument("--headless=new")
    options.add_argument(f"--window-size={WIDTH},{HEIGHT}")
    options.add_argument(f"--user-data-dir={directory}")
    options.add_argument("--disable-dev-shm-usage")  # containers give it little
    options.add_argument("--disable-background-networking")
    options.add_argument("--no-first-run")
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")  # Chromium does not start as root with it
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    driver.set_page_load_timeout(PAGE_LOAD_S)
    try:
        yield driver
    finally:
        driver.quit()
