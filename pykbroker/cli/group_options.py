"""The flags of `pykbroker groups`, and which of them go together."""

from __future__ import annotations

from dataclasses import dataclass

from . import common_group_options
from .command import CommandFailed, reject
from .common_group_options import (
    CommittedGroupOptions,
    check_answer_and_state,
    check_flags_of_describe,
    check_flags_of_reset,
    check_groups,
    check_list,
    check_place,
    one_action,
    only_with,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOptions(CommittedGroupOptions):
    """A field per flag. `state` and `type_` are empty where the flag came without a value."""

    validate_regex: str | None = None
    type_: str | None = None
    lag_above: int | None = None
    all_types: bool = False
    group_type: str | None = None
    protocol: str | None = None
    consumer: bool = False
    share: bool = False
    streams: bool = False


def action_of(options: GroupOptions) -> str:
    """The one action that was asked for, once the other flags fit it. Raises CommandFailed."""
    action = one_action({**options.actions, "--validate-regex": options.validate_regex is not None})
    resets = {**options.places, "--all-topics": options.all_topics, **options.wills}
    check_flags_of_reset(action, resets, {"--topic": options.topics})
    check_flags_of_describe(action, options, {"--lag-above": options.lag_above})
    check_answer_and_state(action, options)
    only_with(action, ["--list"], {"--type": options.type_})
    _check_filters(action, options)
    if action == "--validate-regex":
        return action
    if action == "--list":
        check_list(options)
    else:
        check_groups(action, options, flags="--group, --all-groups")
    if action == "--describe":
        check_describe(options)
    if action == "--delete-offsets" and (len(options.groups) != 1 or not options.topics):
        raise CommandFailed("--delete-offsets needs one --group and at least one --topic")
    if action == "--reset-offsets":
        _check_reset(options)
    return action


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
    """Raises CommandFailed unless the flags of a description fit each other."""
    common_group_options.check_describe(options, refusal="--state takes no value with --describe")


def _check_reset(options: GroupOptions) -> None:
    check_place(options, "--reset-offsets")
    if options.execute and options.dry_run:
        raise CommandFailed("--reset-offsets takes one of these options: --execute, --dry-run")
    if bool(options.topics) + options.all_topics != 1 and options.from_file is None:
        raise CommandFailed("--reset-offsets takes one of these options: --all-topics, --topic")
