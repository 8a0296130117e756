"""Settings of a broker that change while it runs, and the parts of the node that act on them.

`cleaner`: `log.cleaner.…`; `fetchers`: `num.replica.fetchers`; logs: `producer.id.expiration.ms`. What topics, groups,
quotas, TLS and SASL have of the cluster's settings, they look up by themselves. `num.recovery.threads.per.data.dir` is
looked up when a start opens its logs.

The settings in force are those of the image over those of the properties file. One that cannot be read, which another
software may have left there, is told in the log, and the file's counts.
"""

from __future__ import annotations

import logging
from typing import Final

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.config.broker_keys import broker_keys
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage

from ..logs.hosted_logs import HostedLogs
from ..logs.log_cleaner import CleanerSettings, LogCleaner
from ..replicas.replica_fetcher import ReplicaFetchers
from ..runtime.signal import Signal

_log = logging.getLogger(__name__)

FETCHERS: Final = "num.replica.fetchers"
PRODUCER_EXPIRATION: Final = "producer.id.expiration.ms"
WATCHED: Final[tuple[str, ...]] = (
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
    FETCHERS,
    PRODUCER_EXPIRATION,
)


class DynamicSettings:
    """The settings of one broker. `apply` is a listener of the image."""

    def __init__(self, config: BrokerConfig, cleaner: LogCleaner, fetchers: ReplicaFetchers, logs: HostedLogs) -> None:
        self._config = config
        self._cleaner = cleaner
        self._fetchers = fetchers
        self._logs = logs
        self._texts: dict[str, str] = {}
        self._changed = Signal()

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        """Note what is set in the image, for `run` to act on."""
        names = ("", str(self._config.node_id))
        if any(kind == BROKER_RESOURCE and name in names for kind, name in changes.configs):
            dynamic = image.broker_config(self._config.node_id)
            texts = {name: dynamic[name] for name in WATCHED if name in dynamic}
            if texts != self._texts:
                self._texts = texts
                self._changed.set()

    async def run(self) -> None:
        """Act on the settings when they change, until cancelled."""
        while True:
            await self._changed.wait()
            config = self._config.overlaid(self._readable())
            self._cleaner.configure(CleanerSettings.of(config))
            self._logs.producer_id_expiration_ms = config.int(PRODUCER_EXPIRATION)
            await self._fetchers.use_fetchers_per_leader(config.int(FETCHERS))

    def _readable(self) -> dict[str, str]:
        found = {}
        for name, text in self._texts.items():
            try:
                broker_keys()[name].parse(text)
            except ConfigurationError as error:
                _log.error("a setting of the cluster's metadata cannot be used: %s", error)
            else:
                found[name] = text
        return found
