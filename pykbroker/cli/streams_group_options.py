"""The flags of `pykbroker streams-groups`, and which of them go together, as with `kafka-streams-groups`."""

from __future__ import annotations

from dataclasses import dataclass

from . import common_group_options
from .command import CommandFailed, reject
from .common_group_options import (
    CommittedGroupOptions,
    check_answer_and_state,
    check_describe,
    check_flags_of_describe,
    check_flags_of_reset,
    check_groups,
    check_list,
    check_place,
    check_will,
    one_action,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsGroupOptions(CommittedGroupOptions):
    """A field per flag. `state` is empty where the flag came without a value."""

    timeout_ms: int | None = None
    internal_topics: tuple[str, ...] = ()
    all_internal_topics: bool = False


def action_of(options: StreamsGroupOptions) -> str:
    """The one action that was asked for, once the other flags fit it. Raises CommandFailed."""
    action = one_action(options.actions)
    _reject_foreign_flags(action, options)
    if action == "--list":
        check_list(options)
    elif action == "--delete-offsets":
        if bool(options.topics) == options.all_topics or not options.groups:
            raise CommandFailed(
                "--delete-offsets takes the --group and one of these options: --all-input-topics, --input-topic"
            )
        if len(options.groups) > 1:
            raise CommandFailed("--delete-offsets supports only one --group at a time")
    else:
        check_groups(action, options)
    if action == "--describe":
        check_describe(options)
    if action == "--reset-offsets":
        _check_reset(options)
    return action


def _reject_foreign_flags(action: str, options: StreamsGroupOptions) -> None:
    resets = {**options.places, **options.wills, "--delete-internal-topic": options.internal_topics}
    check_flags_of_reset(action, resets, {"--input-topic": options.topics, "--all-input-topics": options.all_topics})
    if action not in ("--reset-offsets", "--delete"):
        internal = {"--delete-all-internal-topics": options.all_internal_topics}
        reject(internal, "takes one of these options: --delete, --reset-offsets")
    check_flags_of_describe(action, options)
    if action == "--delete-offsets":
        reject({"--all-groups": options.all_groups}, "cannot be used with --delete-offsets")
    check_answer_and_state(action, options)


def _check_reset(options: StreamsGroupOptions) -> None:
    check_will(options)
    check_place(options, "--reset-offsets")
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
    common_group_options.check_reset_words(options)
    check_internal_topics(options)


def check_internal_topics(options: StreamsGroupOptions) -> None:
    """Raises CommandFailed where it is said twice which internal topics go, or whose is not clear."""
    if options.internal_topics and options.all_internal_topics:
        raise CommandFailed("--delete-internal-topic and --delete-all-internal-topics exclude each other")
    if options.internal_topics and len(options.groups) != 1:
        raise CommandFailed("--delete-internal-topic is for one group at a time")
