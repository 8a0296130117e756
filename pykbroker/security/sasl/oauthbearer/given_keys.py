"""The keys of `sasl.oauthbearer.…` as they were given, to a listener of a node or to a client."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from pykbroker.config.broker_keys import broker_keys
from pykbroker.config.keys import ConfigKey, InvalidValue, Value

from ...tls.settings import TlsSettings

_OF_CLIENTS: Final = {
    "sasl.oauthbearer.header.urlencode": ConfigKey("sasl.oauthbearer.header.urlencode", "boolean", "false")
}
"""Keys that brokers have under no name of their own."""

_T = TypeVar("_T", bool, int, float, str, list[str])


@dataclass(frozen=True, slots=True)
class GivenKeys:
    """The keys of one listener or client.

    find: a key's name as it was given, with the prefix of a listener perhaps, and its text; None where it was not.
    jaas_key, options: the JAAS line, which has options beside them.
    """

    find: Callable[[str], tuple[str, str | None]]
    jaas_key: str
    options: Mapping[str, str]

    def name(self, key: str) -> str:
        return self.find(key)[0]

    def is_given(self, key: str) -> bool:
        return bool((self.find(key)[1] or "").strip())

    def text(self, key: str) -> str | None:
        """The text without blanks around it; None where it was not given, or is blank."""
        return (self.find(key)[1] or "").strip() or None

    def typed(self, key: str, type_: type[_T]) -> _T:
        """The value, or its default. Raises InvalidValue."""
        value = self._value(key)
        assert isinstance(value, type_), f"{key} is not always set, or of another type"
        return value

    def at_least(self, key: str, least: int) -> int:
        """The number, or its default. Raises InvalidValue for one that is smaller."""
        number = self.typed(key, int)
        if number < least:
            raise InvalidValue(self.name(key), number, f"Value must be at least {least}")
        return number

    def optional_ms(self, key: str) -> int | None:
        """The number of milliseconds, None where it was not given. Raises InvalidValue."""
        return self.at_least(key, 1) if self.is_given(key) else None

    def option(self, name: str) -> str | None:
        """An option of the JAAS line, without blanks around it."""
        return self.options.get(name, "").strip() or None

    def extensions(self, prefix: str) -> dict[str, str]:
        """The options with the prefix, without it."""
        return {name.removeprefix(prefix): text for name, text in self.options.items() if name.startswith(prefix)}

    def url(self, key: str) -> SplitResult | None:
        """The address, None where it was not given. Raises InvalidValue for one that is neither https nor a file."""
        text = self.text(key)
        if text is None:
            return None
        try:
            url = urlsplit(text)
            is_whole = bool(url.path) if url.scheme == "file" else bool(url.hostname) and url.port != 0
        except ValueError:
            raise InvalidValue(self.name(key), text, "it is no address") from None
        if url.scheme not in ("https", "file") or not is_whole:
            reason = "https://HOST… and file:///PATH are allowed"
            if url.scheme == "http":
                reason = f"http hides nothing and proves nothing; {reason}"
            raise InvalidValue(self.name(key), text, reason)
        if "@" in url.netloc or (url.scheme == "file" and url.netloc not in ("", "localhost")):
            raise InvalidValue(self.name(key), "[hidden]", "an address has no user here, and a file no host")
        return url

    def tls(self) -> TlsSettings:
        """The `ssl.*` options of the JAAS line, for connections over https. Raises ConfigurationError."""
        prefix = f"{self.jaas_key}: "
        given = {f"{prefix}{name}": text for name, text in self.options.items() if name.startswith("ssl.")}
        return TlsSettings.of(given, prefix=prefix)

    def one_of(self, key: str, allowed: Mapping[str, str]) -> str:
        """The value that is allowed, by its long or its short name; the first is the default. Raises InvalidValue."""
        text = self.text(key)
        if text is None:
            return next(iter(allowed.values()))
        if text not in allowed:
            raise InvalidValue(self.name(key), text, f"{', '.join(allowed)} are allowed")
        return allowed[text]

    def _value(self, key: str) -> Value:
        known = _OF_CLIENTS.get(key) or broker_keys()[key]
        name, text = self.find(key)
        return known.parse_default() if text is None else replace(known, name=name).parse(text)
