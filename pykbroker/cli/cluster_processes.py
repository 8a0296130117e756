"""The processes of `pykbroker cluster`: their output, line by line, and their ends.

Each node is a process group of its own, so that Ctrl-C on the terminal reaches this process alone, which then ends them
in good order.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click
import trio

from pykbroker.config.cluster_plan import ClusterPlan

from .cluster_lines import ClusterLines
from .stop_requests import StopRequests

STOP_DEADLINE_S = 60.0
LAST_LINES_DEADLINE_S = 1.0
READY = "pykbroker ready:"


class NodeProcess:
    """The process of one node.

    say: takes each line of its log. arguments: of its start. settings: a line that its standard input begins
    with, which then stays open for as long as this process runs; None: it has nothing to read there. environment: None
    for this process's. tells_ready: its ready line is said like those of its log.
    """

    def __init__(
        self,
        name: str,
        say: Callable[[str], None],
        arguments: Sequence[str],
        *,
        settings: bytes | None = None,
        environment: Mapping[str, str] | None = None,
        tells_ready: bool = True,
    ) -> None:
        self.name = name
        self.is_ready = False
        self.ready_line = ""
        self.settled = trio.Event()
        """It serves, or it has ended."""
        self.ended = trio.Event()
        self.last_line = ""
        self._command = [sys.executable, "-m", "pykbroker", "start", "--parent-pid", str(os.getpid()), *arguments]
        self._settings = settings
        self._environment = environment
        self._tells_ready = tells_ready
        self._say = say
        self._process: trio.Process | None = None
        self._pending: signal.Signals | None = None
        """A signal that came before there was a process."""

    @property
    def returncode(self) -> int | None:
        return None if self._process is None else self._process.returncode

    async def run(self) -> None:
        """Run the process from its start to its end."""
        self._process = process = await trio.lowlevel.open_process(
            self._command,
            stdin=subprocess.DEVNULL if self._settings is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
            env=self._environment,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        if self._pending is not None:
            process.send_signal(self._pending)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._read, process.stdout, self._note_stdout)
                nursery.start_soon(self._read, process.stderr, self._note_log)
                if process.stdin is not None:
                    nursery.start_soon(self._tell_settings, process.stdin)
                await process.wait()
                # What it left behind is read; a child of its own that has the pipes, too, is not waited for.
                nursery.cancel_scope.deadline = trio.current_time() + LAST_LINES_DEADLINE_S
        finally:
            if process.returncode is None:
                process.kill()
            self.settled.set()
            self.ended.set()

    async def _tell_settings(self, stdin: trio.abc.SendStream) -> None:
        assert self._settings is not None
        async with stdin:
            try:
                await stdin.send_all(self._settings)
            except trio.BrokenResourceError:  # it ends, and says why itself
                return
            await self.ended.wait()  # the pipe's end is the end of this process

    def send_signal(self, number: signal.Signals) -> None:
        if self._process is None:
            self._pending = number
        elif self._process.returncode is None:
            self._process.send_signal(number)

    async def _read(self, stream: trio.abc.ReceiveStream, note: Callable[[str], None]) -> None:
        pending = b""
        async with stream:
            async for data in stream:
                *lines, pending = (pending + data).split(b"\n")
                for line in lines:
                    note(line.decode(errors="replace"))
        if pending:
            note(pending.decode(errors="replace"))

    def _note_stdout(self, line: str) -> None:
        if line.startswith(READY):
            self.is_ready = True
            self.ready_line = line
            self.settled.set()
            if not self._tells_ready:
                return
        self._say(line)

    def _note_log(self, line: str) -> None:
        self.last_line = line
        self._say(line)


class ClusterProcesses:
    """The processes of a cluster's nodes. exit_code: the one of the command, once it has run.

    flags: of each node's start.
    """

    def __init__(
        self, plan: ClusterPlan, properties_files: Mapping[int, Path], lines: ClusterLines, flags: Sequence[str] = ()
    ) -> None:
        self._plan = plan
        self._tell = lines.tell
        self._words = lines.words
        says = lines.of_nodes([node.name for node in plan.nodes])
        self._processes = [
            NodeProcess(node.name, say, [*flags, str(properties_files[node.node_id])])
            for node, say in zip(plan.nodes, says, strict=True)
        ]
        self._is_stopping = False
        self._stop_asked = trio.Event()
        self.exit_code = 0

    async def run(self, stop: StopRequests) -> None:
        async with trio.open_nursery() as nursery:
            for process in self._processes:
                nursery.start_soon(process.run)
                nursery.start_soon(self._watch, process)
            nursery.start_soon(self._listen, stop)
            nursery.start_soon(self._announce)
            await self._stop_asked.wait()
            await self._stop()
            nursery.cancel_scope.cancel()

    async def _listen(self, stop: StopRequests) -> None:
        for times in itertools.count(1):
            await stop.asked(times)
            if self._is_stopping:
                self._tell("the nodes are killed")
                self._signal_all(signal.SIGKILL)
            self._is_stopping = True
            self._stop_asked.set()

    async def _announce(self) -> None:
        """The line that says that all serve."""
        for process in self._processes:
            await process.settled.wait()
        if not self._is_stopping:
            click.echo(f"pykbroker cluster ready: {self._plan.bootstrap_servers}")

    async def _watch(self, process: NodeProcess) -> None:
        """One that does not start is the end of all; of those that served the others go on."""
        await process.ended.wait()
        if self._is_stopping:
            return
        how = how_it_ended(process.returncode)
        if not process.is_ready:
            self._tell(f"{process.name} did not start, it {how}: {self._words(process.last_line)}")
            self._fail()
        elif any(not each.ended.is_set() for each in self._processes):
            self._tell(f"{process.name} {how}; the other nodes go on")
        else:
            self._tell(f"{process.name} {how}; no node is left")
            self._fail()

    def _fail(self) -> None:
        self.exit_code = 1
        self._is_stopping = True
        self._stop_asked.set()

    async def _stop(self) -> None:
        """Brokers leave in good order only as long as there are controllers."""
        of_nodes = list(zip(self._plan.nodes, self._processes, strict=True))
        await self._end([each for node, each in of_nodes if node.controller_port is None])
        await self._end([each for node, each in of_nodes if node.controller_port is not None])

    async def _end(self, processes: Sequence[NodeProcess]) -> None:
        if not await end_processes(processes, self._tell):
            self.exit_code = 1

    def _signal_all(self, number: signal.Signals) -> None:
        for process in self._processes:
            process.send_signal(number)


async def end_processes(processes: Sequence[NodeProcess], tell: Callable[[str], None]) -> bool:
    """Stop them, all at a time, and kill those that do not. Returns whether all ended well."""
    running = [each for each in processes if not each.ended.is_set()]
    for process in running:
        process.send_signal(signal.SIGTERM)
    with trio.move_on_after(STOP_DEADLINE_S):
        for process in running:
            await process.ended.wait()
    for process in running:
        if not process.ended.is_set():
            tell(f"{process.name} did not stop within {STOP_DEADLINE_S:g} s and is killed")
            process.send_signal(signal.SIGKILL)
            await process.ended.wait()
    # A return code of SIGTERM is that of a process that could not take signals yet.
    return all(each.returncode in (0, -signal.SIGTERM) for each in running)


def how_it_ended(returncode: int | None) -> str:
    assert returncode is not None
    if returncode < 0:
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"ended with exit code {returncode}"
