"""Apache Kafka's command-line tools with their output captured: in one JVM where that works, or each in its own."""

import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from compat_tests.waiting import DEADLINE_S

from .class_archive import class_archive_options
from .jars import class_path
from .java import find_java

try:
    from .warm_jvm import ENTRY_POINTS, WarmJvm
except ImportError:  # Py4J comes with pyspark
    ENTRY_POINTS = {}

# One short run each: a small heap, one collector thread, no optimising compiler. A second instead of two.
JVM_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *class_archive_options())
LOGGING = f"-Dlog4j2.configurationFile={Path(__file__).with_name('tools-log4j2.properties')}"


class Tool(StrEnum):
    """The classes behind Kafka's `bin/*.sh`."""

    ACLS = "org.apache.kafka.tools.AclCommand"
    API_VERSIONS = "org.apache.kafka.tools.BrokerApiVersionsCommand"
    CLIENT_METRICS = "org.apache.kafka.tools.ClientMetricsCommand"
    CONFIGS = "kafka.admin.ConfigCommand"
    CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    CONSOLE_PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
    CONSOLE_SHARE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    CONSUMER_GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
    DELEGATION_TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
    DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"
    DUMP_LOG_SEGMENTS = "org.apache.kafka.tools.DumpLogSegments"
    FEATURES = "org.apache.kafka.tools.FeatureCommand"
    GET_OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
    LEADER_ELECTION = "org.apache.kafka.tools.LeaderElectionCommand"
    LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
    METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
    METADATA_SHELL = "org.apache.kafka.shell.MetadataShell"
    PRODUCER_PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
    REASSIGN_PARTITIONS = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    SHARE_CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ShareConsumerPerformance"
    SHARE_GROUPS = "org.apache.kafka.tools.consumer.group.ShareGroupCommand"
    STORAGE = "kafka.tools.StorageTool"
    STREAMS_GROUPS = "org.apache.kafka.tools.streams.StreamsGroupCommand"
    TOPICS = "org.apache.kafka.tools.TopicCommand"
    TRANSACTIONAL_MESSAGE_COPIER = "org.apache.kafka.tools.TransactionalMessageCopier"
    TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"
    VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"
    VERIFIABLE_PRODUCER = "org.apache.kafka.tools.VerifiableProducer"


class ToolFailed(AssertionError):
    """The tool ended with an error code; the text holds what it printed."""


@dataclass(frozen=True, slots=True)
class Output:
    returncode: int
    stdout_bytes: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        return self.stdout_bytes.decode()

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()

    def __str__(self) -> str:
        end_of_stdout = self.stdout_bytes[-20_000:].decode(errors="replace")
        return f"exit code {self.returncode}\n--- stdout\n{end_of_stdout}\n--- stderr\n{self.stderr}"


def tool_command(tool: Tool, *arguments: str) -> list[str]:
    return [*_java(), "-cp", class_path(), tool, *arguments]


def run_tool(
    tool: Tool, *arguments: str, stdin: bytes = b"", timeout_s: float = DEADLINE_S, allowed: Sequence[int] = (0,)
) -> Output:
    """Runs the tool to its end. Raises ToolFailed where its exit code is not among the allowed."""
    is_warm = tool in ENTRY_POINTS and not stdin
    output = _WARM.run(tool, arguments, timeout_s) if is_warm else _run(tool, arguments, stdin, timeout_s)
    if output.returncode not in allowed:
        raise ToolFailed(f"{tool} {' '.join(arguments)}: {output}")
    return output


def _run(tool: Tool, arguments: Sequence[str], stdin: bytes, timeout_s: float) -> Output:
    command = tool_command(tool, *arguments)
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, check=False)
    return Output(done.returncode, done.stdout, done.stderr.decode(errors="replace"))


class _WarmTools:
    """The JVM of this process, and the next one where a tool has ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jvm: WarmJvm | None = None

    def run(self, tool: Tool, arguments: Sequence[str], timeout_s: float) -> Output:
        with self._lock:
            if self._jvm is not None and not self._jvm.is_alive:
                self._jvm.close()
                self._jvm = None
            self._jvm = self._jvm or WarmJvm(_java(), class_path())
            code, out, err = self._jvm.run(tool, arguments, timeout_s)
        return Output(code, out, err.decode(errors="replace"))


_WARM = _WarmTools()


def _java() -> list[str]:
    return [find_java(), *JVM_OPTIONS, LOGGING]
