"""Why a client of a run is given up, and another one of its kind takes its place."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException


class Over(Exception):
    """This producer is done for; another one is to take its place. The text says why."""


def name_of(reason: object) -> str:
    """Return the name of an error as its library has it; words stay as they are."""
    error = reason.args[0] if isinstance(reason, KafkaException) else reason
    match error:
        case KafkaError():
            return error.name()
        case str() | Over():
            return f"{error}"
        case _:
            return type(error).__name__
