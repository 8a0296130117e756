"""The flags of `pykbroker share-groups`, and which of them go together, as with `kafka-share-groups`."""

from __future__ import annotations

from dataclasses import dataclass

from .command import CommandFailed
from .common_group_options import (
    CommonGroupOptions,
    check_answer_and_state,
    check_describe,
    check_flags_of_describe,
    check_flags_of_reset,
    check_groups,
    check_list,
    check_place,
    check_will,
    one_action,
    only_with,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupOptions(CommonGroupOptions):
    """A field per flag. `state` is empty where the flag came without a value."""

    timeout_ms: int | None = None


def action_of(options: ShareGroupOptions) -> str:
    """The one action that was asked for, once the other flags fit it. Raises CommandFailed."""
    action = one_action(options.actions)
    resets = {**options.places, "--all-topics": options.all_topics, **options.wills}
    check_flags_of_reset(action, resets, {"--topic": options.topics})
    check_flags_of_describe(action, options)
    only_with(action, ["--describe", "--delete"], {"--all-groups": options.all_groups})
    check_answer_and_state(action, options)
    match action:
        case "--list":
            check_list(options)
        case "--describe" | "--delete":
            check_groups(action, options)
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


def _check_reset(options: ShareGroupOptions) -> None:
    check_will(options)
    if not options.groups:
        raise CommandFailed("--reset-offsets takes the option: --group")
    if bool(options.topics) + options.all_topics != 1:
        raise CommandFailed("--reset-offsets takes one of these options: --all-topics, --topic")
    check_place(options, "--reset-offsets")
