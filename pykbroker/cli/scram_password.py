"""The value of a SCRAM mechanism in `--add-config`: `[iterations=8192,password=secret]` (`ScramCredentialUtils`)."""

from __future__ import annotations

from dataclasses import dataclass, field

from pykbroker.security.sasl.scram_credential import MAX_ITERATIONS, MIN_ITERATIONS

from .command import CommandFailed


@dataclass(frozen=True, slots=True)
class ScramPassword:
    """A new password and how often it is to be hashed."""

    text: str = field(repr=False)
    iterations: int = MIN_ITERATIONS


def parse_scram_password(mechanism: str, value: str) -> ScramPassword:
    """Raises CommandFailed, whose text has nothing of the value. A password may contain `,` and `=`, being the last."""
    before, password = _parts(value)
    if not password:
        raise CommandFailed(f"{mechanism} expects [iterations=N,password=TEXT]; the password is missing")
    return ScramPassword(password, _iterations(mechanism, before))


def has_password(value: str) -> bool:
    """Tell whether the value has a password of its own, an empty one too."""
    return _parts(value)[1] is not None


def with_password(value: str, password: str) -> str:
    """The value with this password, where it has none of its own."""
    return value if has_password(value) else ",".join(filter(None, (value, f"password={password}")))


def _parts(value: str) -> tuple[str, str | None]:
    """The text before the password, and the password; None where there is none."""
    before, found, password = f",{value}".partition(",password=")
    return before.lstrip(","), password if found else None


def _iterations(mechanism: str, text: str) -> int:
    if not text:
        return MIN_ITERATIONS
    key, equals, number = text.partition("=")
    if key.strip() != "iterations" or not equals or not number.strip().isdecimal():
        raise CommandFailed(f"{mechanism} expects [iterations=N,password=TEXT]")
    iterations = int(number.strip()[:10])
    if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
        raise CommandFailed(f"{mechanism} takes {MIN_ITERATIONS} to {MAX_ITERATIONS} iterations, not {iterations}")
    return iterations
