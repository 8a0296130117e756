"""Which tests of a parallel run stay together in one worker process, and which of them begin first.

pytest-xdist (`--dist loadgroup`) hands out groups as a whole, all other tests one by one, in the order of collection:
whoever is free takes the next. Each worker has brokers of its own. The root conftest loads this plugin.

- A group holds what shares something costly: a cluster, Spark, a loaded topic, a built image. Clusters of a test's own
  are in few groups, so that few of them run at a time: each is three processes, some of them JVMs.
- Tests that compare answers stay together by file: where a run has both brokers, Apache Kafka is asked first.
- What takes longest begins first, so that no worker is left with it at the end while the others are idle.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

GROUPS = {
    "compat_tests/clusters/test_rolling_migration.py": "mixed clusters",
    "compat_tests/clusters/test_mixed_quorum.py": "mixed clusters",
    "compat_tests/clusters/test_mixed_replicas.py": "mixed clusters",
    "compat_tests/clusters/test_damaged_metadata.py": "clusters",
    "compat_tests/same_files/test_same_files.py": "files",
    "compat_tests/test_container_image.py": "image",
    "compat_tests/test_standard_library.py": "library",
    "compat_tests/test_api_versions.py": "versions",
    "tests/protocol/test_schema_parity.py": "schemas",
    "tests/test_packaging.py": "packages",
}
"""By file; for what is in none of these see GROUPS_OF_FIXTURES."""

GROUPS_OF_FIXTURES = {"spark": "spark", "shared_cluster": "cluster", "new_cluster": "clusters"}

SECONDS: dict[str, int] = {
    "mixed clusters": 180,
    "compat_tests/chaos/test_chaos.py": 150,
    "compat_tests/exactly_once/test_copies.py": 100,
    "spark": 90,
    "clusters": 80,
    "cluster": 60,
    "image": 60,
    "library": 60,
    "compat_tests/test_legacy_messages.py": 35,
    "compat_tests/exactly_once/test_streams.py": 20,
    "compat_tests/taking_over/test_taking_over.py": 20,
    "compat_tests/test_topic_ids.py": 20,
    "compat_tests/test_transactions_in_files.py": 20,
    "compat_tests/test_preallocation.py": 12,
    "compat_tests/test_verify.py": 12,
}
"""How long a group, or a test of a file, takes on a quiet machine: of those that take more than ten seconds."""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Names groups before pytest-xdist reads them, and sorts after pytest did. A run in one process keeps its order."""
    is_worker = hasattr(config, "workerinput")
    if is_worker:
        for item in items:
            if group := group_of(item):
                item.add_marker(pytest.mark.xdist_group(group))
    yield
    if is_worker:
        items.sort(key=_seconds, reverse=True)


def group_of(item: pytest.Item) -> str | None:
    names = getattr(item, "fixturenames", ())
    by_fixture = (group for fixture, group in GROUPS_OF_FIXTURES.items() if fixture in names)
    return GROUPS.get(_file(item)) or next(by_fixture, None) or (_file(item) if "answers" in names else None)


def _seconds(item: pytest.Item) -> int:
    return SECONDS.get(group_of(item) or _file(item), 0)


def _file(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).as_posix()
