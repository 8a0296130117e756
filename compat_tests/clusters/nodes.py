"""One node of a cluster as a process, of either kind."""

from __future__ import annotations

import subprocess
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from compat_tests.apache_kafka.broker import SMALL_JVM, kafka_command
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.brokers import BrokerFailed, BrokerProcess, pykbroker_command

from .layout import KAFKA, PYKBROKER, Member


@dataclass(frozen=True, slots=True)
class Formatting:
    """How the directories of a new node are formatted. initial_controllers: `id@host:port:directory`, of a dynamic
    quorum; an empty one has none yet, and its node joins later.
    """

    cluster_id: str
    initial_controllers: Sequence[str] | None = None

    def flags(self, member: Member, properties_file: Path) -> list[str]:
        flags = ["-t", self.cluster_id, "-c", str(properties_file)]
        if self.initial_controllers is None or not member.spec.is_controller:
            return flags
        if any(each.startswith(f"{member.node_id}@") for each in self.initial_controllers):
            return ["--initial-controllers", ",".join(self.initial_controllers), *flags]
        return ["--no-initial-controllers", *flags]


class Node(BrokerProcess):
    """A process of the cluster. `bootstrap` of a mere controller is its controller listener."""

    def __init__(self, directory: Path, member: Member, properties: Mapping[str, str], how: Formatting) -> None:
        self.member = member
        self.formatting = how
        super().__init__(directory, properties, place=member.place)
        if not member.spec.is_broker:
            self.bootstrap = member.controller_endpoint
        self.is_paused = False

    @property
    def node_id(self) -> int:
        return self.member.node_id

    @property
    def is_running(self) -> bool:
        """Started and not stopped by the test; a paused one runs."""
        return self.process is not None

    @property
    def answers(self) -> bool:
        return self.is_running and not self.is_paused

    def base_properties(self) -> dict[str, str]:
        return {"log.dirs": str(self.data_directory)}

    def pause(self) -> None:
        super().pause()
        self.is_paused = True

    def resume(self) -> None:
        super().resume()
        self.is_paused = False

    def kill(self) -> None:
        super().kill()
        self.is_paused = False

    def prepare(self) -> None:
        self.format(*self.formatting.flags(self.member, self.properties_file))

    @abstractmethod
    def format(self, *flags: str) -> None: ...


class KafkaNode(Node):
    kind = KAFKA
    jvm_options: tuple[str, ...] = SMALL_JVM

    def format(self, *flags: str) -> None:
        run_tool(Tool.STORAGE, "format", *flags)

    def command(self) -> list[str]:
        return kafka_command(self.properties_file, *self.jvm_options)


class PykbrokerNode(Node):
    kind = PYKBROKER

    def format(self, *flags: str) -> None:
        done = subprocess.run(pykbroker_command("format", *flags), capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerFailed(f"pykbroker format {' '.join(flags)}: {done.stdout}{done.stderr}")

    def command(self) -> list[str]:
        return pykbroker_command("start", str(self.properties_file))


NODE_KINDS: dict[str, type[Node]] = {KAFKA: KafkaNode, PYKBROKER: PykbrokerNode}
