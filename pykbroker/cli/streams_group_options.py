"""The flags of `pykbroker streams-groups`, and which of them go together, as with `kafka-streams-groups`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .command import CommandFailed, reject


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupOptions:
    """A field per flag. `state` is empty where the flag came without a value."""

    bootstrap_server: str
    command_config: Path | None
    list_: bool = False
    describe: bool = False
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
    verbose: bool = False
    timeout_ms: int | None = None
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
    internal_topics: tuple[str, ...] = ()
    all_internal_topics: bool = False
    if_exists: bool = False
    yes: bool = False
    as_json: bool = False

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


def action_of(options: StreamsGroupOptions) -> str:
    """The one action that was asked for, once the other flags fit it. Raises CommandFailed."""
    actions = {
        "--list": options.list_,
        "--describe": options.describe,
        "--delete": options.delete,
        "--reset-offsets": options.reset_offsets,
        "--delete-offsets": options.delete_offsets,
    }
    chosen = [flag for flag, given in actions.items() if given]
    if len(chosen) != 1:
        raise CommandFailed(f"Command must include exactly one action: {', '.join(actions)}")
    [action] = chosen
    _reject_foreign_flags(action, options)
    if action == "--list":
        reject({"--group": options.groups, "--all-groups": options.all_groups}, "cannot be used with --list")
    elif action == "--delete-offsets":
        if bool(options.topics) == options.all_topics or not options.groups:
            raise CommandFailed(
                "--delete-offsets takes the --group and one of these options: --all-input-topics, --input-topic"
            )
        if len(options.groups) > 1:
            raise CommandFailed("--delete-offsets supports only one --group at a time")
    elif bool(options.groups) == options.all_groups:
        raise CommandFailed(f"{action} takes one of these options: --all-groups, --group")
    if action == "--describe":
        check_describe(options)
    if action == "--reset-offsets":
        _check_reset(options)
    return action


def _reject_foreign_flags(action: str, options: StreamsGroupOptions) -> None:
    if action != "--reset-offsets":
        only_reset = {
            **options.places,
            "--execute": options.execute,
            "--dry-run": options.dry_run,
            "--export": options.export,
            "--delete-internal-topic": options.internal_topics,
        }
        reject(only_reset, "can be used with --reset-offsets only")
    if action not in ("--reset-offsets", "--delete-offsets"):
        topics = {"--input-topic": options.topics, "--all-input-topics": options.all_topics}
        reject(topics, "can be used with --reset-offsets and --delete-offsets only")
    if action not in ("--reset-offsets", "--delete"):
        internal = {"--delete-all-internal-topics": options.all_internal_topics}
        reject(internal, "takes one of these options: --delete, --reset-offsets")
    if action != "--describe":
        only_describe = {"--members": options.members, "--offsets": options.offsets, "--verbose": options.verbose}
        reject(only_describe, "can be used with --describe only")
    if action == "--delete-offsets":
        reject({"--all-groups": options.all_groups}, "cannot be used with --delete-offsets")
    if action not in ("--delete", "--delete-offsets"):
        reject({"--yes": options.yes}, "can be used with --delete and --delete-offsets only")
    if action not in ("--describe", "--list"):
        reject({"--state": options.state}, "can be used with --describe and --list only")


def check_describe(options: StreamsGroupOptions) -> None:
    """Raises CommandFailed unless the flags of a description fit each other."""
    if options.offsets + options.members + (options.state is not None) > 1:
        raise CommandFailed("--describe takes at most one of these options: --members, --offsets, --state")
    if options.state:
        raise CommandFailed("--describe does not take a value for --state")


def _check_reset(options: StreamsGroupOptions) -> None:
    if options.execute and options.dry_run:
        raise CommandFailed("--reset-offsets only accepts one of --execute and --dry-run")
    if not options.execute and not options.dry_run:
        raise CommandFailed("--reset-offsets takes the option: --execute or --dry-run")
    _check_place(options, "--reset-offsets")
    if bool(options.topics) + options.all_topics != 1 and options.from_file is None:
        raise CommandFailed("--reset-offsets takes one of these options: --all-input-topics, --input-topic")
    internal = {
        "--delete-all-internal-topics": options.all_internal_topics,
        "--delete-internal-topic": options.internal_topics,
    }
    if not options.execute:
        reject(internal, "takes --execute when --reset-offsets is used")
    check_internal_topics(options)


def check_reset_words(options: StreamsGroupOptions) -> None:
    """Raises CommandFailed where the options of the word do not fit each other."""
    if bool(options.groups) == options.all_groups:
        raise CommandFailed("reset-offsets takes either names of groups or --all-groups")
    _check_place(options, "reset-offsets")
    if options.dry_run and (options.execute or options.yes):
        raise CommandFailed("--dry-run and --execute exclude each other")
    if options.export and options.as_json:
        raise CommandFailed("--export and --json exclude each other")
    check_internal_topics(options)


def check_internal_topics(options: StreamsGroupOptions) -> None:
    """Raises CommandFailed where it is said twice which internal topics go, or whose is not clear."""
    if options.internal_topics and options.all_internal_topics:
        raise CommandFailed("--delete-internal-topic and --delete-all-internal-topics exclude each other")
    if options.internal_topics and len(options.groups) != 1:
        raise CommandFailed("--delete-internal-topic is for one group at a time")


def _check_place(options: StreamsGroupOptions, action: str) -> None:
    # Zero is an offset, and a distance.
    given = [flag for flag, value in options.places.items() if value is not None and value is not False]
    if len(given) != 1:
        raise CommandFailed(f"{action} takes exactly one of these options: {', '.join(options.places)}")
