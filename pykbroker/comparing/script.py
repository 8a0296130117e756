"""The runs of one script: against each broker once, behind a recording proxy."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

import trio

from pykbroker.client.cluster import parse_bootstrap_servers
from pykbroker.client.errors import ClientError
from pykbroker.client.from_properties import cluster_of, opening_of
from pykbroker.config.keys import ConfigurationError

from .final_state import FinalState, read_before, read_final
from .recording import Recording
from .recording_proxy import RecordingProxy

VARIABLES: Final = ("BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS")
"""Of the script's environment; they have the address of the proxy."""
IN_ARGUMENTS: Final = "{bootstrap}"
_READY: Final = "pykbroker ready: "
_CLIENT_ID: Final = "pykbroker-diff"


class CouldNotRun(Exception):
    """The error of a run after which nothing can be compared; its text is one line."""


@dataclass(frozen=True, slots=True)
class Run:
    """The outcome of one run. exit_code: of the script."""

    exit_code: int
    recording: Recording
    state: FinalState


async def run_script(
    bootstrap: str,
    properties: Mapping[str, str],
    command: Sequence[str],
    meanwhile: AbstractContextManager[None] | None = None,
) -> Run:
    """Run the script once against the cluster, to its end. Raises CouldNotRun.

    properties: of Java's clients, with which the cluster's state is read, and the proxy reaches its brokers. The
    script's output goes to standard error. meanwhile: entered while the script runs.
    """
    recording = Recording()
    try:
        open_stream = opening_of(properties)
        async with cluster_of(bootstrap, properties, client_id=_CLIENT_ID) as cluster:
            before = await read_before(cluster)
            async with trio.open_nursery() as nursery:
                proxy = RecordingProxy(nursery, recording, open_stream)
                local = [await proxy.stand_for(each) for each in parse_bootstrap_servers(bootstrap)]
                with meanwhile or nullcontext():
                    exit_code = await _run(command, ",".join(f"{host}:{port}" for host, port in local))
                nursery.cancel_scope.cancel()
            return Run(exit_code, recording, await read_final(cluster, before))
    except ClientError as error:
        raise CouldNotRun(f"{bootstrap}: {error}") from None
    except ConfigurationError as error:
        raise CouldNotRun(str(error)) from None


async def _run(command: Sequence[str], bootstrap: str) -> int:
    arguments = [each.replace(IN_ARGUMENTS, bootstrap) for each in command]
    environment = {**os.environ, **dict.fromkeys(VARIABLES, bootstrap)}
    try:
        done = await trio.run_process(arguments, env=environment, check=False, stdout=sys.stderr.fileno())
    except OSError as error:
        raise CouldNotRun(f"{command[0]} cannot be run: {error.strerror or error}") from None
    return done.returncode


@asynccontextmanager
async def fresh_broker(personality: str | None, properties: Mapping[str, str]) -> AsyncIterator[str]:
    """Run a broker of its own, with nothing in it, and give its address. Raises CouldNotRun."""
    arguments = [sys.executable, "-m", "pykbroker", "start", "--ephemeral"]
    for name, value in {"listeners": "PLAINTEXT://127.0.0.1:0", **properties}.items():
        arguments += ["--override", f"{name}={value}"]
    if personality:
        arguments += ["--as", personality]
    process = await trio.lowlevel.open_process(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    log = _Log()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(log.keep, process.stderr)
        try:
            yield await _address(process.stdout, log)
        finally:
            with trio.CancelScope(shield=True):
                process.terminate()
                await process.wait()
            nursery.cancel_scope.cancel()


async def _address(output: trio.abc.ReceiveStream, log: _Log) -> str:
    text = bytearray()
    while b"\n" not in text:
        data = await output.receive_some(4096)
        if not data:
            await log.ended.wait()
            raise CouldNotRun(f"the broker did not start: {log.last_line}")
        text += data
    line = text.decode(errors="replace")
    return line.removeprefix(_READY).split()[0].partition("://")[2]


class _Log:
    """The end of a broker's log, for the error that it may be."""

    def __init__(self) -> None:
        self.ended = trio.Event()
        self._kept = bytearray()

    @property
    def last_line(self) -> str:
        return (self._kept.decode(errors="replace").strip().splitlines() or ["no reason given"])[-1]

    async def keep(self, stream: trio.abc.ReceiveStream) -> None:
        try:
            while data := await stream.receive_some(65536):
                self._kept += data
                del self._kept[:-65536]
        finally:
            self.ended.set()
