"""The part of SASL that those who start a process decide, and not those who write its properties.

Kafka takes it from system properties of Java, which its scripts have from `KAFKA_OPTS`. The same variable counts here:
the addresses that may be asked for keys and tokens, and a JAAS file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .jaas_file import JaasFile


@dataclass(frozen=True, slots=True)
class ProcessOptions:
    """The options of one process. allowed_urls: None where nobody asks. jaas_file: None where none is named."""

    allowed_urls: frozenset[str] | None = None
    jaas_file: JaasFile | None = None


NO_OPTIONS: Final = ProcessOptions()
