"""`pykbroker start --as`: a node that offers to its clients what another cluster offers, and says what it cannot."""

from __future__ import annotations

import logging

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.personality.applying import (
    listeners_of_nodes,
    missing_versions,
    offer_of,
    properties_of,
    settings_left_out,
)
from pykbroker.personality.personality import BadPersonality
from pykbroker.personality.shipped import find_personality
from pykbroker.server.network.offer import Offer

_log = logging.getLogger(__name__)


class StartAs:
    """The personality of one node. properties: those that stand below the node's own."""

    def __init__(self, name: str) -> None:
        """Raises ConfigurationError. name: of a personality that comes along, or a file."""
        try:
            self._personality = find_personality(name)
            self.properties = properties_of(self._personality)
        except BadPersonality as error:
            raise ConfigurationError(f"--as: {error}") from None

    def offer(self, config: BrokerConfig) -> Offer:
        """The offer of the node's listeners for clients. Raises ConfigurationError."""
        from pykbroker.api import HANDLERS

        offer = offer_of(self._personality, listeners_of_nodes(config))
        name = self._personality.name
        if missing := missing_versions(self._personality, HANDLERS.broker):
            _log.warning("%s has these versions, and pykbroker has not: %s", name, ", ".join(missing))
        if left_out := settings_left_out(self._personality):
            _log.warning("%s has these settings, and pykbroker has not: %s", name, ", ".join(left_out))
        return offer
