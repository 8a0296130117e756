"""All quotas of a node's clients, which are set by what the metadata says of each entity (KIP-546)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .client_rates import ClientRates
from .controller_mutations import ControllerMutations
from .entities import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuotaEntity,
)
from .rate import QuotaWindows

_NONE: Mapping[str, float] = MappingProxyType({})


class ClientQuotas:
    """The quotas of users and client ids. is_set: whether there is any; who finds it False has nothing else to do.

    controller_windows: those of `controller.quota.window.…`.
    """

    def __init__(self, windows: QuotaWindows, controller_windows: QuotaWindows) -> None:
        self.is_set = False
        self.produce = ClientRates(windows)
        """In bytes of requests."""
        self.fetch = ClientRates(windows)
        """In bytes of answers."""
        self.request = ClientRates(windows, most_throttle_ms=windows.size_ms)
        """In percent of the time of one thread."""
        self.mutations = ControllerMutations(controller_windows)
        """In partitions."""

    def change(self, entity: ClientQuotaEntity, quotas: Mapping[str, float] | None) -> None:
        """Take over what the metadata says of an entity now; None is nothing. Addresses are not for here."""
        if any(kind == IP for kind, _ in entity):
            return
        values = _NONE if quotas is None else quotas
        self.produce.set_limit(entity, values.get(PRODUCER_BYTE_RATE))
        self.fetch.set_limit(entity, values.get(CONSUMER_BYTE_RATE))
        self.request.set_limit(entity, values.get(REQUEST_PERCENTAGE))
        self.mutations.set_limit(entity, values.get(CONTROLLER_MUTATION_RATE))
        self.is_set = self.produce.is_set or self.fetch.is_set or self.request.is_set or self.mutations.is_set
