"""Settings of the cluster that protect in Kafka and not here, or have no effect: they are said when there are others.

A node refuses such settings in its own file. These are in the metadata, where Kafka or its controller put them: keys of
brokers that were set at run time, quotas that nobody looks at, and ACLs where there is no authorizer.
"""

from __future__ import annotations

import logging

from pykbroker.config import given_without_effect, unserved
from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage

_log = logging.getLogger(__name__)


class UnservedSettings:
    """A listener of the image. has_authorizer: this node looks at ACLs."""

    def __init__(self, node_id: int, *, has_authorizer: bool = False) -> None:
        self._node_id = node_id
        self._has_authorizer = has_authorizer
        self._said: list[str] | None = None
        self._said_without_effect: list[str] = []

    def apply(self, image: MetadataImage, changes: ImageChanges) -> None:
        if self._said is not None and all(kind != BROKER_RESOURCE for kind, _ in changes.configs):
            return
        settings = image.broker_config(self._node_id)
        without_effect = given_without_effect(settings)
        if without_effect and without_effect != self._said_without_effect:
            _log.warning("these settings of the cluster have no effect in pykbroker: %s", ", ".join(without_effect))
        self._said_without_effect = without_effect
        found = unserved(settings, at_run_time=True)
        if image.acls and not self._has_authorizer:
            found.append("ACLs")
        if found and found != self._said:
            _log.error(
                "the cluster's metadata has %s, which pykbroker does not serve: nobody is kept out by them", found
            )
        self._said = found
