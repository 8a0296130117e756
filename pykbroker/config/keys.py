"""One configuration key: its type, its default, what it allows, and how a value is read from text.

The types and the words of the complaints are those of Kafka's `ConfigDef`, because clients show them to their users.
Not here: which keys exist (`broker_keys`, `topic_keys`) and where values come from (`broker`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .offset_reset import offset_reset
from .urls import without_secrets

Value = bool | int | float | str | list[str] | None

_INTEGER_BITS = {"short": 16, "int": 32, "long": 64}
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_THROTTLED_REPLICA = re.compile(r"[0-9]+:[0-9]+", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", re.ASCII)

WIRE_TYPES = {
    "unknown": 0,
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}
"""The numbers by which DescribeConfigs names a type."""


class ConfigurationError(Exception):
    """A configuration that cannot be used. Its text is one line: the key, the value, and what is allowed."""


class InvalidValue(ConfigurationError):
    """One value that its key does not allow."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        shown = without_secrets(value) if isinstance(value, str) else value
        super().__init__(f"Invalid value {shown} for configuration {name}: {reason}")
        self.name = name
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ConfigKey:
    """One key. `valid` is written as `low..high`, `low..`, `low..high|other`, `a|b|c`, `~a|b` (any case), `nonempty`,
    `offset-reset` or `throttled-replicas`.

    update: who may change it while the broker runs: "static" nobody, "broker" one broker, "cluster" all of them
    together, "topic" a topic, "group" a group, "client-metrics" a subscription of those; "internal" keys are static
    and shown to nobody.
    """

    name: str
    type: str
    default: str | None
    valid: str = ""
    update: str = "static"

    @property
    def read_only(self) -> bool:
        return self.update in ("static", "internal")

    @property
    def sensitive(self) -> bool:
        return self.type in ("password", "unknown")

    def parse(self, text: str | None) -> Value:
        """The typed value of a text; raises InvalidValue or ConfigurationError if the key does not allow it."""
        if text is None:
            return None
        try:
            value = parse_typed(self.type, text)
            check_valid(self.name, self.valid, value)
        except ValueError as error:
            raise InvalidValue(self.name, text, str(error)) from None
        except InvalidValue as error:
            if self.sensitive:
                raise InvalidValue(self.name, "[hidden]", error.reason) from None
            raise
        return value

    def parse_default(self) -> Value:
        return None if self.default is None else parse_typed(self.type, self.default)

    def canonical(self, text: str) -> str:
        """The text as clients are shown it: no blanks around it, numbers without leading zeros. It must be valid."""
        value = self.parse(text)
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, list):
            return ",".join(dict.fromkeys(value))
        return str(value) if isinstance(value, int) else text.strip() if self.type == "double" else str(value)


def parse_typed(type_: str, text: str) -> Value:
    """Read a text as `ConfigDef.parseType` does; raises ValueError with Kafka's reason."""
    trimmed = text.strip()
    match type_:
        case "boolean":
            if trimmed.lower() not in ("true", "false"):
                raise ValueError("Expected value to be either true or false")
            return trimmed.lower() == "true"
        case "int" | "short" | "long":
            bits = _INTEGER_BITS[type_]
            if _INTEGER.fullmatch(trimmed) is None or not -(1 << bits - 1) <= int(trimmed) < 1 << bits - 1:
                raise ValueError(f"Not a number of type {type_.upper()}")
            return int(trimmed)
        case "double":
            if _DECIMAL.fullmatch(trimmed) is None:
                raise ValueError("Not a number of type DOUBLE")
            return float(trimmed)
        case "list":
            return re.split(r"\s*,\s*", trimmed) if trimmed else []
        case "class":
            return trimmed
        case _:
            return text


def check_valid(name: str, valid: str, value: Value) -> None:
    """Raises ConfigurationError with Kafka's reason if `valid` (see ConfigKey) does not admit the value."""
    if isinstance(value, list):
        _check_list(name, valid, value)
    elif not valid:
        return
    elif valid == "nonempty":
        if value == "":
            raise InvalidValue(name, value, "String must be non-empty")
    elif valid == "offset-reset":
        _check_offset_reset(name, str(value))
    elif isinstance(value, (int, float)):
        _check_range(name, valid, value)
    else:
        _check_one_of(name, valid, str(value))


def _check_range(name: str, valid: str, value: int | float) -> None:
    bounds, _, other = valid.partition("|")
    if other and value == int(other):
        return
    low, _, high = bounds.partition("..")
    if other and not float(low) <= value <= float(high):
        raise InvalidValue(name, value, f"Value must be between {low} and {high} or equal to {other}")
    if low and value < float(low):
        raise InvalidValue(name, value, f"Value must be at least {low}")
    if high and value > float(high):
        raise InvalidValue(name, value, f"Value must be no more than {high}")


def _check_one_of(name: str, valid: str, value: str) -> None:
    allowed = valid.lstrip("~").split("|")
    if valid.startswith("~"):
        if value.lower() not in [each.lower() for each in allowed]:
            raise InvalidValue(name, value, f"String must be one of (case insensitive): {', '.join(allowed)}")
    elif value not in allowed:
        raise InvalidValue(name, value, f"String must be one of: {', '.join(allowed)}")


def _check_offset_reset(name: str, value: str) -> None:
    try:
        offset_reset(value)
    except ValueError:
        reason = (
            f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or of "
            "the format 'by_duration:<PnDTnHnMn.nS>'."
        )
        raise InvalidValue(name, value, reason) from None


def _check_list(name: str, valid: str, values: list[str]) -> None:
    if valid == "throttled-replicas":
        _check_throttled_replicas(name, values)
        return
    if "" in values:
        raise ConfigurationError(f"Configuration '{name}' values must not be empty.")
    for value in values if valid else ():
        _check_one_of(name, valid, value)


def _check_throttled_replicas(name: str, values: list[str]) -> None:
    if values and values != ["*"] and any(_THROTTLED_REPLICA.fullmatch(value) is None for value in values):
        reason = (
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
        )
        raise InvalidValue(name, f"[{', '.join(values)}]", reason)
