"""Who may do what: every API, asked by users with no right, the right one, a wrong one, and a denial beside all rights.

What Apache Kafka answered each of them stands in the record, field by field, with those who were answered alike.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import BrokerProcess
from compat_tests.conftest import assert_all_went_well, make_broker

from . import (
    cluster_questions,
    controller_questions,
    group_questions,
    last_questions,
    share_group_questions,
    share_record_questions,
    share_state_questions,
    token_questions,
    topic_questions,
    transaction_questions,
)
from .matrix import PROPERTIES, USERS, Matrix
from .users import Listeners

CATALOGUES = {
    "topics": topic_questions.catalogue,
    "groups": group_questions.catalogue,
    "transactions": transaction_questions.catalogue,
    "cluster": cluster_questions.catalogue,
    "tokens": token_questions.catalogue,
    "controllers": controller_questions.catalogue,
    "share state": share_state_questions.catalogue,
    "share groups": share_group_questions.catalogue,
    "share records": share_record_questions.catalogue,
    "last": last_questions.catalogue,
}


@pytest.fixture(scope="module")
def matrix(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    if kind == "external":
        pytest.skip("needs a broker that the test starts itself")
    broker = make_broker(kind, tmp_path_factory.mktemp("matrix") / kind, {})
    if not isinstance(broker, BrokerProcess):
        pytest.skip("needs a broker that is a process of this machine")
    listeners = Listeners(broker.port, broker.controller_port, USERS)
    broker.properties |= listeners.properties(PROPERTIES)
    broker.start()
    asking = Matrix(broker, listeners)
    try:
        asking.set_up()
        yield asking
    finally:
        asking.close()
        broker.close()
    assert_all_went_well(broker)


@pytest.mark.parametrize("catalogue", CATALOGUES)
def test_everybody_is_answered_as_by_apache_kafka(matrix: Matrix, catalogue: str, answers: TestAnswers) -> None:
    for question in CATALOGUES[catalogue].questions:
        answers.all_same(matrix.answers(question, on_controller=catalogue == "controllers"))
