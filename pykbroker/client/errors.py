"""Errors of the client. Every message is one sentence that a command may print."""

from __future__ import annotations

from pykbroker.protocol.errors import ErrorCode


class ClientError(Exception):
    """The base of all of them. `retriable` says whether the same call may succeed a moment later."""

    retriable = False


class NoBrokerReachable(ClientError):
    """No bootstrap server, or not the node that is needed, accepts a connection."""

    def __init__(self, message: str, *, retriable: bool) -> None:
        super().__init__(message)
        self.retriable = retriable


class ConnectionRefused(NoBrokerReachable):
    """The node's machine answers, but no process listens on the port (ECONNREFUSED)."""


class ConnectionLost(ClientError):
    """The peer closed, or sent what is no answer to the request."""

    retriable = True


class NotKafka(ClientError):
    """The peer's bytes are not Kafka's protocol."""


class TimedOut(ClientError):
    retriable = True


class AuthenticationRefused(ClientError):
    """The broker does not take the credentials, or does not know them itself."""


class MechanismNotOffered(AuthenticationRefused):
    """The broker's listener does not offer the SASL mechanism, or has no SASL at all."""


class UnsupportedByBroker(ClientError):
    """The broker and this client share no version of a request."""


class UnknownTopic(ClientError):
    """The topic, or the partition, does not exist. topic: its name, where it is the whole topic that is missing."""

    def __init__(self, text: str, topic: str | None = None) -> None:
        super().__init__(text)
        self.topic = topic


class BadInput(ClientError):
    """The caller's input cannot be sent."""


class KafkaError(ClientError):
    """A broker's refusal. `message` is the broker's own text where it sent one."""

    def __init__(self, error_code: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error_code.description)
        self.error_code = error_code
        self.retriable = error_code.retriable


class NotConsumerProtocol(ClientError):
    """The bytes of a group's member are no subscription or assignment of consumers."""


def code_of(number: int) -> ErrorCode:
    """A newer broker may know codes that are not known here; to the caller they are all the same."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def check(error_code: int, message: str | None = None) -> None:
    """Raises KafkaError unless the code says that all is well."""
    if error_code != ErrorCode.NONE:
        raise KafkaError(code_of(error_code), message)
