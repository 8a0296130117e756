"""The flags of `pykbroker groups`, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .command import CommandFailed, reject


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions:
    """A field per flag. `state` and `type_` are empty where the flag came without a value."""

    bootstrap_server: str
    command_config: Path | None
    list_: bool = False
    describe: bool = False
    validate_regex: str | None = None
    delete: bool = False
    reset_offsets: bool = False
    delete_offsets: bool = False
    groups: tuple[str, ...] = ()
    all_groups: bool = False
    topics: tuple[str, ...] = ()
    all_topics: bool = False
    offsets: bool = False
    members: bool = False
    state: str | None = None
    type_: str | None = None
    verbose: bool = False
    lag_above: int | None = None
    to_earliest: bool = False
    to_latest: bool = False
    to_current: bool = False
    to_offset: int | None = None
    shift_by: int | None = None
    to_datetime: str | None = None
    by_duration: str | None = None
    from_file: Path | None = None
    dry_run: bool = False
    execute: bool = False
    export: bool = False
    all_types: bool = False
    group_type: str | None = None
    protocol: str | None = None
    consumer: bool = False
    share: bool = False
    streams: bool = False
    if_exists: bool = False
    as_json: bool = False
    yes: bool = False

    @property
    def places(self) -> dict[str, object]:
        """The options that say where to reset to, of which exactly one is given."""
        return {
            "--to-earliest": self.to_earliest,
            "--to-latest": self.to_latest,
            "--to-current": self.to_current,
            "--to-offset": self.to_offset,
            "--shift-by": self.shift_by,
            "--to-datetime": self.to_datetime,
            "--by-duration": self.by_duration,
            "--from-file": self.from_file,
        }


def action_of(options: GroupOptions) -> str:
    """The one action that was asked for, once the other flags fit it. Raises CommandFailed."""
    actions = {
        "--list": options.list_,
        "--describe": options.describe,
        "--delete": options.delete,
        "--reset-offsets": options.reset_offsets,
        "--delete-offsets": options.delete_offsets,
        "--validate-regex": options.validate_regex is not None,
    }
    chosen = [flag for flag, given in actions.items() if given]
    if len(chosen) != 1:
        raise CommandFailed(f"Command must include exactly one action: {', '.join(actions)}")
    [action] = chosen
    _reject_foreign_flags(action, options)
    _check_filters(action, options)
    if action == "--validate-regex":
        return action
    if action == "--list":
        reject({"--group": options.groups, "--all-groups": options.all_groups}, "cannot be used with --list")
    elif bool(options.groups) == options.all_groups:
        raise CommandFailed(f"{action} takes one of these options: --group, --all-groups")
    if action == "--describe":
        check_describe(options)
    if action == "--delete-offsets" and (len(options.groups) != 1 or not options.topics):
        raise CommandFailed("--delete-offsets needs one --group and at least one --topic")
    if action == "--reset-offsets":
        _check_reset(options)
    return action


def _reject_foreign_flags(action: str, options: GroupOptions) -> None:
    if action != "--reset-offsets":
        only_reset = {
            **options.places,
            "--all-topics": options.all_topics,
            "--execute": options.execute,
            "--dry-run": options.dry_run,
            "--export": options.export,
        }
        reject(only_reset, "can be used with --reset-offsets only")
    if action not in ("--reset-offsets", "--delete-offsets"):
        reject({"--topic": options.topics}, "can be used with --reset-offsets and --delete-offsets only")
    if action != "--describe":
        only_describe = {
            "--members": options.members,
            "--offsets": options.offsets,
            "--verbose": options.verbose,
            "--lag-above": options.lag_above,
        }
        reject(only_describe, "can be used with --describe only")
    if action not in ("--delete", "--delete-offsets"):
        reject({"--yes": options.yes}, "can be used with --delete and --delete-offsets only")
    if action not in ("--describe", "--list"):
        reject({"--state": options.state}, "can be used with --describe and --list only")
    if action != "--list":
        reject({"--type": options.type_}, "can be used with --list only")


def _check_filters(action: str, options: GroupOptions) -> None:
    """Raises CommandFailed unless the flags of kafka-groups fit each other."""
    one_of = {"--consumer": options.consumer, "--share": options.share, "--streams": options.streams}
    filters = {"--group-type": options.group_type, "--protocol": options.protocol, **one_of}
    if action != "--list":
        reject({"--all-types": options.all_types}, "can be used with --list only")
    if not options.all_types:
        reject(filters, "can be used with --all-types only")
        return
    reject({"--state": options.state, "--type": options.type_}, "cannot be used with --all-types")
    if sum(one_of.values()) > 1 or (any(one_of.values()) and (options.group_type or options.protocol)):
        raise CommandFailed("Give one of --consumer, --share and --streams, or --group-type and --protocol")


def check_describe(options: GroupOptions) -> None:
    if options.offsets + options.members + (options.state is not None) > 1:
        raise CommandFailed("--describe takes at most one of these options: --members, --offsets, --state")
    if options.state:
        raise CommandFailed("--state takes no value with --describe")


def _check_reset(options: GroupOptions) -> None:
    _check_place(options, "--reset-offsets")
    if options.execute and options.dry_run:
        raise CommandFailed("--reset-offsets takes one of these options: --execute, --dry-run")
    if bool(options.topics) + options.all_topics != 1 and options.from_file is None:
        raise CommandFailed("--reset-offsets takes one of these options: --all-topics, --topic")


def check_reset_words(options: GroupOptions) -> None:
    """Raises CommandFailed where the options of the word do not fit each other."""
    check_named(options, "reset-offsets")
    _check_place(options, "reset-offsets")
    if options.dry_run and (options.execute or options.yes):
        raise CommandFailed("--dry-run and --execute exclude each other")
    if options.export and options.as_json:
        raise CommandFailed("--export and --json exclude each other")


def check_named(options: GroupOptions, word: str) -> None:
    """Raises CommandFailed unless groups are named, or all are meant."""
    if bool(options.groups) == options.all_groups:
        raise CommandFailed(f"{word} takes either names of groups or --all-groups")


def _check_place(options: GroupOptions, action: str) -> None:
    # Zero is an offset, and a distance.
    given = [flag for flag, value in options.places.items() if value is not None and value is not False]
    if len(given) != 1:
        raise CommandFailed(f"{action} takes exactly one of these options: {', '.join(options.places)}")
