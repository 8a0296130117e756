"""The topics are made where they are missing, and looked at where they are not."""

from dataclasses import replace

import pytest
from payments.topics import WrongTopic, set_up_topics


def test_topics_are_made(kafka_broker, new_settings):
    made = set_up_topics(new_settings)
    assert len(made) == 4
    kafka_broker.wait_for(topic=new_settings.payments, partitions=3)
    assert kafka_broker.topic(new_settings.accounts).configs()["cleanup.policy"] == "compact"
    assert kafka_broker.topic(new_settings.bookings).configs()["cleanup.policy"] == "delete"


def test_topics_that_are_there_are_left_alone(kafka_broker, settings):
    assert set_up_topics(settings) == []


def test_another_number_of_partitions_is_refused(kafka_broker, settings):
    with pytest.raises(WrongTopic, match="has 3 partitions, not 6"):
        set_up_topics(replace(settings, partitions=6))


def test_accounts_that_are_not_compacted_are_refused(kafka_broker, settings):
    kafka_broker.topic(settings.accounts).alter_configs({"cleanup.policy": "delete"})
    with pytest.raises(WrongTopic, match=r"cleanup\.policy=delete, not compact"):
        set_up_topics(settings)
