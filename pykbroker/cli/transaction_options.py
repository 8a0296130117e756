"""The options of a word of `pykbroker transactions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykbroker.protocol.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class TransactionOptions:
    """The options of a sub-command. flags: its own, by their names."""

    bootstrap_server: str
    command_config: Path | None
    flags: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.flags[name]

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self["topic"], self["partition"])
