"""What a broker answered in one test, beside what was recorded of Apache Kafka; a difference is shown with both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .referee.recorded_answers import comparable

_NOT_ASKED = object()


class NotAsked(AssertionError):
    """There is no answer to compare with: the brokers went different ways, or the record is stale (`make record`)."""


class TestAnswers:
    """The answers that one broker gives in one test.

    recorded: what another was recorded to have answered, by question, and None where there is nothing to compare with;
    by: that other's name.
    """

    __test__ = False

    def __init__(self, kind: str, recorded: Mapping[str, Any] | None = None, by: str = "apache-kafka") -> None:
        self.given: dict[str, Any] = {}
        self._kind = kind
        self._recorded = recorded
        self._recorded_by = by

    def expect(self, question: str, answer: Any, expected: Any) -> None:
        """Fails where the answer is not what is expected, and shows what every broker answered.

        A question may be for one broker alone: another may end where it is asked, and what is expected stands here.
        """
        answers = self._keep(question, answer)
        if answer != expected:
            raise AssertionError(_difference(question, answers, expected))

    def same(self, question: str, answer: Any) -> None:
        """Fails where the brokers do not answer alike."""
        answers = self._compared(question, answer)
        if any(other != answers[self._kind] for other in answers.values()):
            raise AssertionError(_difference(question, answers))

    def all_same(self, answers: Mapping[str, Any]) -> None:
        """As `same` for many questions with nested answers; shows what differs of each, not only of the first."""
        differences = []
        for question, answer in answers.items():
            try:
                differences += [f"{question}: {line}" for line in _different_places(self._compared(question, answer))]
            except NotAsked as missing:
                differences.append(str(missing))
        if differences:
            raise AssertionError("\n".join(differences))

    def ensure_complete(self) -> None:
        """Fails where the other was asked what this one was not."""
        missing = (self._recorded or {}).keys() - self.given.keys()
        assert not missing, f"{self._recorded_by} was asked as well: {', '.join(sorted(missing))}"

    def _keep(self, question: str, answer: Any) -> dict[str, Any]:
        """Keeps the answer, and returns those of all brokers that were asked this question."""
        shown = comparable(answer)
        known = self.given.setdefault(question, shown)
        assert known == shown, f"asked twice and answered otherwise: {_difference(question, {'1': known, '2': shown})}"
        if self._recorded is None or question not in self._recorded:
            return {self._kind: shown}
        return {self._recorded_by: self._recorded[question], self._kind: shown}

    def _compared(self, question: str, answer: Any) -> dict[str, Any]:
        """As `_keep`; raises NotAsked where there is nobody to compare with."""
        answers = self._keep(question, answer)
        if self._recorded is not None and self._recorded_by not in answers:
            raise NotAsked(f"{question}: {self._recorded_by} was not asked, {self._kind} answered {answer!r}")
        return answers


def _different_places(given: Mapping[str, Any]) -> list[str]:
    by_kind = {kind: dict(_places(answer)) for kind, answer in given.items()}
    every_place = dict.fromkeys(place for places in by_kind.values() for place in places)
    lines = []
    for place in every_place:
        values = {kind: places.get(place, "nothing") for kind, places in by_kind.items()}
        if len({repr(value) for value in values.values()}) > 1:
            shown = ", ".join(f"{kind} {value!r}" for kind, value in values.items())
            lines.append(f"{place or 'the answer'}: {shown}")
    return lines


def _places(answer: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Each single value of a nested answer, and where it stands; rows that have a name stand under it."""
    if isinstance(answer, dict) and answer:
        for name, value in answer.items():
            yield from _places(value, f"{place}.{name}".lstrip("."))
    elif isinstance(answer, list) and answer:
        for index, row in enumerate(answer):
            name = row.get("name") if isinstance(row, dict) else None
            yield from _places(row, f"{place}[{index if name is None else name}]")
    else:
        yield place, answer


def _difference(question: str, given: Mapping[str, Any], expected: Any = _NOT_ASKED) -> str:
    lines = [f"{question}:"]
    if expected is not _NOT_ASKED:
        lines.append(f"  expected      {expected!r}")
    lines += [f"  {kind:<13} {answer!r}" for kind, answer in given.items()]
    return "\n".join(lines)
