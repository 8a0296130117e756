"""What each broker answered, so that a difference is shown with both answers."""

from collections.abc import Iterator, Mapping
from typing import Any

_NOT_ASKED = object()


class Answers:
    """One for the whole run; Apache Kafka is asked before pykbroker, so its answers are there to be shown."""

    def __init__(self) -> None:
        self._by_question: dict[tuple[str, str], dict[str, Any]] = {}

    def of_test(self, test: str, kind: str) -> "TestAnswers":
        return TestAnswers(self, test, kind)

    def record(self, test: str, question: str, kind: str, answer: Any) -> dict[str, Any]:
        """Keeps the answer, and returns those of all brokers to this question of this test."""
        answers = self._by_question.setdefault((test, question), {})
        answers[kind] = answer
        return answers


class TestAnswers:
    """The answers that one broker gives in one test."""

    __test__ = False

    def __init__(self, answers: Answers, test: str, kind: str) -> None:
        self._answers = answers
        self._test = test
        self._kind = kind

    def expect(self, question: str, answer: Any, expected: Any) -> None:
        """Fails where the answer is not what is expected, and shows what every broker answered so far."""
        given = self._answers.record(self._test, question, self._kind, answer)
        if answer != expected:
            raise AssertionError(_difference(question, given, expected))

    def same(self, question: str, answer: Any) -> None:
        """Fails where the brokers asked so far do not answer alike."""
        given = self._answers.record(self._test, question, self._kind, answer)
        if any(other != answer for other in given.values()):
            raise AssertionError(_difference(question, given, _NOT_ASKED))

    def all_same(self, answers: Mapping[str, Any]) -> None:
        """As `same` for many questions with nested answers; shows what differs of each, not only of the first."""
        differences = []
        for question, answer in answers.items():
            given = self._answers.record(self._test, question, self._kind, answer)
            differences += [f"{question}: {line}" for line in _different_places(given)]
        if differences:
            raise AssertionError("\n".join(differences))


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


def _difference(question: str, given: dict[str, Any], expected: Any) -> str:
    lines = [f"{question}:"]
    if expected is not _NOT_ASKED:
        lines.append(f"  expected      {expected!r}")
    lines += [f"  {kind:<13} {answer!r}" for kind, answer in given.items()]
    return "\n".join(lines)
