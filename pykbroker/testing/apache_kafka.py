"""Apache Kafka in the place of pykbroker: a single node from an unpacked distribution, in a process of its own.

A test suite that runs on pykbroker runs on the original, too, and the difference is known before production tells it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from .errors import BrokerFailed
from .hosted_kafka import HOST
from .lazy_module import LazyModule
from .reserved_port import ReservedPort
from .threaded_kafka import ThreadedKafka

if TYPE_CHECKING:
    import trio

    from pykbroker.client import errors
    from pykbroker.client.cluster import Cluster as Client
    from pykbroker.server.runtime import ephemeral_directories

    from . import operations, profile
    from .loop_thread import LoopThread
else:
    errors = LazyModule("pykbroker.client.errors")
    ephemeral_directories = LazyModule("pykbroker.server.runtime.ephemeral_directories")
    operations = LazyModule("pykbroker.testing.operations")
    profile = LazyModule("pykbroker.testing.profile")
    trio = LazyModule("trio")

START_S: Final = 120.0
STOP_S: Final = 30.0
_POLL_S: Final = 0.1
_CLUSTER_ID: Final = "cHlrYnJva2VyLXRlc3Rpbg"
_JVM: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LAST_LINES: Final = 20


class ApacheKafka(ThreadedKafka):
    """Apache Kafka 3.3 or later, as broker and controller. home: its distribution, whose `libs` has the jars.

    config: Kafka's keys, which win over the settings for tests, those of `Broker`.
    """

    def __init__(self, home: str | Path, config: Mapping[str, object] | None = None) -> None:
        super().__init__("Apache Kafka")
        self._home = Path(home)
        self._config = dict(config or {})
        self._address = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._log_file: Path | None = None

    @property
    def bootstrap_servers(self) -> str:
        self.running_loop()
        return self._address

    def _acquire(self, resources: ExitStack) -> None:
        if not list((self._home / "libs").glob("kafka_*.jar")):
            raise BrokerFailed(f"{self._home} is no distribution of Apache Kafka: it has no libs/kafka_*.jar")
        java = shutil.which("java")
        if java is None:
            raise BrokerFailed("Apache Kafka needs `java` on the PATH")
        directory = resources.enter_context(ephemeral_directories.ephemeral_directory())
        ports = [ReservedPort(HOST) for _ in range(2)]
        for port in ports:
            resources.callback(port.close)
        self._address = f"{HOST}:{ports[0].port}"
        properties = directory / "server.properties"
        own = _properties(ports[0].port, ports[1].port, directory / "data") | self._texts()
        properties.write_text(_text(profile.with_defaults(own, profile.TEST)))
        logging = directory / "log4j2.properties"
        logging.write_text(_LOG4J2)
        jvm = [java, *_JVM, f"-Dlog4j2.configurationFile={logging}", "-cp", f"{self._home / 'libs'}/*"]
        self._log_file = directory / "broker.log"
        log = resources.enter_context(self._log_file.open("w"))
        self._format([*jvm, "kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(properties)], log)
        self._process = _start([*jvm, "kafka.Kafka", str(properties)], log)
        resources.callback(_stop, self._process)

    def _format(self, command: list[str], log: TextIO) -> None:
        try:
            subprocess.run(command, stdout=log, stderr=log, check=True, timeout=START_S)  # noqa: S603
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            raise BrokerFailed(f"Apache Kafka cannot format its directory: {self._last_lines()}") from None

    def _begin(self, loop: LoopThread, resources: ExitStack) -> None:
        loop.call(self._until_ready)

    async def _until_ready(self) -> None:
        assert self._process is not None
        with trio.move_on_after(START_S):
            while self._process.poll() is None:
                async with self._new_client(self._address) as client:
                    if await _answers(client):
                        return
                await trio.sleep(_POLL_S)
        raise BrokerFailed(f"Apache Kafka does not start: {self._last_lines()}")

    def _texts(self) -> dict[str, str]:
        return {key: operations.config_text(value) for key, value in self._config.items()}

    def _last_lines(self) -> str:
        lines = [] if self._log_file is None else self._log_file.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LAST_LINES:])


async def _answers(client: Client) -> bool:
    try:
        return bool((await client.refresh([])).nodes)
    except errors.ClientError:
        return False


def _start(command: list[str], log: TextIO) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # noqa: S603


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _properties(port: int, controller_port: int, data: Path) -> dict[str, str]:
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def _text(properties: Mapping[str, str]) -> str:
    from javaproperties import dumps

    return dumps(properties, timestamp=False)


_LOG4J2 = """\
rootLogger.level = WARN
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d %p %c %m%n
"""
