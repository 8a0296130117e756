"""Members that subscribe by a regular expression: which topics it means, for all members that have the same one.

The expression is RE2's, which takes linear time whatever somebody asks for, and it has to match a topic's whole name.
Every topic counts, internal ones too; members who do not want these say so in the expression. What was found is a
record of its own, so that whoever serves the group next need not look again. The model is Kafka's `TopicRegexResolver`,
and `maybeUpdateRegularExpressions` of its `GroupMetadataManager`. There a thread looks at all topics, and members hear
of them a heartbeat later; here the same heartbeat does it, and mostly looks at what is new.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import Final

from .consumer_group import ConsumerGroup, ResolvedRegularExpression
from .consumer_records import ConsumerRecords, regex_record
from .context import Step
from .topics import TopicsView

SHORTEST_REFRESH_INTERVAL_MS: Final = 10_000
"""However many topics are created one after the other, a group does not look for them more often than this."""
MAX_CHANGES: Final = 10_000
"""That many changed topics are remembered; whoever has not looked for longer looks at all topics again."""


class RegularExpressions:
    def __init__(self, refresh_interval_ms: int, topics: TopicsView, records: ConsumerRecords) -> None:
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

    def invalid_reason(self, expression: str) -> str | None:
        """Why the expression cannot be used, in words for whoever sent it; None where it can."""
        try:
            _predicate(expression)
        except ValueError as error:
            return f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {error}."
        return None

    def refresh_if_due(self, group: ConsumerGroup, step: Step) -> bool:
        """Comes in every heartbeat, when the member's own change is made. Whether what it found is anything new."""
        has_changed = False
        for expression in sorted(group.subscribed_regexes):
            before = group.resolved_regexes.get(expression)
            if before is not None and not self._is_due(before, step):
                continue
            topics = self._matching(expression, self._candidates(before, step))
            has_changed |= before is None or topics != before.topics
            resolved = ResolvedRegularExpression(topics, self._topics.version, step.timestamp_ms)
            self._records.change(regex_record(group.group_id, expression, resolved), step)
            step.because(f"group {group.group_id}: {expression} matches {len(topics)} topics")
        return has_changed

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

    def _matching(self, expression: str, names: Iterable[str]) -> frozenset[str]:
        """Nothing where another broker took an expression that is not valid here."""
        try:
            matches = _predicate(expression)
        except ValueError:
            return frozenset()
        return frozenset(name for name in names if matches(name))


def _predicate(expression: str) -> Callable[[str], bool]:
    """Raises ValueError. The library is loaded when somebody needs it; it keeps what it compiled last."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        compiled = re2.compile(expression, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode(errors="replace")) from None
    return lambda name: compiled.fullmatch(name.encode()) is not None
