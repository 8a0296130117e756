"""Every key of a broker is described as Apache Kafka describes it: its type, its default, who may change or see it."""

from __future__ import annotations

from typing import Any, Final

from .answers import TestAnswers
from .broker_configs import described
from .brokers import Broker

DEFAULT: Final = 5
"""The source of a value that nobody has set."""

OTHER_IN_PYKBROKER: Final = {
    "listeners": "the default is a loopback address",
}


def declared(config: Any) -> dict[str, Any]:
    """Return what does not depend on the properties of this broker."""
    return {
        "type": config.config_type,
        "read only": config.read_only,
        "sensitive": config.is_sensitive,
        "default": [each.value for each in config.synonyms if each.source == DEFAULT],
    }


def test_each_key_of_a_broker_is_declared_as_in_kafka(broker: Broker, answers: TestAnswers) -> None:
    found = described(broker.address)
    answers.all_same({name: declared(each) for name, each in found.items() if name not in OTHER_IN_PYKBROKER})
