"""Refusals of values that cannot be used: one line for the log, and Kafka's text for a client.

Whoever changes a store at run time is told the exception of Kafka, with its class and in its words, because tools and
administrators know them. They do not say which key is meant, so the log has more.
"""

from __future__ import annotations

from pykbroker.config import ConfigurationError, InvalidValue

CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"
INVALID_CONFIGURATION = "org.apache.kafka.common.errors.InvalidConfigurationException"
KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"
WRONG_KEY_PASSWORD = f"{KAFKA_EXCEPTION}: java.security.UnrecoverableKeyException: Cannot recover key"
HANDSHAKE_EXCEPTION = "javax.net.ssl.SSLHandshakeException"


def not_loaded(location: str | None, store_type: str) -> str:
    """Return Kafka's exception for a store that it cannot read; without a location it is inline."""
    if location is None:
        return f"{INVALID_CONFIGURATION}: Invalid PEM keystore configs"
    if store_type == "PEM":
        return f"{INVALID_CONFIGURATION}: Failed to load PEM SSL keystore {location}"
    return f"{KAFKA_EXCEPTION}: Failed to load SSL keystore {location} of type {store_type}"


class RefusedValue(InvalidValue):
    """A value that Kafka refuses, too. in_kafka: class and message of its exception."""

    def __init__(self, name: str, value: object, reason: str, in_kafka: str) -> None:
        super().__init__(name, value, reason)
        self.in_kafka = in_kafka


class RefusedReplacement(ConfigurationError):
    """A store that cannot take the place of another. in_kafka: class and message of Kafka's exception."""

    def __init__(self, reason: str, exception: str = CONFIG_EXCEPTION) -> None:
        super().__init__(reason)
        self.in_kafka = f"{exception}: {reason}"


def kafka_text(error: ConfigurationError) -> str:
    """Return the exception that Kafka would name to a client, or the error's own text where Kafka has none."""
    if isinstance(error, RefusedValue | RefusedReplacement):
        return error.in_kafka
    return f"{CONFIG_EXCEPTION}: {error}"
