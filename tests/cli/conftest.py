"""One broker for the tests of the client commands, and the commands as a script runs them.

PYKBROKER_TEST_BOOTSTRAP=host:port names a broker to use instead, of whatever make.
"""

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO

import pytest
import trio
from click.testing import CliRunner

from compat_tests.brokers import Broker, ExternalBroker, Pykbroker
from pykbroker.cli.main import main
from pykbroker.client.cluster import Cluster, parse_bootstrap_servers
from pykbroker.client.producer import open_producer

from .cluster_command import base_port, start_cluster  # noqa: F401 - fixtures

TIMEOUT_S = 180
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


def calling(bootstrap: str) -> Callable[..., Outcome]:
    """Return what runs `"topics --list"` in this process; what follows the text are further arguments as they are.

    with_server=False: the text alone says where the cluster is.
    """

    def invoke(text: str, *more: str, with_server: bool = True) -> Outcome:
        command, *flags = text.split()
        server = ["--bootstrap-server", bootstrap] if with_server else []
        result = CliRunner().invoke(main, [command, *server, *flags, *more])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return invoke


@pytest.fixture
def call(bootstrap: str) -> Callable[..., Outcome]:
    """Commands on the one broker: `call("topics --list")`."""
    return calling(bootstrap)


@pytest.fixture
def group(call: Callable[..., Outcome], given: Callable[..., None], topic: str) -> str:
    """A group that has committed four of ten records in one partition, and has no members."""
    call(f"topics create {topic} --partitions 1")
    given(topic, *(b"%d" % number for number in range(10)))
    group = f"{topic}-group"
    assert call(f"groups reset-offsets {group} --topic {topic} --to-offset 4 --yes").code == 0
    return group


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
def run(bootstrap: str) -> Callable[..., Outcome]:
    """`run("produce --topic t", stdin=b"a\n")` in this process, with files as its standard streams."""

    def finish(text: str, *more: str, stdin: bytes = b"") -> Outcome:
        command, *flags = text.split()
        with _standard_streams(stdin) as (out, err):
            with pytest.raises(SystemExit) as ended:
                main([command, "--bootstrap-server", bootstrap, *flags, *more])
            sys.stdout.flush()
            sys.stderr.flush()
            return Outcome(int(ended.value.code or 0), _text(out), _text(err))

    return finish


@contextmanager
def _standard_streams(stdin: bytes) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """File descriptors 0 to 2 and Python's objects for them; CliRunner has only the objects."""
    objects = (sys.stdin, sys.stdout, sys.stderr)
    saved = [os.dup(number) for number in range(3)]
    with TemporaryFile() as source, TemporaryFile() as out, TemporaryFile() as err:
        source.write(stdin)
        source.seek(0)
        for number, file in enumerate((source, out, err)):
            os.dup2(file.fileno(), number)
        try:
            with (
                open(0, closefd=False) as in_,
                open(1, "w", closefd=False) as out_,
                open(2, "w", closefd=False) as err_,
            ):
                sys.stdin, sys.stdout, sys.stderr = in_, out_, err_
                yield out, err
        finally:
            sys.stdin, sys.stdout, sys.stderr = objects
            for number, copy in enumerate(saved):
                os.dup2(copy, number)
                os.close(copy)


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode()
