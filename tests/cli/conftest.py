"""One broker for the tests of the client commands, and the commands as a script runs them.

PYKBROKER_TEST_BOOTSTRAP=host:port names a broker to use instead, of whatever make.
"""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from click.testing import CliRunner

from compat_tests.brokers import Broker, ExternalBroker, Pykbroker
from pykbroker.cli.main import main
from pykbroker.client.cluster import Cluster, parse_bootstrap_servers
from pykbroker.client.producer import open_producer

TIMEOUT_S = 60
PYKBROKER = [sys.executable, "-c", "from pykbroker.cli.main import main; main()"]
ROOT = Path(__file__).parents[2]

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def cells(self) -> list[list[str]]:
        """A table's rows below its titles."""
        return [line.split() for line in self.lines if line][1:]


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    external = os.environ.get("PYKBROKER_TEST_BOOTSTRAP")
    broker: Broker = ExternalBroker(external) if external else Pykbroker(tmp_path_factory.mktemp("cli") / "broker")
    broker.start()
    yield broker.bootstrap
    broker.close()


@pytest.fixture
def name() -> Callable[[str], str]:
    """Names that no other test, and no other run, uses: `name("topic")`."""
    return lambda noun: f"{noun}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def topic(name: Callable[[str], str]) -> str:
    return name("topic")


@pytest.fixture
def given(bootstrap: str) -> Callable[..., None]:
    """`given(topic, b"a", b"b")` sends records in this process."""

    def send(topic: str, *values: bytes) -> None:
        async def work() -> None:
            async with Cluster(parse_bootstrap_servers(bootstrap)) as cluster, open_producer(cluster) as producer:
                for value in values:
                    await producer.send(topic, value)

        trio.run(work)

    return send


@pytest.fixture
def call(bootstrap: str) -> Callable[..., Outcome]:
    """`call("topics --list")` in this process; what follows the text are further arguments as they are."""

    def invoke(text: str, *more: str) -> Outcome:
        command, *flags = text.split()
        result = CliRunner().invoke(main, [command, "--bootstrap-server", bootstrap, *flags, *more])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def start(bootstrap: str) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """`start("consume --topic t")` as a process with pipes; killed at the end of the test if it still runs."""
    started: list[subprocess.Popen[bytes]] = []

    def spawn(text: str, *more: str) -> subprocess.Popen[bytes]:
        command, *flags = text.split()
        process = subprocess.Popen(
            [*PYKBROKER, command, "--bootstrap-server", bootstrap, *flags, *more],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        started.append(process)
        return process

    yield spawn
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def run(start: Callable[..., subprocess.Popen[bytes]]) -> Callable[..., Outcome]:
    """`run("produce --topic t", stdin=b"a\n")` as a process, to its end."""

    def finish(text: str, *more: str, stdin: bytes = b"") -> Outcome:
        process = start(text, *more)
        out, err = process.communicate(stdin, timeout=TIMEOUT_S)
        return Outcome(process.returncode, out.decode(), err.decode())

    return finish
