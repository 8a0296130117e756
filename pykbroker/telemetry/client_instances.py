"""The clients that ask for subscriptions or push, by their client instance ids: Kafka's `ClientMetricsInstance`.

What is kept of one is bounded, and so is how many there are: whoever was heard of least recently goes first. One whose
connection ends goes at once, one that is not heard of for three intervals then.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from pykbroker.config.client_metrics_keys import (
    CLIENT_ID,
    CLIENT_INSTANCE_ID,
    CLIENT_SOFTWARE_NAME,
    CLIENT_SOFTWARE_VERSION,
    CLIENT_SOURCE_ADDRESS,
    CLIENT_SOURCE_PORT,
)
from pykbroker.long_work import portions
from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.uuids import uuid_to_text

from .subscriptions import Subscribed, subscription_id

MOST_INSTANCES: Final = 16_384
LEAST_LIFE_MS: Final = 60_000
_INTERVALS_OF_LIFE: Final = 3
_NEVER_MS: Final = -(1 << 62)
_LONGEST: Final = 256


@dataclass(frozen=True, slots=True)
class Client:
    """The client at the other end, as its requests and its connection say."""

    client_id: str
    software_name: str
    software_version: str
    address: str
    port: int | None

    def cut(self) -> Client:
        """Return the client with names of bounded length."""
        client_id = self.client_id[:_LONGEST]
        return Client(
            client_id, self.software_name[:_LONGEST], self.software_version[:_LONGEST], self.address, self.port
        )

    def matched_by(self, instance_id: bytes) -> dict[str, str | None]:
        """The values by the names of `match`."""
        return {
            CLIENT_INSTANCE_ID: uuid_to_text(instance_id),
            CLIENT_ID: self.client_id,
            CLIENT_SOFTWARE_NAME: self.software_name,
            CLIENT_SOFTWARE_VERSION: self.software_version,
            CLIENT_SOURCE_ADDRESS: self.address,
            CLIENT_SOURCE_PORT: None if self.port is None else str(self.port),
        }


@dataclass(slots=True)
class ClientInstance:
    """One client. version: of the subscriptions as of which it was asked."""

    instance_id: bytes
    client: Client
    subscribed: Subscribed
    version: int
    expires_ms: int = 0
    last_get_ms: int = _NEVER_MS
    last_push_ms: int = _NEVER_MS
    terminating: bool = False
    last_error: ErrorCode = ErrorCode.NONE

    @property
    def subscription_id(self) -> int:
        return subscription_id(self.subscribed, self.instance_id)

    @property
    def life_ms(self) -> int:
        return max(LEAST_LIFE_MS, _INTERVALS_OF_LIFE * self.subscribed.interval_ms)

    def may_get(self, now_ms: int) -> bool:
        """Tell whether an interval has passed since its last request, and note this one then."""
        if now_ms - max(self.last_get_ms, self.last_push_ms) < self.subscribed.interval_ms:
            return False
        self.last_get_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Tell whether an interval has passed since its last push, and note this one then.

        The first push behind new subscriptions may come at any time: clients wait for a random part of the interval.
        """
        is_first = self.last_get_ms > self.last_push_ms
        if not is_first and now_ms - self.last_push_ms < self.subscribed.interval_ms:
            return False
        self.last_push_ms = now_ms
        return True


class ClientInstances:
    """The instances that a broker knows."""

    def __init__(self, most: int = MOST_INSTANCES) -> None:
        self._most = most
        self._instances: OrderedDict[bytes, ClientInstance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._instances)

    def get(self, instance_id: bytes) -> ClientInstance | None:
        """Return an instance, which has been heard of now."""
        found = self._instances.get(instance_id)
        if found is not None:
            self._instances.move_to_end(instance_id)
        return found

    def put(self, instance: ClientInstance) -> None:
        self._instances[instance.instance_id] = instance
        self._instances.move_to_end(instance.instance_id)
        if len(self._instances) > self._most:
            self._instances.popitem(last=False)

    def remove(self, instance_id: bytes) -> None:
        self._instances.pop(instance_id, None)

    def expire(self, now_ms: int) -> Iterator[int]:
        """Forget who was not heard of for too long; each step says how many were looked at."""
        for portion in portions(list(self._instances.items())):
            for instance_id, instance in portion:
                if instance.expires_ms <= now_ms and self._instances.get(instance_id) is instance:
                    del self._instances[instance_id]
            yield len(portion)
