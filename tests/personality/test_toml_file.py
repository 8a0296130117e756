"""Personalities as files: what is written is read again, and what is wrong is named with its line and key."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.personality.differences import differences
from pykbroker.personality.personality import Answer, BadPersonality, Personality
from pykbroker.personality.shipped import find_personality, shipped, shipped_names
from pykbroker.personality.toml_file import LARGEST_FILE_BYTES, parse_personality, read_personality
from pykbroker.personality.toml_text import to_toml
from pykbroker.protocol.schema import Versions

LEAST = 'format = 1\n[versions]\nProduce = "3-8"\n'

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ranges = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda ends: Versions(min(ends), max(ends)))
settings = st.dictionaries(
    texts, st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts), max_size=5
)
personalities = st.builds(
    Personality,
    versions=st.dictionaries(st.integers(0, 120), ranges, min_size=1, max_size=10),
    software=texts,
    told=texts,
    brokers=st.integers(0, 1000),
    authorizer=st.sampled_from([None, True, False]),
    supported_features=st.dictionaries(texts, ranges, max_size=3),
    finalized_features=st.dictionaries(texts, st.integers(0, 40), max_size=3),
    limits=settings,
    broker=settings,
    topic=settings,
    answers=st.dictionaries(texts, st.builds(Answer, texts), max_size=3),
)


@given(personalities)
def test_what_is_written_is_read_again(personality: Personality) -> None:
    assert parse_personality(to_toml(personality, ["a comment"]), "test") == personality


@pytest.mark.parametrize("name", ["2.1", "2.8", "3.9", "4.0", "4.3", "4.4"])
def test_the_personality_of_a_release_comes_along(name: str) -> None:
    found = shipped(name)
    assert found.software.startswith(f"Apache Kafka {name}.")
    assert list(differences(found, parse_personality(to_toml(found), "test"))) == []
    assert found.answers["unknown-api"].outcome == "closes the connection"
    assert found.limits["message.max.bytes"] in (1_000_012, 1_048_588)


def test_names_are_in_the_order_of_versions() -> None:
    assert shipped_names() == ["2.1", "2.8", "3.9", "4.0", "4.3", "4.4"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "test has no key 'format': it is no personality of `pykbroker probe`"),
        ("format = 1\n", r"test: there is no table \[versions\]"),
        ("format = 1\n[versions\n", r"test: .*at line 2"),
        ("format = 2\n", "test, line 1: 'format' is 2: a newer pykbroker wrote the file; this one reads 1"),
        ("format = true\n", "test, line 1: 'format' is True, expected 1"),
        (LEAST + "[limit]\n", r"test, line 4: 'limit' is unknown \(did you mean limits\?\)"),
        (LEAST + 'Fetch = "4-"\n', r"test, line 4: 'Fetch' in \[versions\] is '4-', expected a text such as \"0-9\""),
        (LEAST + 'Fetch = "9-4"\n', r"test, line 4: 'Fetch' in \[versions\] is '9-4', .*rising order"),
        (LEAST + "Fetch = 4\n", r"test, line 4: 'Fetch' in \[versions\] is 4, expected a text"),
        (LEAST + 'Fetsch = "4"\n', r"test, line 4: 'Fetsch' in \[versions\] is no API \(did you mean Fetch\?\)"),
        (
            LEAST + 'ApiKey0 = "4"\n',
            r"test, line 4: 'ApiKey0' in \[versions\] is the API Produce, which is named before",
        ),
        (LEAST + '[broker]\n"a.b" = [1]\n', r"test, line 5: 'a.b' in \[broker\] is \[1\], expected a number, a text"),
        (
            LEAST + "[features.finalized]\nx = -1\n",
            r"test, line 5: 'x' in \[features.finalized\] is -1, expected a level",
        ),
        (
            LEAST + '[cluster]\nbrokers = "1"\n',
            r"test, line 5: 'brokers' in \[cluster\] is '1', expected a whole number",
        ),
        (LEAST + "[answers]\nx = 1\n", r"test, line 5: 'x' in \[answers\] is 1, expected a text"),
        (LEAST + "features = 1\n", r"test, line 4: 'features' in \[versions\] is no API"),
        ("features = 1\n" + LEAST, "test, line 1: 'features' is 1, expected a table"),
        ("x = " + "[" * 5000, "test: "),
    ],
)
def test_what_is_wrong_is_named(text: str, complaint: str) -> None:
    with pytest.raises(BadPersonality, match=complaint) as caught:
        parse_personality(text, "test")
    assert "\n" not in str(caught.value)


def test_a_file_is_named_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(BadPersonality, match=r"mine\.toml: No such file"):
        read_personality(path)
    path.write_bytes(b"#" * (LARGEST_FILE_BYTES + 1))
    with pytest.raises(BadPersonality, match="more than"):
        read_personality(path)
    path.write_bytes(b"\xff")
    with pytest.raises(BadPersonality, match="not UTF-8"):
        read_personality(path)
    path.write_text(LEAST)
    assert find_personality(str(path)).versions == {0: Versions(3, 8)}


def test_a_name_that_nobody_has_is_told_with_those_that_there_are() -> None:
    with pytest.raises(
        BadPersonality, match=r"there is no personality '2.7' \(did you mean 2.8\?\); there are 2.1, 2.8"
    ):
        find_personality("2.7")
    with pytest.raises(BadPersonality, match=r"there is no personality .zookeeper.; there are 2\.1"):
        find_personality("zookeeper")
