"""The topics are made where they are missing, and looked at where they are not."""

import time
from dataclasses import replace

import pytest
from before.helpers import set_topic_config, topic_config
from payments.topics import WrongTopic, set_up_topics


def test_topics_are_made(bootstrap_servers, new_settings):
    made = set_up_topics(new_settings)
    assert len(made) == 4
    time.sleep(1)
    assert topic_config(bootstrap_servers, new_settings.accounts, "cleanup.policy") == "compact"
    assert topic_config(bootstrap_servers, new_settings.bookings, "cleanup.policy") == "delete"


def test_topics_that_are_there_are_left_alone(bootstrap_servers, settings):
    assert set_up_topics(settings) == []


def test_another_number_of_partitions_is_refused(bootstrap_servers, settings):
    with pytest.raises(WrongTopic, match="has 3 partitions, not 6"):
        set_up_topics(replace(settings, partitions=6))


def test_accounts_that_are_not_compacted_are_refused(bootstrap_servers, settings):
    set_topic_config(bootstrap_servers, settings.accounts, "cleanup.policy", "delete")
    with pytest.raises(WrongTopic, match=r"cleanup\.policy=delete, not compact"):
        set_up_topics(settings)
