"""Kafka for the tests: a container."""

import asyncio
import os
import uuid
from contextlib import AsyncExitStack
from decimal import Decimal

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from faststream.kafka import KafkaBroker
from orders.catalogue import CatalogueDown, FixedCatalogue
from orders.ledger import Ledger
from orders.pipeline import make_broker
from orders.settings import Settings
from testcontainers.community.kafka import KafkaContainer


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="session")
def bootstrap_servers():
    """A container, or the service container of the CI."""
    if "KAFKA_BOOTSTRAP_SERVERS" in os.environ:
        yield os.environ["KAFKA_BOOTSTRAP_SERVERS"]
    else:
        with KafkaContainer("confluentinc/cp-kafka:7.6.0").with_kraft() as kafka:
            yield kafka.get_bootstrap_server()


@pytest.fixture
async def settings(bootstrap_servers):
    settings = Settings(
        bootstrap_servers,
        prefix=f"test-{uuid.uuid4().hex[:8]}.",
        max_attempts=3,
        retry_delay_s=0.05,
        session_timeout_ms=6000,  # the least that Kafka takes
        heartbeat_interval_ms=200,
    )
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 3, 1) for topic in settings.topics])
    finally:
        await admin.close()
    await asyncio.sleep(1)  # until every client finds them
    return settings


class UnsteadyCatalogue(FixedCatalogue):
    """A catalogue that a test takes away, for a number of questions."""

    failures = 0

    async def price(self, article):
        if self.failures:
            self.failures -= 1
            raise CatalogueDown("no answer")
        return await super().price(article)


@pytest.fixture
def catalogue():
    return UnsteadyCatalogue({"book": Decimal("12.50"), "pen": Decimal("1.20")})


@pytest.fixture
def ledger():
    ledger = Ledger()
    yield ledger
    ledger.close()


@pytest.fixture
async def shop(settings):
    """Whoever sends orders."""
    async with KafkaBroker(settings.bootstrap_servers, allow_auto_create_topics=False) as shop:
        yield shop


@pytest.fixture
async def start(settings, catalogue, ledger):
    """A function that starts an instance of the pipeline, which a test may stop."""
    async with AsyncExitStack() as stack:

        async def start():
            broker = make_broker(settings, catalogue, ledger)
            await broker.start()
            stack.push_async_callback(broker.stop)
            return broker

        yield start
