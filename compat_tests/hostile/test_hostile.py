"""The table of hostile input, each row against both brokers; after each, the broker still serves."""

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import Broker, answers_api_versions

from . import framing_cases, group_cases, record_cases, topic_cases, transaction_cases
from .scene import Case, Scene

CASES = [*framing_cases.CASES, *topic_cases.CASES, *record_cases.CASES, *group_cases.CASES, *transaction_cases.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.row}: {case.name}".encode("ascii", "replace").decode())
def test_hostile_input_gets_a_clear_answer(case: Case, broker: Broker, kind: str, answers: TestAnswers) -> None:
    answers.expect(f"row {case.row}, {case.name}", case.answer(Scene(broker)), case.expected(kind))
    assert answers_api_versions(broker.address), "the broker does not answer any more"
