"""The flags of `pykbroker consume`, checked: the topic, the places, the format, the filters.

Trio is not imported here, so that a wrong flag is told at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .command import CommandFailed, key_values, reject

if TYPE_CHECKING:
    from pykbroker.client.places import Place

RESETS: Final = ("earliest", "latest")
ISOLATION_LEVELS: Final = {"read_uncommitted": 0, "read_committed": 1}
CONSOLE_SHARE_GROUP: Final = "console-share-consumer"
"""The share group of those who name none, as with Kafka's tool."""
_PARTITIONS = re.compile(r"[0-9]{1,10}(,[0-9]{1,10})*")
_MOST_PARTITION: Final = 2**31 - 1


@dataclass(frozen=True)
class ConsumeFlags:
    """The flags as click gives them; `key_…` and `value_…` are those of `records.codec_options`."""

    bootstrap_server: str
    command_config: Path | None
    topic: str | None
    include: str | None
    partition: str | None
    offset: str | None
    from_beginning: bool
    from_place: str | None
    to_place: str | None
    exit_at_end: bool
    max_messages: int
    timeout_ms: int | None
    group: str | None
    as_json: bool
    key: str | None
    grep: str | None
    headers: tuple[str, ...]
    where: str | None
    strict: bool
    formatter_properties: tuple[str, ...]
    formatter_config: Path | None
    key_deserializer: str | None
    value_deserializer: str | None
    consumer_properties: tuple[str, ...]
    isolation_level: str | None
    enable_systest_events: bool
    skip_message_on_error: bool
    share: bool
    reject: bool
    release: bool
    reject_message_on_error: bool
    key_format: str | None
    key_schema: Path | None
    key_message: str | None
    value_format: str | None
    value_schema: Path | None
    value_message: str | None

    @cached_property
    def properties(self) -> Mapping[str, str]:
        """The client's settings. Raises CommandFailed."""
        from .connect import read_client_properties

        given = key_values(self.consumer_properties, "--command-property")
        return {**read_client_properties(self.command_config), **given}

    @cached_property
    def group_id(self) -> str | None:
        """The group to join; a share group has a name in any case. Raises CommandFailed where two are given."""
        named = self.properties.get("group.id")
        if not self.share:
            return self.group or named
        if self.group is not None and named is not None and self.group != named:
            raise CommandFailed(f"--group '{self.group}' and group.id '{named}' are not the same")
        return self.group or named or CONSOLE_SHARE_GROUP

    @cached_property
    def partitions(self) -> tuple[int, ...] | None:
        """The numbers of `--partition`, each once; None for all."""
        if self.partition is None:
            return None
        text = self.partition.replace(" ", "")
        if _PARTITIONS.fullmatch(text) is None or any(int(each) > _MOST_PARTITION for each in text.split(",")):
            raise CommandFailed(f"--partition expects numbers such as 0 or 0,2, not '{self.partition[:80]}'")
        return tuple(dict.fromkeys(int(each) for each in text.split(",")))

    @property
    def has_end(self) -> bool:
        return self.exit_at_end or self.to_place is not None

    @property
    def is_bounded(self) -> bool:
        """True where a place is given, so that the bounds of the partitions must be asked for."""
        return self.has_end or self.from_place is not None

    @cached_property
    def isolation(self) -> int:
        """The number that requests have for the isolation level. Raises CommandFailed."""
        level = self.isolation_level or self.properties.get("isolation.level", "read_uncommitted")
        if level not in ISOLATION_LEVELS:
            raise CommandFailed(f"isolation.level must be one of {', '.join(ISOLATION_LEVELS)}, not '{level}'")
        return ISOLATION_LEVELS[level]

    @cached_property
    def start(self) -> Place:
        """The place to begin at: the earliest record where an end is asked for and nothing else is said.

        Raises CommandFailed.
        """
        from pykbroker.client.places import END, START, Anchor, Place

        from .records.places import parse_place

        if self.from_place is not None:
            return parse_place(self.from_place, "--from", self._now_ms)
        offset = (self.offset or "").lower()
        if offset and offset not in RESETS:
            if not (offset.isascii() and offset.isdigit() and len(offset) <= 19 and int(offset) < 2**63):
                raise CommandFailed(
                    f"The provided offset value '{self.offset}' is incorrect. "
                    "Valid values are 'earliest', 'latest', or a non-negative long."
                )
            return Place(Anchor.OFFSET, int(offset))
        return START if self.resets_to_earliest else END

    @cached_property
    def resets_to_earliest(self) -> bool:
        """True to go to the first record where there is no offset, or none that exists; otherwise to the end."""
        reset = self.properties.get("auto.offset.reset", "earliest" if self.has_end else "latest")
        if reset not in RESETS:
            raise CommandFailed(f"auto.offset.reset must be one of {', '.join(RESETS)}, not '{reset}'")
        offset = (self.offset or "").lower()
        return self.from_beginning or (offset if offset in RESETS else reset) == "earliest"

    @cached_property
    def stop(self) -> Place | None:
        """The place of `--to`. Raises CommandFailed."""
        from .records.places import parse_place

        return None if self.to_place is None else parse_place(self.to_place, "--to", self._now_ms)

    @cached_property
    def _now_ms(self) -> int:
        """One moment for both places, so that `--from now --to now` is nothing."""
        return time.time_ns() // 1_000_000

    def check(self) -> None:
        """Raise CommandFailed for flags that contradict each other or are no value of theirs."""
        if (self.topic is None) == (self.include is None):
            raise CommandFailed("Exactly one of the following arguments is required: --topic, --include")
        if self.partition is not None and self.include is not None:
            raise CommandFailed("--partition needs --topic")
        if self.offset is not None and self.partition is None:
            raise CommandFailed("The partition is required when offset is specified.")
        if self.offset is not None and self.from_beginning:
            raise CommandFailed("Options from-beginning and offset cannot be specified together.")
        if self.partition is not None and self.group_id is not None:
            raise CommandFailed("Options group and partition cannot be specified together.")
        if self.from_place is not None:
            reject({"--offset": self.offset, "--from-beginning": self.from_beginning}, "cannot be given with --from")
        self._check_share()
        if self.group_id is not None:
            places = {"--from": self.from_place, "--to": self.to_place, "--exit-at-end": self.exit_at_end}
            reject(places, "cannot be given with a group, whose committed offsets say where it reads")
        self._check_formats()
        for each in ("partitions", "isolation", "start", "resets_to_earliest", "stop"):
            getattr(self, each)

    def _check_share(self) -> None:
        acknowledging = {
            "--reject": self.reject,
            "--release": self.release,
            "--reject-message-on-error": self.reject_message_on_error,
        }
        if not self.share:
            reject(acknowledging, "can be given with --share only")
            return
        if self.reject and self.release:
            raise CommandFailed("At most one of --reject and --release may be specified.")
        if self.reject_message_on_error and self.skip_message_on_error:
            raise CommandFailed(
                "At most one of --reject-message-on-error and --skip-message-on-error may be specified."
            )
        reject(
            {"--from-beginning": self.from_beginning, "--isolation-level": self.isolation_level},
            "cannot be given with --share; the group's configurations say so: share.auto.offset.reset, "
            "share.isolation.level (`pykbroker configs alter group`)",
        )
        filters = {
            "--key": self.key,
            "--grep": self.grep,
            "--header": self.headers,
            "--where": self.where,
        }
        reject(filters, "cannot be given with --share: what is not shown would be lost to the other members")

    def _check_formats(self) -> None:
        if self.as_json:
            kafkas = {
                "--formatter-property": self.formatter_properties,
                "--formatter-config": self.formatter_config,
                "--key-deserializer": self.key_deserializer,
                "--value-deserializer": self.value_deserializer,
            }
            reject(kafkas, "cannot be given with --json")
        for side, deserializer, format_, schema in (
            ("key", self.key_deserializer, self.key_format, self.key_schema),
            ("value", self.value_deserializer, self.value_format, self.value_schema),
        ):
            if deserializer is not None and (format_ is not None or schema is not None):
                raise CommandFailed(f"--{side}-deserializer cannot be given with a --{side}-format or --{side}-schema")
