"""The quotas of clients follow the metadata: Kafka's `ClientQuotaMetadataManager`."""

from __future__ import annotations

from pykbroker.config import BrokerConfig
from pykbroker.metadata.image import ImageChanges, MetadataImage
from pykbroker.quotas.client_quotas import ClientQuotas
from pykbroker.quotas.rate import QuotaWindows


def quota_windows(config: BrokerConfig) -> QuotaWindows:
    """The windows of rates of clients and of connections."""
    return QuotaWindows(config.int("quota.window.num"), config.int("quota.window.size.seconds") * 1000)


def controller_quota_windows(config: BrokerConfig) -> QuotaWindows:
    """The windows that a bucket of changes of the metadata holds."""
    return QuotaWindows(
        config.int("controller.quota.window.num"), config.int("controller.quota.window.size.seconds") * 1000
    )


class QuotasOfImage:
    """A listener of the image."""

    def __init__(self, quotas: ClientQuotas) -> None:
        self._quotas = quotas

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        for entity in changes.client_quotas:
            self._quotas.change(entity, image.client_quotas.get(entity))
