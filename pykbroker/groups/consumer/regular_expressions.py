"""Members that subscribe by a regular expression: the topics that it matches, for all members with the same expression.

Expressions are RE2's, which match in linear time, and an expression has to match a topic's whole name. Internal topics
count too; members that do not want them say so in the expression. The topics that were found are a record of their own,
so that the next coordinator of the group need not look again. The model is Kafka's `TopicRegexResolver`, and
`maybeUpdateRegularExpressions` of its `GroupMetadataManager`.

Matching ten thousand topics takes from tens of milliseconds to seconds. A broker does it in a thread
(`server.coordinators.topic_regex_resolver`), before the heartbeat that brings an expression, and between heartbeats
where it is due again: then members hear of it a heartbeat later. Compiling would hold the interpreter even in a thread,
so the size of a compiled program is bounded (`MOST_PROGRAM_BYTES`); Kafka's is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Final, Protocol, TypeAlias

from pykbroker.linear_expressions import full_match

from ..common.context import Step
from ..common.topics import TopicsView
from .consumer_group import ConsumerGroup
from .consumer_records import regex_record
from .consumer_replay import ConsumerReplay
from .resolved_regular_expression import ResolvedRegularExpression

SHORTEST_REFRESH_INTERVAL_MS: Final = 10_000
"""The shortest time between two searches of one expression, however many topics are created meanwhile."""
_SHOWN: Final = 1_000
MAX_CHANGES: Final = 10_000
"""How many changed topics are remembered. An expression that was resolved before them is matched with all topics."""

MOST_PROGRAM_BYTES: Final = 1 << 19
"""The largest program, which compiles in ten milliseconds at most. `[\\pL\\pN.-]{0,20}` fits, and so do two
thousand names as alternatives."""
LONGEST: Final = 32_768
"""The longest expression, in characters; a longer one would take that time to be found too large."""


class TopicRegexes(Protocol):
    """The resolver looks for the topics that expressions match, beside the event loop."""

    def find(self, expression: str, least_version: int) -> ResolvedTopics | None:
        """The topics as of that version of the metadata, or a later one. None where they are not known yet: they are
        looked for now."""
        ...


_NOTHING: Final[frozenset[str]] = frozenset()

ResolvedTopics: TypeAlias = tuple[int, frozenset[str]]
"""The version of the metadata, and the topics."""


class RegularExpressions:
    """The regular expressions of a shard's consumer groups.

    regexes: looks for topics; where it is None, topics are looked for at once.
    """

    def __init__(
        self,
        refresh_interval_ms: int,
        topics: TopicsView,
        records: ConsumerReplay,
        regexes: TopicRegexes | None = None,
    ) -> None:
        self._regexes = regexes
        self._refresh_interval_ms = refresh_interval_ms
        self._topics = topics
        self._records = records
        self._changes: deque[tuple[int, str]] = deque()
        self._changed_in_version = self._known_since_version = topics.version

    def on_topics_changed(self, names: Iterable[str]) -> None:
        """Notes topics that were created, have changed or were deleted."""
        version = self._changed_in_version = self._topics.version
        self._changes.extend((version, name) for name in names)
        while len(self._changes) > MAX_CHANGES:
            self._known_since_version, _ = self._changes.popleft()

    def on_all_topics_changed(self) -> None:
        """Note that any topic may have changed."""
        self._changed_in_version = self._known_since_version = self._topics.version
        self._changes.clear()

    def refresh_if_due(self, group: ConsumerGroup, step: Step) -> bool:
        """Resolve the group's expressions that are due. Whether one of them matches other topics now.

        An expression gives its members the topics that the client of this very step may describe, as in Kafka.

        To be called in every heartbeat, after the member's own change.
        """
        has_changed = False
        for expression in sorted(group.subscribed_regexes):
            before = group.resolved_regexes.get(expression)
            if before is not None and not self._is_due(before, step):
                continue
            found = self._find(expression, before, step)
            if found is None:
                continue
            version, topics = found
            if step.may_describe is not None:
                topics = frozenset(filter(step.may_describe, topics))
            has_changed |= topics != (_NOTHING if before is None else before.topics)
            resolved = ResolvedRegularExpression(topics, version, step.timestamp_ms)
            self._records.change(regex_record(group.group_id, expression, resolved), step)
            step.because(group.group_id, f"{expression} matches {len(topics)} topics")
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
        """Topics that may match: those that matched before and those that have changed since; all topics where the
        changes are not known any more, or the last search is old."""
        if before is None or before.version < self._known_since_version or self._is_old(before, step):
            return self._topics.names
        changed = takewhile(lambda change: change[0] > before.version, reversed(self._changes))
        names = before.topics | {name for _, name in changed}
        return [name for name in names if self._topics.topic_id(name) is not None]


def invalid_reason(expression: str) -> str | None:
    """Return why the expression is not valid, in words for the client; None where it is valid."""
    try:
        _predicate(expression)
    except ValueError as error:
        return f"SubscribedTopicRegex `{expression[:_SHOWN]}` is not a valid regular expression: {error}."
    return None


def matching_topics(expression: str, names: Iterable[str]) -> frozenset[str]:
    """The names that match; none where another broker accepted an expression that is not valid here."""
    try:
        matches = _predicate(expression)
    except ValueError:
        return _NOTHING
    return frozenset(name for name in names if matches(name))


def _predicate(expression: str) -> Callable[[str], bool]:
    """Tell whether a name matches. Raises ValueError where the expression is not valid."""
    return full_match(expression, longest=LONGEST, most_program_bytes=MOST_PROGRAM_BYTES)
