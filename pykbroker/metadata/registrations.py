"""The nodes of a cluster as the metadata log knows them: `BrokerRegistration` and `ControllerRegistration` of Kafka."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pykbroker.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControllerEndpoint,
    ControllerFeature,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from pykbroker.protocol.uuids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY


@dataclass(frozen=True, slots=True)
class Endpoint:
    """security_protocol is Kafka's number: 0 is PLAINTEXT."""

    name: str
    host: str
    port: int
    security_protocol: int = 0


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """The registration of a broker.

    epoch: the offset of the record that registered this incarnation.
    features: name -> least and greatest level. cordoned_log_dirs: None until the broker has told.
    """

    id: int
    epoch: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[bytes, ...] = ()
    cordoned_log_dirs: tuple[bytes, ...] | None = None

    def endpoint(self, listener_name: str) -> Endpoint | None:
        return next((each for each in self.endpoints if each.name == listener_name), None)

    def has_online(self, directory: bytes) -> bool:
        """Tell whether a replica that lies there can be read; nobody knows of one that has no directory yet."""
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        return directory != LOST_DIRECTORY and (not self.directories or directory in self.directories)

    @property
    def takes_replicas(self) -> bool:
        """Tell whether a directory of it is not cordoned (KIP-1066)."""
        cordoned = self.cordoned_log_dirs or ()
        return not self.directories or any(each not in cordoned for each in self.directories)

    @property
    def default_directory(self) -> bytes:
        """Return the directory of a new replica.

        Of several directories the broker chooses itself, and tells (KIP-858).
        """
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY

    @staticmethod
    def from_record(record: RegisterBrokerRecord) -> BrokerRegistration:
        return BrokerRegistration(
            id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=bytes(record.incarnation_id),
            endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            features={f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
            rack=record.rack,
            fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=_uuids(record.log_dirs),
            cordoned_log_dirs=None if record.cordoned_log_dirs is None else _uuids(record.cordoned_log_dirs),
        )

    def to_record(self) -> RegisterBrokerRecord:
        return RegisterBrokerRecord(
            broker_id=self.id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[
                BrokerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in self.endpoints
            ],
            features=[
                BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in self.features.items()
            ],
            rack=self.rack,
            fenced=self.fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories),
            cordoned_log_dirs=None if self.cordoned_log_dirs is None else list(self.cordoned_log_dirs),
        )

    def changed_by(self, record: BrokerRegistrationChangeRecord) -> BrokerRegistration:
        """`fenced` is 1 for fenced, -1 for unfenced, 0 for no change."""
        changed = self
        if record.fenced:
            changed = replace(changed, fenced=record.fenced > 0)
        if record.in_controlled_shutdown:
            changed = replace(changed, in_controlled_shutdown=record.in_controlled_shutdown > 0)
        if record.log_dirs:
            changed = replace(changed, directories=_uuids(record.log_dirs))
        if record.cordoned_log_dirs is not None:
            changed = replace(changed, cordoned_log_dirs=_uuids(record.cordoned_log_dirs))
        return changed


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    id: int
    incarnation_id: bytes
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @staticmethod
    def from_record(record: RegisterControllerRecord) -> ControllerRegistration:
        return ControllerRegistration(
            id=record.controller_id,
            incarnation_id=bytes(record.incarnation_id),
            endpoints=tuple(Endpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points),
            features={f.name: (f.min_supported_version, f.max_supported_version) for f in record.features},
        )

    def to_record(self) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self.id,
            incarnation_id=self.incarnation_id,
            end_points=[
                ControllerEndpoint(name=e.name, host=e.host, port=e.port, security_protocol=e.security_protocol)
                for e in self.endpoints
            ],
            features=[
                ControllerFeature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in self.features.items()
            ],
        )


def _uuids(values: list[bytes]) -> tuple[bytes, ...]:
    return tuple(bytes(value) for value in values)
