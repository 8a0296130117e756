"""The offer of listeners that do not offer all that is served: `pykbroker start --as`.

Clients see the APIs, versions and features of another release, as far as they are served here. What a listener does
not offer it refuses, at the same place where versions are checked elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.schema import Versions

NAMES_API_VERSIONS_SINCE: Final = 3
"""The version of ApiVersions since which a refusal of it says which versions there are (KIP-511)."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The offer of a node's listeners.

    versions: by API key, those of the other release, also where they are not all served. features: by name, the
    levels that both support. initial_levels: with which a new cluster begins. everything_at: names of listeners that
    offer all the same, since nodes talk to each other there.
    """

    versions: Mapping[int, Versions]
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    initial_levels: Mapping[str, int] = field(default_factory=dict)
    everything_at: frozenset[str] = frozenset()

    def includes(self, api_key: int, version: int) -> bool:
        offered = self.versions.get(api_key)
        return offered is not None and offered.includes(version)

    @property
    def names_api_versions(self) -> bool:
        offered = self.versions.get(ApiKey.API_VERSIONS)
        return offered is None or offered.high >= NAMES_API_VERSIONS_SINCE
