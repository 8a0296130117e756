"""Sensors of those who are measured, in bounded memory: client ids and addresses are the clients' choice.

A sensor goes when it was idle for an hour, as in Kafka, and the longest idle ones go when there are too many. The rate
of a sensor that was idle for all its windows is that of a new one, so a client gains by that only if there are others,
ten thousand of them within some seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

MOST_SENSORS: Final = 10_000
IDLE_MS: Final = 3_600_000
_SWEEP_EVERY_MS: Final = 60_000


class Sensor(Protocol):
    """A sensor measures somebody. used_ms: when it was asked for last."""

    used_ms: int


KeyT = TypeVar("KeyT", bound=Hashable)
SensorT = TypeVar("SensorT", bound=Sensor)


class TrackedSensors(Generic[KeyT, SensorT]):
    """Sensors by what they measure. on_removed: is called when some of them have gone."""

    def __init__(
        self, new: Callable[[], SensorT], *, on_removed: Callable[[], None] = lambda: None, most: int = MOST_SENSORS
    ) -> None:
        self._new = new
        self._on_removed = on_removed
        self._most = most
        self._sensors: dict[KeyT, SensorT] = {}
        self._swept_ms: int | None = None

    def __len__(self) -> int:
        return len(self._sensors)

    def get(self, key: KeyT, now_ms: int) -> SensorT:
        """The sensor of `key`, a new one where there is none."""
        sensor = self._sensors.get(key)
        if sensor is None:
            self._make_room(now_ms)
            sensor = self._sensors[key] = self._new()
        sensor.used_ms = now_ms
        return sensor

    def look(self, key: KeyT) -> SensorT | None:
        return self._sensors.get(key)

    def all(self) -> list[SensorT]:
        return list(self._sensors.values())

    def clear(self) -> None:
        self._sensors.clear()

    def _make_room(self, now_ms: int) -> None:
        before = len(self._sensors)
        if self._swept_ms is None or now_ms - self._swept_ms >= _SWEEP_EVERY_MS:
            self._swept_ms = now_ms
            self._sensors = {key: each for key, each in self._sensors.items() if now_ms - each.used_ms < IDLE_MS}
        if len(self._sensors) >= self._most:  # a tenth at once, so that a flood of new ones does not sort each time
            latest = sorted(self._sensors.items(), key=lambda item: item[1].used_ms)[max(self._most // 10, 1) :]
            self._sensors = dict(latest)
        if len(self._sensors) < before:
            self._on_removed()
