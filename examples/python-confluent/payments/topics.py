"""The topics of the service: made where they are missing, refused where they are not what they have to be."""

from __future__ import annotations

import time
from concurrent.futures import Future

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from .settings import Settings

TIMEOUT_S = 30


class WrongTopic(Exception):
    """A topic is there, and is not what the service needs."""


def set_up_topics(settings: Settings) -> list[str]:
    """Make the topics that are missing, and return their names. Raises WrongTopic."""
    admin = AdminClient({"bootstrap.servers": settings.bootstrap_servers})
    made = [name for name, future in admin.create_topics(_topics(settings)).items() if _is_made(future)]
    _ensure_as_they_should_be(admin, settings)
    return made


def _topics(settings: Settings) -> list[NewTopic]:
    configs = {settings.accounts: {"cleanup.policy": "compact"}}
    names = (settings.payments, settings.bookings, settings.accounts, settings.dead_letters)
    return [
        NewTopic(name, settings.partitions, settings.replication_factor, config=configs.get(name, {})) for name in names
    ]


def _is_made(future: Future[None]) -> bool:
    try:
        future.result(TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def _ensure_as_they_should_be(admin: AdminClient, settings: Settings) -> None:
    """Payments and accounts have the same partitions: whoever has a payment has the account."""
    for name in (settings.payments, settings.accounts):
        partitions = _partitions_of(admin, name)
        if partitions != settings.partitions:
            raise WrongTopic(f"{name} has {partitions} partitions, not {settings.partitions}")
    resource = ConfigResource(ResourceType.TOPIC, settings.accounts)
    policy = admin.describe_configs([resource])[resource].result(TIMEOUT_S)["cleanup.policy"].value
    if policy != "compact":
        raise WrongTopic(f"{settings.accounts} has cleanup.policy={policy}, not compact")


def _partitions_of(admin: AdminClient, topic: str) -> int:
    """Ask until the broker knows the topic: it need not yet, when it has just been made."""
    deadline = time.monotonic() + TIMEOUT_S
    while topic not in (topics := admin.list_topics(timeout=TIMEOUT_S).topics):
        if time.monotonic() > deadline:
            raise WrongTopic(f"{topic} is made, and not there after {TIMEOUT_S} s")
        time.sleep(0.05)
    return len(topics[topic].partitions)
