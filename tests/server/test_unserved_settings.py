"""A cluster whose metadata protects, as Apache Kafka would understand it, is told of once."""

from __future__ import annotations

import logging

import pytest

from pykbroker.metadata.image import BROKER_RESOURCE, ImageChanges, MetadataImage
from pykbroker.protocol.messages.metadata_records import AccessControlEntryRecord, ConfigRecord
from pykbroker.protocol.schema import Message
from pykbroker.server.node.unserved_settings import UnservedSettings

NODE_ID = 1


class World:
    def __init__(self, *, has_authorizer: bool = False) -> None:
        self.image = MetadataImage()
        self.settings = UnservedSettings(NODE_ID, has_authorizer=has_authorizer)

    def replay(self, *records: Message) -> None:
        changes = ImageChanges()
        for offset, record in enumerate(records):
            changes.merge(self.image.replay(record, offset))
        self.settings.apply(self.image, changes)


def setting(broker: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=BROKER_RESOURCE, resource_name=broker, name=name, value=value)


def test_what_kafka_left_in_the_metadata_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    world = World()
    world.replay(AccessControlEntryRecord(), setting("1", "listener.name.a.sasl.login.class", "Login"))
    world.replay(setting("1", "log.retention.ms", "9"))
    world.replay()
    assert len(caplog.records) == 1
    assert "listener.name.a.sasl.login.class" in caplog.text
    assert "ACLs" in caplog.text


def test_acls_keep_somebody_out_where_there_is_an_authorizer(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    World(has_authorizer=True).replay(AccessControlEntryRecord())
    assert not caplog.records


def test_what_is_set_later_is_said_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    world = World()
    world.replay(setting("2", "client.quota.callback.class", "Q"))
    assert not caplog.records, "that is another broker's"
    world.replay(setting("", "client.quota.callback.class", "Q"))
    assert "client.quota.callback.class" in caplog.text


def test_what_protects_nothing_is_not_worth_a_word(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.replay(setting("1", "log.retention.ms", "5"), setting("1", "ssl.client.auth", "none"))
    assert not caplog.records


def test_what_is_set_at_run_time_and_has_no_effect_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    world = World()
    world.replay(setting("", "num.network.threads", "6"), setting("1", "num.io.threads", "9"))
    world.replay(setting("1", "log.retention.ms", "5"))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "num.io.threads, num.network.threads" in caplog.text
