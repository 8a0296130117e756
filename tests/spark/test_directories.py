"""Files that only one of several runs may create."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pykbroker.spark import directories


def test_of_two_threads_that_create_a_file_one_does_and_its_text_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one comes when the first has written all of its text, and has not given it the name yet."""
    taken = tmp_path / "commits" / "12.json"
    link = os.link
    others: list[bool] = []

    def link_behind_another(source: Path, target: Path) -> None:
        if not others:
            others.append(False)
            others[0] = directories._create_local(taken, b"of the other one")
        link(source, target)

    monkeypatch.setattr(os, "link", link_behind_another)
    created = directories._create_local(taken, b"of this one")
    assert [created, *others] == [False, True]
    assert taken.read_bytes() == b"of the other one"
    assert [each.name for each in taken.parent.iterdir()] == [taken.name]


def test_who_comes_too_late_does_not_touch_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one gives its text the name, and has not gone when the second writes."""
    taken = tmp_path / "12.json"
    link = os.link
    others: list[bool] = []

    def link_before_another(source: Path, target: Path) -> None:
        link(source, target)
        if not others:
            others.append(True)
            others[0] = directories._create_local(taken, b"of the other one")

    monkeypatch.setattr(os, "link", link_before_another)
    assert directories._create_local(taken, b"of this one")
    assert others == [False]
    assert taken.read_bytes() == b"of this one"
