"""The measured clients of one quota: who has a limit has a sensor, which those in the same scope share.

Which sensor a client has is remembered until quotas or sensors change, so that a request asks one dictionary. A long
name is kept as its digest: a client id may have 32 KiB.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from pykbroker.metric_labels import label

from .entities import ClientQuotaEntity
from .limits import QuotaLimits
from .tracked import IDLE_MS, MOST_SENSORS, Sensor, TrackedSensors

_MOST_REMEMBERED: Final = 2 * MOST_SENSORS
_LONG_NAME: Final = 256

_Name: TypeAlias = str | bytes


class LimitedSensor(Sensor, Protocol):
    """A sensor knows the limit of those whom it measures, and who they are."""

    limit: float
    told: Told


class Told:
    """The figures of a sensor for metrics, since it is there.

    labels: the user and the client id, each empty where it does not count, of bounded length (`metric_labels`). total:
    what was counted. throttles, throttled_ms: how often clients were throttled, and for how long together.
    """

    __slots__ = ("labels", "throttled_ms", "throttles", "total")

    def __init__(self) -> None:
        self.labels: tuple[str, str] = ("", "")
        self.total = 0.0
        self.throttles = 0
        self.throttled_ms = 0


SensorT = TypeVar("SensorT", bound=LimitedSensor)


class TrackedClients(Generic[SensorT]):
    """The clients of one quota. is_set: whether it limits anybody at all."""

    def __init__(self, new: Callable[[], SensorT], *, most: int = MOST_SENSORS) -> None:
        self.is_set = False
        self._limits = QuotaLimits()
        self._remembered: dict[tuple[str, str], SensorT | None] = {}
        self._sensors: TrackedSensors[tuple[_Name, _Name], SensorT] = TrackedSensors(
            new, on_removed=self._remembered.clear, most=most
        )

    def __len__(self) -> int:
        return len(self._sensors)

    def set_limit(self, entity: ClientQuotaEntity, limit: float | None) -> None:
        """Set or take away the limit of an entity. What was measured so far counts against the new one."""
        self._limits.set(entity, limit)
        self.is_set = len(self._limits) > 0
        self._remembered.clear()
        if not self.is_set:
            self._sensors.clear()

    def told(self, now_ms: int) -> list[Told]:
        """Return what is told of each sensor that was used lately."""
        return [each.told for each in self._sensors.all() if now_ms - each.used_ms < IDLE_MS]

    def look(self, user: str, client_id: str) -> SensorT | None:
        """Return the sensor that measures the client, without making one or counting as its use."""
        found = self._limits.find(user, client_id)
        if found is None:
            return None
        user, client_id = found.scope
        return self._sensors.look((_short(user), _short(client_id)))

    def sensor(self, user: str, client_id: str, now_ms: int) -> SensorT | None:
        """The sensor that measures the client; None where nothing limits it."""
        try:
            sensor = self._remembered[user, client_id]
        except KeyError:
            return self._find(user, client_id, now_ms)
        if sensor is not None:
            sensor.used_ms = now_ms
        return sensor

    def _find(self, user: str, client_id: str, now_ms: int) -> SensorT | None:
        found = self._limits.find(user, client_id)
        sensor = None
        if found is not None:
            scope_user, scope_client_id = found.scope
            sensor = self._sensors.get((_short(scope_user), _short(scope_client_id)), now_ms)
            sensor.limit = found.limit
            if not any(sensor.told.labels):
                sensor.told.labels = label(scope_user), label(scope_client_id)
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        if len(user) + len(client_id) <= _LONG_NAME:
            self._remembered[user, client_id] = sensor
        return sensor


def _short(name: str) -> _Name:
    return name if len(name) <= _LONG_NAME else hashlib.sha256(name.encode()).digest()
