"""The settings for development and for tests: each is served, differs from Kafka's default, and is documented."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pykbroker.cli.start_config import load_config
from pykbroker.config import BrokerConfig, broker_keys, unserved
from pykbroker.config.development import DEVELOPMENT, TEST, without_given

ROOT = Path(__file__).parents[1]
ROW = re.compile(r"^\| `([a-z.]+)=(\d+)`", re.MULTILINE)
TABLES = pytest.mark.parametrize("table", [DEVELOPMENT, TEST], ids=["development", "test"])


def listed(heading: str) -> dict[str, str]:
    """Return the rows of a section's table in docs/development.md."""
    text = (ROOT / "docs" / "development.md").read_text()
    section = text.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return dict(ROW.findall(section))


@TABLES
def test_each_setting_is_served_and_differs_from_kafkas_default(table: Mapping[str, str]) -> None:
    config = BrokerConfig(table)
    assert config.unknown_keys == config.without_effect == unserved(table) == []
    keys = broker_keys()
    assert [key for key, value in table.items() if keys[key].default == value] == []


def test_tests_have_the_settings_for_development_too() -> None:
    assert DEVELOPMENT.keys() < TEST.keys()


def test_the_documentation_lists_each() -> None:
    assert listed("Settings of `--dev`") == dict(DEVELOPMENT)
    assert listed("Settings for tests") == {key: value for key, value in TEST.items() if DEVELOPMENT.get(key) != value}


def test_the_readme_lists_those_of_dev() -> None:
    text = (ROOT / "README.md").read_text()
    assert [key for key, value in DEVELOPMENT.items() if f"{key}={value}" not in text] == []


@TABLES
@pytest.mark.parametrize("key", [key for key in BrokerConfig(TEST).originals if key != "node.id"])
def test_what_is_given_wins(tmp_path: Path, table: Mapping[str, str], key: str) -> None:
    """With the default of Kafka, which harms no other setting."""
    default = broker_keys()[key].default or ""
    file = tmp_path / "server.properties"
    file.write_text(f"{key}={default}\n")
    assert load_config(file, {}, tmp_path, defaults=table).text(key) == default
    assert load_config(None, {key: default}, tmp_path, defaults=table).text(key) == default


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
@pytest.mark.parametrize("given", ["group.{}.min.heartbeat.interval.ms", "group.{}.heartbeat.interval.ms"])
def test_settings_that_bound_each_other_are_left_alone_together(given: str, kind: str) -> None:
    left = without_given(TEST, [given.format(kind)])
    assert [key for key in left if key.startswith(f"group.{kind}.") and "heartbeat" in key] == []
    assert f"group.{kind}.assignment.interval.ms" in left


def test_what_nobody_gives_is_set(tmp_path: Path) -> None:
    config = load_config(None, {"num.partitions": "3"}, tmp_path, defaults=TEST)
    assert {key: config.text(key) for key in TEST} == TEST
    assert config.text("num.partitions") == "3"
