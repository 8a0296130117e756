"""The longest proofs take turns in `.ci/run`: of each set it has one, another one for another commit.

`make test` has all of them. The same commit has the same ones again. Together they would be a quarter of a run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

SETS: tuple[tuple[str, ...], ...] = (
    (
        "spark_compat/test_archive_kills.py",
        "spark_compat/test_kills.py",
        "spark_compat/test_mirror_kills.py",
        "spark_compat/test_replay_kills.py",
    ),
    ("spark_compat/test_archive.py", "spark_compat/test_mirror.py", "spark_compat/test_replay.py"),
    (
        "compat_tests/documentation/test_pages.py::test_what_a_page_shows_works[README]",
        "compat_tests/documentation/test_pages.py::test_what_a_page_shows_works[spark]",
    ),
    (
        "compat_tests/clusters/test_rolling_migration.py::test_a_cluster_changes_its_kind_and_back_at_work[static]",
        "compat_tests/clusters/test_rolling_migration.py::test_a_cluster_changes_its_kind_and_back_at_work[dynamic]",
    ),
    (
        "compat_tests/clusters/test_secured_migration.py::"
        "test_users_rights_quotas_and_tokens_stay_through_a_migration[kafka-first]",
        "compat_tests/clusters/test_secured_migration.py::"
        "test_users_rights_quotas_and_tokens_stay_through_a_migration[ours-first]",
    ),
    (
        "compat_tests/clusters/test_mixed_replicas.py::test_replicas_of_both_kinds_are_alike_whoever_is_killed[one]",
        "compat_tests/clusters/test_mixed_replicas.py::test_replicas_of_both_kinds_are_alike_whoever_is_killed[two]",
    ),
    (
        "compat_tests/exactly_once/test_copies.py::test_the_copy_is_the_original[pykbroker-confluent]",
        "compat_tests/exactly_once/test_copies.py::test_the_copy_is_the_original[pykbroker-java]",
    ),
    tuple(
        f"compat_tests/differential/test_recorded.py::test_a_chapter_is_answered_as_by_apache_kafka[plain-0{number}]"
        for number in range(1, 5)
    ),
)
"""Sets of proofs by the beginnings of their node ids."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out those whose turn it is not, where PYKBROKER_TAKE_TURNS is set."""
    if "PYKBROKER_TAKE_TURNS" not in os.environ:
        return
    out = left_out(SETS, number_of_this_commit())
    waiting = [item for item in items if item.nodeid.startswith(out)]
    if waiting:
        config.hook.pytest_deselected(items=waiting)
        items[:] = [item for item in items if not item.nodeid.startswith(out)]


def left_out(sets: Sequence[Sequence[str]], number: int) -> tuple[str, ...]:
    """The proofs that wait for another commit than the one with this number."""
    return tuple(each for proofs in sets for index, each in enumerate(proofs) if index != number % len(proofs))


def number_of_this_commit() -> int:
    """Return its hash as a number; 0 where there is no repository, or no git."""
    git = shutil.which("git")
    if git is None:
        return 0
    here = Path(__file__).parent
    done = subprocess.run([git, "rev-parse", "HEAD"], cwd=here, capture_output=True, text=True, check=False)
    return int(done.stdout.strip() or "0", 16)
