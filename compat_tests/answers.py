"""What each broker answered, so that a difference is shown with both answers."""

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


def _difference(question: str, given: dict[str, Any], expected: Any) -> str:
    lines = [f"{question}:"]
    if expected is not _NOT_ASKED:
        lines.append(f"  expected      {expected!r}")
    lines += [f"  {kind:<13} {answer!r}" for kind, answer in given.items()]
    return "\n".join(lines)
