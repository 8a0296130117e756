"""Members that subscribe by a regular expression: which topics it means, for all members that have the same one.

The expression is RE2's, which takes linear time whatever somebody asks for, and it has to match a topic's whole name.
Every topic counts, internal ones too; members who do not want these say so in the expression. What was found is a
record of its own, so that whoever serves the group next need not look again. The model is Kafka's `TopicRegexResolver`,
and `maybeUpdateRegularExpressions` of its `GroupMetadataManager`.

Matching ten thousand topics takes from tens of milliseconds to seconds. A broker has it done in a thread
(`server.topic_regexes`), before the heartbeat that brings an expression, and between heartbeats where it is due again:
then members hear of it a heartbeat later. Compiling cannot be left to a thread, which would keep the interpreter to
itself; so how large a program may be is bounded (`MOST_PROGRAM_BYTES`), unlike Kafka's, which takes any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Final, Protocol, TypeAlias

from ..common.context import Step
from ..common.topics import TopicsView
from .consumer_group import ConsumerGroup, ResolvedRegularExpression
from .consumer_records import ConsumerRecords, regex_record

SHORTEST_REFRESH_INTERVAL_MS: Final = 10_000
"""However many topics are created one after the other, a group does not look for them more often than this."""
_SHOWN: Final = 1_000
MAX_CHANGES: Final = 10_000
"""That many changed topics are remembered; whoever has not looked for longer looks at all topics again."""


MOST_PROGRAM_BYTES: Final = 1 << 19
"""Which is compiled in ten milliseconds at most; `[\\pL\\pN.-]{0,20}` and two thousand names beside each other fit."""
LONGEST: Final = 32_768
"""Characters; what is longer takes that time to be found too large."""


class TopicRegexes(Protocol):
    """Looks for the topics that expressions match, elsewhere."""

    def find(self, expression: str, least_version: int) -> ResolvedTopics | None:
        """As of that version of the metadata or a later one; None where that is not known, and is looked for now."""
        ...


_NOTHING: Final[frozenset[str]] = frozenset()

ResolvedTopics: TypeAlias = tuple[int, frozenset[str]]
"""The version of the metadata, and the topics."""


class RegularExpressions:
    """regexes: who looks for topics; None where it is done here and now."""

    def __init__(
        self,
        refresh_interval_ms: int,
        topics: TopicsView,
        records: ConsumerRecords,
        regexes: TopicRegexes | None = None,
    ) -> None:
        self._regexes = regexes
        self._refresh_interval_ms = refresh_interval_ms
        self._topics = topics
        self._records = records
        self._changes: deque[tuple[int, str]] = deque()
        self._changed_in_version = self._known_since_version = topics.version

    def on_topics_changed(self, names: Iterable[str]) -> None:
        """Some of them may be new."""
        version = self._changed_in_version = self._topics.version
        self._changes.extend((version, name) for name in names)
        while len(self._changes) > MAX_CHANGES:
            self._known_since_version, _ = self._changes.popleft()

    def on_all_topics_changed(self) -> None:
        """Any of them may be new."""
        self._changed_in_version = self._known_since_version = self._topics.version
        self._changes.clear()

    def invalid_reason(self, expression: str) -> str | None:
        """Why the expression cannot be used, in words for whoever sent it; None where it can."""
        return invalid_reason(expression)

    def refresh_if_due(self, group: ConsumerGroup, step: Step) -> bool:
        """Comes in every heartbeat, when the member's own change is made. Whether what it found is anything new."""
        has_changed = False
        for expression in sorted(group.subscribed_regexes):
            before = group.resolved_regexes.get(expression)
            if before is not None and not self._is_due(before, step):
                continue
            found = self._find(expression, before, step)
            if found is None:
                continue
            version, topics = found
            has_changed |= topics != (_NOTHING if before is None else before.topics)
            resolved = ResolvedRegularExpression(topics, version, step.timestamp_ms)
            self._records.change(regex_record(group.group_id, expression, resolved), step)
            step.because(f"group {group.group_id}: {expression} matches {len(topics)} topics")
        return has_changed

    def _find(self, expression: str, before: ResolvedRegularExpression | None, step: Step) -> ResolvedTopics | None:
        if self._regexes is not None:
            return self._regexes.find(expression, self._changed_in_version)
        return self._topics.version, matching_topics(expression, self._candidates(before, step))

    def _is_due(self, resolved: ResolvedRegularExpression, step: Step) -> bool:
        if resolved.version < self._changed_in_version:
            return step.timestamp_ms - resolved.timestamp_ms > SHORTEST_REFRESH_INTERVAL_MS
        return self._is_old(resolved, step)

    def _is_old(self, resolved: ResolvedRegularExpression, step: Step) -> bool:
        return step.timestamp_ms - resolved.timestamp_ms > self._refresh_interval_ms

    def _candidates(self, before: ResolvedRegularExpression | None, step: Step) -> Iterable[str]:
        """Topics that may match; all where it is not known which have changed since, and every now and then."""
        if before is None or before.version < self._known_since_version or self._is_old(before, step):
            return self._topics.names
        changed = takewhile(lambda change: change[0] > before.version, reversed(self._changes))
        names = before.topics | {name for _, name in changed}
        return [name for name in names if self._topics.topic_id(name) is not None]


def invalid_reason(expression: str) -> str | None:
    """Why the expression cannot be used, in words for whoever sent it; None where it can."""
    try:
        _predicate(expression)
    except ValueError as error:
        return f"SubscribedTopicRegex `{expression[:_SHOWN]}` is not a valid regular expression: {error}."
    return None


def matching_topics(expression: str, names: Iterable[str]) -> frozenset[str]:
    """Nothing where another broker took an expression that is not valid here."""
    try:
        matches = _predicate(expression)
    except ValueError:
        return _NOTHING
    return frozenset(name for name in names if matches(name))


def _predicate(expression: str) -> Callable[[str], bool]:
    """Raises ValueError. The library is loaded when somebody needs it; it keeps what it compiled last."""
    import re2

    if len(expression) > LONGEST:
        raise ValueError(f"it has more than {LONGEST} characters")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MOST_PROGRAM_BYTES
    try:
        compiled = re2.compile(expression, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from None
    return lambda name: compiled.fullmatch(name.encode()) is not None
