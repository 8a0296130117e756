"""Rules for numbers of a broker that change while it runs."""

from __future__ import annotations

import pytest

from pykbroker.config import ConfigurationError
from pykbroker.config.dynamic_rules import CLEANER_MEMORY, CLEANER_THREADS, check_cleaner_memory

MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("before", "after", "is_allowed"),
    [
        ((1, 128 * MIB), (2, 128 * MIB), True),
        ((1, 2 * MIB), (2, 2 * MIB), False),
        ((1, 2 * MIB), (2, 2 * MIB + 1), False),
        ((1, 2 * MIB), (2, 2 * MIB + 2), True),
        ((2, 128 * MIB), (2, MIB), False),
        ((2, MIB), (2, MIB), True),  # as the broker was started: what does not change is refused to nobody
        ((2, MIB), (1, MIB + 1), True),
    ],
)
def test_each_thread_of_the_cleaner_has_more_than_a_mebibyte(
    before: tuple[int, int], after: tuple[int, int], is_allowed: bool
) -> None:
    names = (CLEANER_THREADS, CLEANER_MEMORY)
    numbers = [dict(zip(names, each, strict=True)).__getitem__ for each in (before, after)]
    if is_allowed:
        check_cleaner_memory(*numbers)
    else:
        with pytest.raises(ConfigurationError, match=r"requirement failed: .* at least 1MB per cleaner thread"):
            check_cleaner_memory(*numbers)
