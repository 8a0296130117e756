"""Which tests of a parallel run stay together in one worker process, and which of them begin first.

pytest-xdist hands out groups as a whole, all other tests one by one, in the order of collection: whoever is free takes
the next. Each worker has brokers of its own. The root conftest loads this plugin, which takes effect with
`--dist loadgroup`: xdist's own groups are written into node ids, which pytest 9.2 does not let it change.

- A group holds what shares something costly: a cluster, Spark, a loaded topic, a built image. Clusters of a test's own
  are in few groups, so that few of them run at a time: each is three processes, some of them JVMs.
- What takes longest begins first, so that no worker is left with it at the end while the others are idle.
- Tests with brokers mostly wait, those in `tests/` compute. Three of four workers begin with the former and one with
  the latter, so that the cores are at work from the beginning to the end.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

MIXED_CLUSTERS, OWN_CLUSTERS, SHARED_CLUSTER = "mixed clusters", "clusters", "cluster"
PIPELINES, REPLAYS, MIRRORS = "pipelines", "replays", "mirrors"
PAGES, PAGES_WITH_SPARK = "compat_tests/documentation/test_pages.py", "pages with Spark"

GROUPS = {
    "compat_tests/clusters/test_rolling_migration.py": MIXED_CLUSTERS,
    "compat_tests/clusters/test_mixed_quorum.py": MIXED_CLUSTERS,
    "compat_tests/clusters/test_mixed_replicas.py": MIXED_CLUSTERS,
    "compat_tests/clusters/test_cluster_command.py": OWN_CLUSTERS,
    "compat_tests/clusters/test_damaged_metadata.py": OWN_CLUSTERS,
    "compat_tests/clusters/test_files.py": OWN_CLUSTERS,
    "compat_tests/clusters/test_foreign_nodes.py": OWN_CLUSTERS,
    "compat_tests/clusters/test_kraft_version.py": OWN_CLUSTERS,
    "compat_tests/clusters/test_metadata_snapshots.py": OWN_CLUSTERS,
    "compat_tests/clusters/test_roles.py": OWN_CLUSTERS,
    "compat_tests/personalities/test_cluster_of_a_release.py": OWN_CLUSTERS,
    "compat_tests/personalities/": "personalities",
    "compat_tests/clusters/": SHARED_CLUSTER,
    f"{PAGES}::test_what_a_page_shows_works[administration]": OWN_CLUSTERS,
    f"{PAGES}::test_what_a_page_shows_works[README]": PAGES_WITH_SPARK,
    f"{PAGES}::test_what_a_page_shows_works[spark]": PAGES_WITH_SPARK,
    "compat_tests/same_files/": "files",
    "compat_tests/tls/": "tls",
    "compat_tests/acls/test_matrix.py": "matrix",
    "compat_tests/acls/test_mixed_cluster.py": MIXED_CLUSTERS,
    "compat_tests/tokens/test_tokens_taken_over.py": MIXED_CLUSTERS,
    "compat_tests/tokens/": "tokens",
    "compat_tests/test_container_image.py": "image",
    "compat_tests/test_examples.py": "examples",
    "compat_tests/test_standard_library.py": "library",
    "spark_compat/test_archive": PIPELINES,
    "spark_compat/test_audit": PIPELINES,
    "spark_compat/test_lag": REPLAYS,
    "spark_compat/test_mirror": MIRRORS,
    "spark_compat/test_replay": REPLAYS,
    "spark_compat/": "spark",
    "tests/protocol/test_schema_parity.py": "schemas",
    "tests/packaging/": "packages",
}
"""By the beginning of the node id; the first that fits."""

FILE_BY_FILE = ("compat_tests/console/",)
"""Folders in which each file is a group: its tests share a browser and a broker."""

SECONDS = {
    "spark": 240,
    PIPELINES: 300,
    REPLAYS: 250,
    MIRRORS: 200,
    MIXED_CLUSTERS: 180,
    "compat_tests/chaos/test_chaos.py": 150,
    "compat_tests/console/test_console_pages.py": 60,
    "compat_tests/console/test_console_records.py": 60,
    "compat_tests/console/test_console_record_requests.py": 50,
    "compat_tests/console/test_console_groups.py": 50,
    "compat_tests/console/test_console_screenshots.py": 30,
    "compat_tests/test_user_suites.py": 90,
    "compat_tests/exactly_once/test_copies.py": 100,
    PAGES_WITH_SPARK: 180,
    OWN_CLUSTERS: 100,
    SHARED_CLUSTER: 60,
    "image": 60,
    "examples": 120,
    "tls": 60,
    "library": 15,
    "matrix": 20,
    "compat_tests/test_legacy_messages.py": 35,
    "compat_tests/test_throttling.py": 45,
    "compat_tests/sasl/test_login_floods.py": 35,
    "compat_tests/exactly_once/test_streams.py": 20,
    "compat_tests/taking_over/test_taking_over.py": 20,
    "compat_tests/test_topic_ids.py": 20,
    "compat_tests/test_transactions_in_files.py": 20,
    "compat_tests/state_machines/test_logs.py": 15,
    "compat_tests/state_machines/test_transactions.py": 15,
    "compat_tests/state_machines/test_restarts.py": 15,
    "compat_tests/test_preallocation.py": 12,
    "compat_tests/test_verify.py": 12,
    "compat_tests/test_system_calls.py": 15,
    "compat_tests/power_cuts/test_power_cuts.py": 20,
    PAGES: 10,
    "tests/test_site.py": 12,
}
"""How long a group, or a test of a file, takes on a quiet machine: of those that take more than ten seconds."""


class SideBySide(LoadScopeScheduling):
    """xdist's way to hand out scopes as a whole, with these groups as scopes, and from both ends of the queue."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if begins_with_computing(node.gateway.id):
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> SideBySide | None:
    return SideBySide(config, log) if config.getoption("dist") == "loadgroup" else None  # type: ignore[arg-type]


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """Sorts after pytest did. A run in one process keeps its order."""
    yield
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (-_seconds(item.nodeid), item.nodeid.startswith("tests/")))


def group_of(nodeid: str) -> str:
    """What is in no group is one of its own."""
    if nodeid.startswith(FILE_BY_FILE):
        return nodeid.split("::")[0]
    return next((group for beginning, group in GROUPS.items() if nodeid.startswith(beginning)), nodeid)


def begins_with_computing(worker: str) -> bool:
    """worker: its name, `gw3` is the fourth."""
    return int(worker.removeprefix("gw")) % 4 == 3


def _seconds(nodeid: str) -> int:
    return SECONDS.get(group_of(nodeid), 0) or SECONDS.get(nodeid.split("::")[0], 0)
