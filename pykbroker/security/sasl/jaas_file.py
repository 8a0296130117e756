"""The file of Java's `java.security.auth.login.config`: JAAS entries in sections, for brokers and clients.

A listener and mechanism without a JAAS line of its own (`sasl.jaas.config`) has the modules of a section here, by the
order of Kafka's `JaasContext`: `name.KafkaServer`, with the name of the listener in lower case, else `KafkaServer`.
Clients have `KafkaClient`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pykbroker.config.keys import ConfigurationError

from .credentials import LOGIN_MODULES
from .jaas import LoginModule

PROPERTY: Final = "java.security.auth.login.config"
SERVER: Final = "KafkaServer"
CLIENT: Final = "KafkaClient"


@dataclass(frozen=True, slots=True)
class JaasFile:
    """The sections of one file by their names."""

    path: str
    sections: Mapping[str, tuple[LoginModule, ...]] = field(repr=False)

    def of_listener(self, listener: str) -> str | None:
        """The name of the section that counts for a listener; None where there is none."""
        own = f"{listener.lower()}.{SERVER}"
        return next((each for each in (own, SERVER) if each in self.sections), None)

    def place(self, section: str) -> str:
        """The place of a section, for messages."""
        return f"section {section} of {self.path}"

    def module(self, section: str, mechanism: str) -> LoginModule:
        """The login module of a mechanism in a section. Raises ConfigurationError where the section lacks it.

        Of several entries of one module the first counts that has an option, as in Kafka.
        """
        wanted = LOGIN_MODULES[mechanism]
        found = [each for each in self.sections[section] if each.module == wanted]
        if not found:
            raise ConfigurationError(f"{self.place(section)} lacks the login module of {mechanism}, {wanted}")
        options = {name: text for each in reversed(found) for name, text in each.options.items()}
        return LoginModule(wanted, found[0].control_flag, options)

    def login(self, section: str, mechanism: str) -> LoginModule:
        """The login module of a mechanism as one logs in by it. Raises ConfigurationError where the section lacks it.

        Java lets all modules of a section log in, and Kafka takes a name and a password that any of them has; which one
        of several, nothing says. Here the module's own count, and where it has none the first ones of others.
        """
        module = self.module(section, mechanism)
        of_others: dict[str, str] = {
            name: each.options[name]
            for name in ("password", "username")
            for each in reversed(self.sections[section])
            if name in each.options
        }
        return replace(module, options={**of_others, **module.options})
