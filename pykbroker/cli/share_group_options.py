"""The flags of `pykbroker share-groups`, and which of them go together, as with `kafka-share-groups`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .command import CommandFailed, reject


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupOptions:
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
    to_datetime: str | None = None
    dry_run: bool = False
    execute: bool = False
    if_exists: bool = False
    yes: bool = False
    as_json: bool = False

    @property
    def places(self) -> dict[str, object]:
        """The options that say where to reset to, of which exactly one is given."""
        return {
            "--to-earliest": self.to_earliest,
            "--to-latest": self.to_latest,
            "--to-datetime": self.to_datetime,
        }


def action_of(options: ShareGroupOptions) -> str:
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
    match action:
        case "--list":
            reject({"--group": options.groups, "--all-groups": options.all_groups}, "cannot be used with --list")
        case "--describe" | "--delete":
            if bool(options.groups) == options.all_groups:
                raise CommandFailed(f"{action} takes one of these options: --all-groups, --group")
        case "--delete-offsets":
            if not options.groups or not options.topics:
                raise CommandFailed("--delete-offsets takes the following options: --group, --topic")
        case _:
            _check_reset(options)
    if action in ("--reset-offsets", "--delete-offsets") and len(options.groups) > 1:
        raise CommandFailed(f"{action} takes one --group at a time")
    if action == "--describe":
        check_describe(options)
    return action


def _reject_foreign_flags(action: str, options: ShareGroupOptions) -> None:
    if action != "--reset-offsets":
        only_reset = {
            **options.places,
            "--all-topics": options.all_topics,
            "--execute": options.execute,
            "--dry-run": options.dry_run,
        }
        reject(only_reset, "can be used with --reset-offsets only")
    if action not in ("--reset-offsets", "--delete-offsets"):
        reject({"--topic": options.topics}, "can be used with --reset-offsets and --delete-offsets only")
    if action != "--describe":
        only_describe = {"--members": options.members, "--offsets": options.offsets, "--verbose": options.verbose}
        reject(only_describe, "can be used with --describe only")
    if action not in ("--describe", "--delete"):
        reject({"--all-groups": options.all_groups}, "can be used with --describe and --delete only")
    if action not in ("--delete", "--delete-offsets"):
        reject({"--yes": options.yes}, "can be used with --delete and --delete-offsets only")
    if action not in ("--describe", "--list"):
        reject({"--state": options.state}, "can be used with --describe and --list only")


def check_describe(options: ShareGroupOptions) -> None:
    """Raises CommandFailed unless the flags of a description fit each other."""
    if options.offsets + options.members + (options.state is not None) > 1:
        raise CommandFailed("--describe takes at most one of these options: --members, --offsets, --state")
    if options.state:
        raise CommandFailed("--describe does not take a value for --state")


def _check_reset(options: ShareGroupOptions) -> None:
    if options.execute and options.dry_run:
        raise CommandFailed("--reset-offsets only accepts one of --execute and --dry-run")
    if not options.execute and not options.dry_run:
        raise CommandFailed("--reset-offsets takes the option: --execute or --dry-run")
    if not options.groups:
        raise CommandFailed("--reset-offsets takes the option: --group")
    if bool(options.topics) + options.all_topics != 1:
        raise CommandFailed("--reset-offsets takes one of these options: --all-topics, --topic")
    check_place(options, "--reset-offsets")


def check_reset_words(options: ShareGroupOptions) -> None:
    """Raises CommandFailed where the options of the word do not fit each other."""
    check_place(options, "reset-offsets")
    if options.dry_run and (options.execute or options.yes):
        raise CommandFailed("--dry-run and --execute exclude each other")


def check_place(options: ShareGroupOptions, action: str) -> None:
    """Raises CommandFailed unless one place is given."""
    if sum(value is not None and value is not False for value in options.places.values()) != 1:
        raise CommandFailed(f"{action} takes exactly one of these options: {', '.join(options.places)}")
