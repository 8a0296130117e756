"""Java's options in `KAFKA_OPTS`, as far as they are about SASL: whoever starts a node or a client reads them once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import unquote, urlsplit

from pykbroker.config.keys import ConfigurationError

from .sasl.jaas import InvalidSections, parse_sections
from .sasl.jaas_file import PROPERTY, JaasFile
from .sasl.oauthbearer.allowed_urls import allowed_urls
from .sasl.process_options import ProcessOptions
from .sasl.system_properties import VARIABLE, system_properties
from .secret_files import UnreadableFile, read_file

MOST_BYTES: Final = 1 << 20


def options_of_process(java_options: str | None = None) -> ProcessOptions:
    """Raises ConfigurationError. java_options: the text of `KAFKA_OPTS`; this process's where it is None."""
    text = os.environ.get(VARIABLE, "") if java_options is None else java_options
    properties = system_properties(text)
    return ProcessOptions(allowed_urls(properties), read_jaas_file(properties))


def allowed_urls_of_process() -> frozenset[str]:
    """The addresses that this process may ask, without a look at the JAAS file. Raises ConfigurationError."""
    return allowed_urls(system_properties(os.environ.get(VARIABLE, "")))


def read_jaas_file(properties: Mapping[str, str]) -> JaasFile | None:
    """Read the file that Java's system properties name; None where they name none. Raises ConfigurationError."""
    named = properties.get(PROPERTY, "").removeprefix("=")
    if not named:
        return None
    path = unquote(urlsplit(named).path) if named.startswith("file:") else named
    try:
        return JaasFile(path, parse_sections(read_file(path, MOST_BYTES, secret="JAAS file").decode(), properties))  # noqa: S106
    except UnreadableFile as error:
        raise ConfigurationError(f"{PROPERTY}: {path} cannot be read: {error}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{PROPERTY}: {path} is no text in UTF-8") from None
    except InvalidSections as error:
        raise ConfigurationError(f"{PROPERTY}: {path}, {error}") from None
