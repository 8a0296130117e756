"""Nodes of both kinds whose cluster begins at a level of metadata.version that the test chooses."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from compat_tests.apache_kafka.broker import CLUSTER_ID
from compat_tests.brokers import BrokerProcess, Pykbroker, pykbroker_command
from compat_tests.personalities.releases import Release

OLDEST, NEWEST = "4.3-IV0", "4.4-IV2"
"""metadata.version 30, with which a cluster of pykbroker's begins, and 33, with which one of Kafka 4.4 does."""
_FORMAT_TIMEOUT_S = 120


class Kafka44(Release):
    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None, release: str = NEWEST) -> None:
        super().__init__(directory, "4.4", properties)
        self._release = release

    def prepare(self) -> None:
        arguments = ("format", "-t", CLUSTER_ID, "-c", str(self.properties_file), "-r", self._release)
        command = self._java("kafka.tools.StorageTool", *arguments)
        subprocess.run(command, check=True, capture_output=True, timeout=_FORMAT_TIMEOUT_S)


class FormattedKafka44(Kafka44):
    """One that takes over what is in its directories."""

    def prepare(self) -> None:
        """The directories are formatted already."""


class Pykbroker44(Pykbroker):
    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None, release: str = NEWEST) -> None:
        super().__init__(directory, properties)
        self._release = release

    def prepare(self) -> None:
        arguments = ("format", "-t", CLUSTER_ID, "-c", str(self.properties_file), "-r", self._release)
        subprocess.run(pykbroker_command(*arguments), check=True, capture_output=True, timeout=_FORMAT_TIMEOUT_S)


def new_node(kind: str, directory: Path, properties: Mapping[str, str], release: str) -> BrokerProcess:
    node = Pykbroker44 if kind == "pykbroker" else Kafka44
    return node(directory, properties, release)
