"""All oracles of one run: what they note while it lasts, and what they ask when all is quiet."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from ..stage import ClusterStage
from ..topic_clients import TopicClients
from .agreement import until_agreed
from .directories import check_directories
from .images import Images, check_answers
from .lines import Lines
from .lives import Lives
from .membership import until_rejoined
from .quiet import check_quiet
from .resources import OpenFiles, Resources, check_connections, check_files, resources_at_rest
from .topic_order import check_topics
from .traffic import Traffic

_STOPS_WITHIN_S = 30.0
_STARTS_WITHIN_S = 30.0


class Watch:
    def __init__(self, seed: int) -> None:
        self._rng = random.Random(f"watch {seed}")
        self.lives = Lives()
        self.images = Images()
        self.topics = TopicClients(seed)
        self.traffic = Traffic()
        self.lines = Lines()
        self.files = OpenFiles()

    @contextmanager
    def watching(self) -> Iterator[None]:
        with (
            self.lives.watching(),
            self.images.watching(),
            self.traffic.watching(),
            self.lines.watching(),
            self.files.watching(),
        ):
            yield

    async def check_end(self, stage: ClusterStage) -> None:
        """Clients have left. Raises AssertionError, or TooSlowError where nodes do not stop or start."""
        self.traffic.check_hot_loops()
        self.lines.check_hot_lines()
        await until_agreed(self.lives)
        await check_answers(stage, self.lives)
        check_topics(self.topics.mutations, next(iter(self.lives.values())).image)
        await check_quiet(self.lives, self.traffic, self.lines)
        held = await resources_at_rest(self.lives)
        for node_id, life in self.lives.items():
            check_connections(life)
            check_files(node_id, stage.cluster.nodes[node_id].process, self.files)
        await self._stop_all(stage)
        disks = {node_id: node.disk for node_id, node in stage.cluster.nodes.items()}
        check_directories(disks)
        check_directories(disks, lost_power=await self._cut_power(stage))
        with trio.fail_after(_STARTS_WITHIN_S):
            await stage.cluster.start(stage.nursery)
        await until_rejoined(self.lives)
        await until_agreed(self.lives)
        held.compare(Resources(self.lives))

    async def _stop_all(self, stage: ClusterStage) -> None:
        """One after another, or all at once."""
        nodes = list(stage.cluster.nodes.values())
        self._rng.shuffle(nodes)
        with trio.fail_after(_STOPS_WITHIN_S):
            async with trio.open_nursery() as stopping:
                for node in nodes:
                    stopping.start_soon(node.stop)
                    await trio.sleep(self._rng.choice((0.0, 0.0, 1.0)) * self._rng.random())

    async def _cut_power(self, stage: ClusterStage) -> set[int]:
        """What a clean stop has left survives it."""
        lost = {node_id for node_id in stage.cluster.nodes if self._rng.random() < 0.5}
        for node_id in sorted(lost):
            await stage.cluster.nodes[node_id].lose_power()
        return lost
