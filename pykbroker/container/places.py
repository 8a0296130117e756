"""Places in an image: mounted files, secrets and volumes where the users of `apache/kafka` and of Bitnami's image
have them.

Without an image there are no places: the variables alone count.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MOUNTED = "server.properties"
_MOST_BLANKS = 1 << 20
_VOLUMES = ("var/lib/kafka/data", "tmp/kraft-combined-logs", "tmp/kafka-logs")
"""Directories of other images' data: used where a volume is mounted there."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of an image below `root`; None where there is no image."""

    root: Path | None = None

    @property
    def secrets(self) -> Path:
        return self._below("etc/kafka/secrets")

    def bitnami_certificates(self, variables: Mapping[str, str]) -> tuple[Path, Path]:
        """The directories that may have Bitnami's key stores."""
        return self._below("opt/bitnami/kafka/config/certs"), self._bitnami_config(variables) / "certs"

    def mounted_file(self, variables: Mapping[str, str]) -> Path | None:
        """The `server.properties` that the user has mounted; None where there is none, or none with text."""
        return next(filter(_has_text, self._mounted(variables)), None) if self.root is not None else None

    @property
    def default_file(self) -> Path | None:
        """The file that holds where neither variables nor a mounted file say what the node is; None without one."""
        path = self._below("etc/pykbroker") / MOUNTED
        return path if self.root is not None and _has_text(path) else None

    def data_directory(self, *, of_bitnami: bool) -> str | None:
        """The directory for the data; None where there is no image."""
        if self.root is None:
            return None
        if of_bitnami:
            return str(self.root / "bitnami/kafka/data")
        volumes = (self.root / each for each in _VOLUMES)
        return str(next(filter(os.path.ismount, volumes), self.root / "var/lib/pykbroker/data"))

    def _mounted(self, variables: Mapping[str, str]) -> Iterator[Path]:
        yield self._below("mnt/shared/config") / MOUNTED
        yield self._bitnami_config(variables) / MOUNTED

    def _bitnami_config(self, variables: Mapping[str, str]) -> Path:
        given = variables.get("KAFKA_MOUNTED_CONF_DIR")
        return Path(given) if given else self._below("bitnami/kafka/config")

    def _below(self, path: str) -> Path:
        return (self.root or Path("/")) / path


def _has_text(path: Path) -> bool:
    """Tell whether a file has more than blanks; one that cannot be read has, so that its reader says why."""
    try:
        with path.open("rb") as file:
            return bool(file.read(_MOST_BLANKS).strip())
    except FileNotFoundError:
        return False
    except OSError:
        return True
