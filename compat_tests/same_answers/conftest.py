"""One interview for each test and broker; the answers are compared when it is over."""

from collections.abc import Iterator

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.brokers import Broker
from compat_tests.names import RUN

from .interview import Interview


@pytest.fixture
def interview(broker: Broker, request: pytest.FixtureRequest, answers: TestAnswers) -> Iterator[Interview]:
    topic = request.node.originalname.replace("_", "-").removeprefix("test-")[:60] + f"-{RUN}"
    asked = Interview(broker, topic)
    yield asked
    answers.all_same(asked.answers)
