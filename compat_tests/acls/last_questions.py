"""Questions after which there are more topics than before."""

from __future__ import annotations

from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

from .scene import Catalogue, Scene

catalogue = Catalogue()
asks = catalogue.asks


@asks("metadata that creates topics", 4, 13)
def metadata_that_creates(scene: Scene) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=scene.auto)], allow_auto_topic_creation=True)
