"""One node as its environment variables describe it, and complaints about keys in the words of variables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from .names import PREFIX, is_known, variable_of

_ACCUSED = re.compile(r"Invalid value .* for configuration ([a-z0-9._-]+)")
_QUOTED = re.compile(r"Invalid value ([\"']).*\1 for configuration ")
_KEY = re.compile(r"[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)+")


@dataclass(slots=True)
class NodeEnvironment:
    """A node as variables describe it.

    properties: keys and values that win over the file. defaults: those that hold where neither gives the key. file: the
    properties file that counts. of_file: its keys. origins: the variable of each key. cluster_id: None where any will
    do. scram_users: for users with whom the cluster begins, as for `format --add-scram`. notes: one line each, for
    the log.
    """

    properties: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, str] = field(default_factory=dict)
    file: Path | None = None
    of_file: frozenset[str] = frozenset()
    origins: dict[str, str] = field(default_factory=dict)
    cluster_id: str | None = None
    scram_users: list[str] = field(default_factory=list)
    initial_controllers: str | None = None
    notes: list[str] = field(default_factory=list)
    log_levels: dict[str, int] = field(default_factory=dict)
    prefix: str = PREFIX

    def named(self, text: str) -> str:
        """A complaint about keys, with the variables that set them, or would."""
        accused = _ACCUSED.findall(text)
        keys = [key for key in dict.fromkeys([*accused, *_KEY.findall(text)]) if key in self.origins or is_known(key)]
        set_by = dict.fromkeys(self.origins[key] for key in keys if key in self.origins)
        before = ", ".join(name for name in set_by if name not in text)
        is_missing = not set_by or not self.origins.keys() & set(accused)
        unset = [
            key for key in keys if key not in self.origins and key not in self.of_file and key not in self.defaults
        ]
        after = ", ".join(variable_of(key, self.prefix) for key in unset) if is_missing else ""
        quotes = "; the quotes are part of the value" if _QUOTED.search(text) else ""
        return f"{f'{before}: ' if before else ''}{text}{quotes}{f' (see {after})' if after else ''}"
