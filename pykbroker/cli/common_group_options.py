"""Flags that `pykbroker groups`, `share-groups` and `streams-groups` share, and the rules that all three keep to.

Each of them has the fields and the rules that are its own beside it, as `group_options`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .command import CommandFailed, reject


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonGroupOptions:
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
    to_earliest: bool = False
    to_latest: bool = False
    to_datetime: str | None = None
    dry_run: bool = False
    execute: bool = False
    if_exists: bool = False
    yes: bool = False
    as_json: bool = False

    @property
    def actions(self) -> dict[str, bool]:
        """The flags of Kafka's tools that say what to do, of which exactly one is given."""
        return {
            "--list": self.list_,
            "--describe": self.describe,
            "--delete": self.delete,
            "--reset-offsets": self.reset_offsets,
            "--delete-offsets": self.delete_offsets,
        }

    @property
    def places(self) -> dict[str, object]:
        """The options that say where to reset to, of which exactly one is given."""
        return {
            "--to-earliest": self.to_earliest,
            "--to-latest": self.to_latest,
            "--to-datetime": self.to_datetime,
        }

    @property
    def wills(self) -> dict[str, object]:
        """The options that say what becomes of the plan of a reset."""
        return {"--execute": self.execute, "--dry-run": self.dry_run}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedGroupOptions(CommonGroupOptions):
    """The flags of groups that commit offsets: these are reset to more places, and to those of a file."""

    to_current: bool = False
    to_offset: int | None = None
    shift_by: int | None = None
    by_duration: str | None = None
    from_file: Path | None = None
    export: bool = False

    @property
    def places(self) -> dict[str, object]:
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

    @property
    def wills(self) -> dict[str, object]:
        return {"--execute": self.execute, "--dry-run": self.dry_run, "--export": self.export}


# ---- rules of Kafka's flags


def one_action(actions: Mapping[str, bool]) -> str:
    """Return the one action that was asked for. Raises CommandFailed."""
    chosen = [flag for flag, given in actions.items() if given]
    if len(chosen) != 1:
        raise CommandFailed(f"Command must include exactly one action: {', '.join(actions)}")
    return chosen[0]


def only_with(action: str, allowed: Sequence[str], flags: Mapping[str, object]) -> None:
    """Raises CommandFailed where one of the flags is given to another action than those that take it."""
    if action not in allowed:
        reject(flags, f"can be used with {' and '.join(allowed)} only")


def check_flags_of_reset(action: str, flags: Mapping[str, object], topics: Mapping[str, object]) -> None:
    """Raises CommandFailed where flags of a reset, or `topics`, are given to another action."""
    only_with(action, ["--reset-offsets"], flags)
    only_with(action, ["--reset-offsets", "--delete-offsets"], topics)


def check_flags_of_describe(action: str, options: CommonGroupOptions, own: Mapping[str, object] | None = None) -> None:
    """Raises CommandFailed where flags of a description, with those of its `own`, go with another action."""
    shown = {"--members": options.members, "--offsets": options.offsets, "--verbose": options.verbose}
    only_with(action, ["--describe"], {**shown, **(own or {})})


def check_answer_and_state(action: str, options: CommonGroupOptions) -> None:
    """Raises CommandFailed where `--yes` or `--state` goes with an action that does not take it."""
    only_with(action, ["--delete", "--delete-offsets"], {"--yes": options.yes})
    only_with(action, ["--describe", "--list"], {"--state": options.state})


def check_list(options: CommonGroupOptions) -> None:
    """Raises CommandFailed where groups are named to `--list`."""
    reject({"--group": options.groups, "--all-groups": options.all_groups}, "cannot be used with --list")


def check_groups(action: str, options: CommonGroupOptions, *, flags: str = "--all-groups, --group") -> None:
    """Raises CommandFailed unless groups are named, or all are meant. flags: these, in the order of Kafka's tool."""
    if bool(options.groups) == options.all_groups:
        raise CommandFailed(f"{action} takes one of these options: {flags}")


def check_will(options: CommonGroupOptions) -> None:
    """Raises CommandFailed unless it is said of a reset whether it is executed."""
    if options.execute and options.dry_run:
        raise CommandFailed("--reset-offsets only accepts one of --execute and --dry-run")
    if not options.execute and not options.dry_run:
        raise CommandFailed("--reset-offsets takes the option: --execute or --dry-run")


# ---- rules of flags and words


def check_describe(
    options: CommonGroupOptions, *, refusal: str = "--describe does not take a value for --state"
) -> None:
    """Raises CommandFailed unless the flags of a description fit each other. refusal: of a state that is named."""
    if options.offsets + options.members + (options.state is not None) > 1:
        raise CommandFailed("--describe takes at most one of these options: --members, --offsets, --state")
    if options.state:
        raise CommandFailed(refusal)


def check_place(options: CommonGroupOptions, action: str) -> None:
    """Raises CommandFailed unless one place is given."""
    # Zero is an offset, and a distance.
    given = [flag for flag, value in options.places.items() if value is not None and value is not False]
    if len(given) != 1:
        raise CommandFailed(f"{action} takes exactly one of these options: {', '.join(options.places)}")


# ---- rules of words


def check_named(options: CommonGroupOptions, word: str) -> None:
    """Raises CommandFailed unless groups are named, or all are meant."""
    if bool(options.groups) == options.all_groups:
        raise CommandFailed(f"{word} takes either names of groups or --all-groups")


def check_reset_word(options: CommonGroupOptions) -> None:
    """Raises CommandFailed unless the word `reset-offsets` has one place, and no two answers."""
    check_place(options, "reset-offsets")
    if options.dry_run and (options.execute or options.yes):
        raise CommandFailed("--dry-run and --execute exclude each other")


def check_reset_words(options: CommittedGroupOptions) -> None:
    """Raises CommandFailed where the options of the word do not fit each other."""
    check_named(options, "reset-offsets")
    check_reset_word(options)
    if options.export and options.as_json:
        raise CommandFailed("--export and --json exclude each other")
