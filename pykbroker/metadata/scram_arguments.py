"""`format --add-scram`: the users that a new cluster begins with (KIP-900), in the syntax of Kafka's `ScramParser`.

`SCRAM-SHA-256=[name=alice,iterations=8192,password="alice-secret",salt="c2FsdA=="]`; with `saltedpassword` in the place
of `password` the password itself is told to nobody. No error shows what was given, since it may hold a password.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Final

from pykbroker.protocol.messages.metadata_records import UserScramCredentialRecord
from pykbroker.security.sasl.scram_credential import MAX_ITERATIONS, MECHANISMS, MIN_ITERATIONS, ScramMechanism

from .scram_records import scram_record

_KEYS: Final = ("name", "salt", "iterations", "password", "saltedpassword")


class InvalidScramArgument(ValueError):
    """An argument that names no user as it should; the text is one line without secrets."""


def parse_scram_argument(text: str, new_salt: Callable[[], bytes]) -> UserScramCredentialRecord:
    """The record of one argument. new_salt: for users without a salt of their own. Raises InvalidScramArgument."""
    name, equals, fields = text.strip().partition("=")
    if not equals:
        raise InvalidScramArgument("Failed to find equals sign in SCRAM argument")
    mechanism = MECHANISMS.get(name)
    if mechanism is None:
        raise InvalidScramArgument(f"The add-scram mechanism is not supported; {', '.join(MECHANISMS)} are")
    if not fields.startswith("["):
        raise InvalidScramArgument("Expected configuration string to start with [")
    if not fields.endswith("]"):
        raise InvalidScramArgument("Expected configuration string to end with ]")
    return _record(mechanism, _fields(fields[1:-1]), new_salt)


def _fields(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidScramArgument("No equals sign found in SCRAM component")
        if key not in _KEYS:
            raise InvalidScramArgument(f"Unknown SCRAM configuration; {', '.join(_KEYS)} are known")
        is_quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        fields[key] = value[1:-1] if is_quoted else value
    return fields


def _record(
    mechanism: ScramMechanism, fields: dict[str, str], new_salt: Callable[[], bytes]
) -> UserScramCredentialRecord:
    if "name" not in fields:
        raise InvalidScramArgument("You must supply 'name' to add-scram")
    iterations = _iterations(mechanism, fields.get("iterations"))
    if "password" in fields:
        salt = _base64("salt", fields["salt"]) if "salt" in fields else new_salt()
        salted = mechanism.salted_password(fields["password"], salt, iterations)
    elif "saltedpassword" not in fields:
        raise InvalidScramArgument("You must supply one of 'password' or 'saltedpassword' to add-scram")
    elif "salt" not in fields:
        raise InvalidScramArgument("You must supply 'salt' with 'saltedpassword' to add-scram")
    else:
        salt, salted = (_base64(key, fields[key]) for key in ("salt", "saltedpassword"))
    return scram_record(fields["name"], mechanism.type, mechanism.credential(salted, salt, iterations))


def _iterations(mechanism: ScramMechanism, text: str | None) -> int:
    if text is None:
        return MIN_ITERATIONS
    if not text.isascii() or not text.isdecimal():
        raise InvalidScramArgument("Failed to parse iterations count")
    iterations = int(text[:10])
    if iterations < MIN_ITERATIONS:
        reason = f"The 'iterations' value must be >= {MIN_ITERATIONS} for add-scram using {mechanism.name}"
        raise InvalidScramArgument(reason)
    if iterations > MAX_ITERATIONS:
        reason = f"The 'iterations' value must be <= {MAX_ITERATIONS} for add-scram using {mechanism.name}"
        raise InvalidScramArgument(reason)
    return iterations


def _base64(key: str, text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except Base64Error:
        raise InvalidScramArgument(f"Failed to decode given {key}") from None
