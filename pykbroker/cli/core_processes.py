"""The processes of `start --cores`: the first node and the brokers beside it, which one command keeps running.

The first node starts first, since it is the controller, and stops last. One that does not come up at its first start is
the end of all. One that served and ends is started again: after a moment, then after twice as long each time, and after
`MOST_FAILURES` starts of which none served for `STEADY_S` the command ends, so that whoever watches it takes over.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import trio

from pykbroker.config.cores_plan import CoreNode

from .cluster_lines import ClusterLines
from .cluster_processes import NodeProcess, end_processes, how_it_ended
from .core_count import CORES_VARIABLE
from .service_manager import VARIABLE as NOTIFY_SOCKET
from .stop_requests import StopRequests

FIRST_DELAY_S: Final = 0.25
MOST_DELAY_S: Final = 30.0
MOST_FAILURES: Final = 8
STEADY_S: Final = 60.0
_OWN_VARIABLES: Final = (CORES_VARIABLE, NOTIFY_SOCKET)
"""They are for the command: a node among many is neither several itself, nor the service that is waited for."""


class CoreProcesses:
    """All processes, from the start to the end. exit_code: the one of the command, once it has run.

    arguments: of each node's start. on_ready: takes the first node's ready line, when all nodes serve.
    """

    def __init__(
        self,
        nodes: Sequence[CoreNode],
        lines: ClusterLines,
        arguments: Sequence[str],
        on_ready: Callable[[str], None],
        *,
        is_ephemeral: bool,
        origins: Mapping[str, str],
    ) -> None:
        self._nodes = nodes
        self._tell = lines.tell
        self._words = lines.words
        self._says = lines.of_nodes([each.name for each in nodes])
        self._arguments = [*arguments, "--node-of-cores"]
        self._on_ready = on_ready
        self._is_ephemeral = is_ephemeral
        self._origins = origins
        self._environment = {name: text for name, text in os.environ.items() if name not in _OWN_VARIABLES}
        self._running: dict[int, NodeProcess] = {}
        self._stop_asked = trio.Event()
        self.exit_code = 0

    async def run(self, stop: StopRequests) -> None:
        """Run the nodes until a stop is asked for, or one of them cannot be kept running."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._listen, stop)
            nursery.start_soon(self._start_all, nursery)
            await self._stop_asked.wait()
            first = self._running.get(0)
            others = [each for number, each in self._running.items() if number]
            for some in (others, [] if first is None else [first]):
                if not await end_processes(some, self._tell):
                    self.exit_code = 1
            nursery.cancel_scope.cancel()

    async def _start_all(self, nursery: trio.Nursery) -> None:
        for numbers in ([0], range(1, len(self._nodes))):
            if self._stop_asked.is_set():
                return
            first_lives = [self._new_process(number) for number in numbers]
            for number, process in zip(numbers, first_lives, strict=True):
                nursery.start_soon(self._keep_running, number, process)
            for process in first_lives:
                await process.settled.wait()
            if self._stop_asked.is_set() or not all(each.is_ready for each in first_lives):
                return
        self._on_ready(self._running[0].ready_line)

    def _new_process(self, number: int) -> NodeProcess:
        node = self._nodes[number]
        told = {
            "settings": dict(node.settings),
            "origins": {key: text for key, text in self._origins.items() if key not in node.derived}
            | {key: f"--cores {len(self._nodes)}" for key in node.derived},
            "ephemeral": self._is_ephemeral,
        }
        process = self._running[number] = NodeProcess(
            node.name,
            self._says[number],
            self._arguments,
            settings=json.dumps(told).encode() + b"\n",
            environment=self._environment,
            tells_ready=False,
        )
        return process

    async def _keep_running(self, number: int, process: NodeProcess) -> None:
        name, failures = process.name, 0
        for life in itertools.count():
            began = trio.current_time()
            await process.run()
            if self._stop_asked.is_set():
                return
            how = f"it {how_it_ended(process.returncode)}: {self._words(process.last_line)}"
            if life == 0 and not process.is_ready:
                self._fail(f"{name} did not start, {how}")
                return
            served = process.is_ready and trio.current_time() - began >= STEADY_S
            failures = 1 if served else failures + 1
            if failures > MOST_FAILURES:
                self._fail(f"{name} does not stay up, {how}")
                return
            delay = min(FIRST_DELAY_S * 2 ** (failures - 1), MOST_DELAY_S)
            self._tell(f"{name} {how_it_ended(process.returncode)}; it is started again in {delay:g} s")
            with trio.move_on_after(delay):
                await self._stop_asked.wait()
            if self._stop_asked.is_set():
                return
            process = self._new_process(number)

    async def _listen(self, stop: StopRequests) -> None:
        for times in itertools.count(1):
            await stop.asked(times)
            if self._stop_asked.is_set():
                self._tell("the nodes are killed")
                for process in self._running.values():
                    process.send_signal(signal.SIGKILL)
            self._stop_asked.set()

    def _fail(self, text: str) -> None:
        self._tell(text)
        self.exit_code = 1
        self._stop_asked.set()
