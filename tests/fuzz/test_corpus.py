"""Every kept input: nothing comes out of a target but what it declares, and none costs more than it may."""

from __future__ import annotations

import pytest

from . import corpus, targets
from .costs import allowed_bytes, peak_bytes, steps
from .judge import Fault, check_memory, check_steps
from .seeds import seeds
from .targets import CHOICE, NUMBERS, TARGETS

every_target = pytest.mark.parametrize("name", sorted(TARGETS))


@every_target
def test_kept_inputs_are_understood_or_refused_within_the_steps_that_they_may_take(name: str) -> None:
    for data in (*seeds(name), *corpus.read(name)):
        check_steps(name, data)


@every_target
def test_kept_inputs_take_no_more_memory_than_they_may(name: str) -> None:
    """The longest ones: what is kept is short, and each takes a while to be traced."""
    for data in [*seeds(name)[:10], *corpus.read(name)[-40:]]:
        check_memory(name, data)


@every_target
def test_a_search_has_been_made(name: str) -> None:
    assert corpus.read(name), f"make fuzz has kept no input of {name}"
    assert corpus.file_of(name).stat().st_size <= corpus.LARGEST_FILE_BYTES


def test_what_costs_too_much_is_noticed() -> None:
    assert peak_bytes(lambda: bytes(5_000_000)) > allowed_bytes(100)
    assert peak_bytes(lambda: None) < 1000

    def lines() -> None:
        for _ in range(300_000):
            pass

    assert steps(lines) > 300_000
    with pytest.raises(Fault, match="steps"):
        check_steps("subscriptions", b"\0\0" + (50_000).to_bytes(4, "big") + b"\0\0" * 50_000 + b"\0" * 4)


def test_an_exception_that_is_not_declared_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    number = NUMBERS["MetadataRequest"]

    def broken(*_: object, **__: object) -> None:
        raise KeyError("nobody declared this")

    monkeypatch.setattr(targets, "decode", broken)
    with pytest.raises(KeyError):
        check_steps("messages", CHOICE.pack(number, 0) + b"\0\0\0\0")
