"""The state that the controller's rules share: the image with uncommitted records, and who is in session."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Final

from pykbroker.config import BrokerConfig
from pykbroker.long_work import LongWork, whole
from pykbroker.protocol.messages.metadata_records import RegisterBrokerRecord
from pykbroker.protocol.schema import Message
from pykbroker.protocol.uuids import UNASSIGNED_DIRECTORY
from pykbroker.security.tokens.secret import token_secret

from .features import ELR_VERSION, feature_level
from .image import MetadataImage
from .known_acls import KnownAcls
from .known_tokens import KnownTokens
from .partition_index import PartitionIndex
from .sessions import Sessions

_STEPS_PER_RECORD: Final = 8


@dataclass(slots=True)
class ControllerState:
    """The shared state of the controller's rules.

    next_offset: where the next record will be written.
    registered_at: the offset of each broker's registration, which may lie behind its epoch.
    active: whether this node leads the quorum. kraft_version: its level, of which raft decides.
    """

    config: BrokerConfig
    node_id: int
    cluster_id: str
    rng: random.Random
    image: MetadataImage = field(default_factory=MetadataImage)
    next_offset: int = 0
    registered_at: dict[int, int] = field(default_factory=dict)
    active: bool = False
    kraft_version: int = 0
    sessions: Sessions = field(init=False)
    _index: PartitionIndex | None = None
    _known_acls: KnownAcls | None = None
    _known_tokens: KnownTokens | None = None

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.node_id, self.config.int("broker.session.timeout.ms"))

    def dynamic_broker_config(self) -> dict[str, str]:
        return self.image.broker_config(self.node_id)

    def topic_defaults(self) -> dict[str, str]:
        return self.config.topic_defaults(self.dynamic_broker_config())

    @property
    def elr_enabled(self) -> bool:
        """Tell whether eligible leader replicas are kept (KIP-966)."""
        return feature_level(self.image, ELR_VERSION) > 0

    @property
    def partitions(self) -> PartitionIndex:
        """Made when it is asked for first: a node that only follows has no use for it."""
        if self._index is None:
            self._index = whole(PartitionIndex.of(self.image))
        return self._index

    @property
    def known_acls(self) -> KnownAcls:
        """Made when it is asked for first, as `partitions`."""
        if self._known_acls is None:
            self._known_acls = whole(KnownAcls.of(self.image))
        return self._known_acls

    @property
    def known_tokens(self) -> KnownTokens:
        """Made when it is asked for first, as `partitions`."""
        if self._known_tokens is None:
            self._known_tokens = whole(KnownTokens.of(self.image, token_secret(self.config)))
        return self._known_tokens

    def index(self) -> LongWork[None]:
        """Make it beforehand: who becomes active will need it."""
        if self._index is None:
            self._index = yield from PartitionIndex.of(self.image)
        if self._known_acls is None:
            self._known_acls = yield from KnownAcls.of(self.image)
        if self._known_tokens is None:
            self._known_tokens = yield from KnownTokens.of(self.image, token_secret(self.config))

    def adopt(self, image: MetadataImage) -> None:
        """Begin anew with another image."""
        self.image = image
        self.next_offset = image.offset + 1
        self._index = None
        self._known_acls = None
        self._known_tokens = None

    def replay(self, record: Message, offset: int) -> LongWork[None]:
        changes = self.image.replay(record, offset)
        self.next_offset = offset + 1
        if isinstance(record, RegisterBrokerRecord):
            self.registered_at[record.broker_id] = offset
        if self._index is not None:
            yield from self._index.follow(self.image, changes)
        if self._known_acls is not None:
            self._known_acls.follow(self.image, changes)
        if self._known_tokens is not None:
            self._known_tokens.follow(self.image, changes)
        yield _STEPS_PER_RECORD

    def default_directory(self, broker_id: int) -> bytes:
        broker = self.image.brokers.get(broker_id)
        return UNASSIGNED_DIRECTORY if broker is None else broker.default_directory

    def active_brokers(self) -> list[int]:
        return [broker_id for broker_id in self.image.brokers if self.is_active(broker_id)]

    def is_active(self, broker_id: int) -> bool:
        """Alive and not about to go."""
        broker = self.image.brokers.get(broker_id)
        return broker is not None and not broker.fenced and not broker.in_controlled_shutdown
