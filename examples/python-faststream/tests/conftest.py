"""Kafka for the tests: pykbroker, inside this process."""

import uuid
from contextlib import AsyncExitStack
from decimal import Decimal

import pytest
from faststream.kafka import KafkaBroker
from orders.catalogue import CatalogueDown, FixedCatalogue
from orders.ledger import Ledger
from orders.pipeline import make_broker
from orders.settings import Settings


@pytest.fixture(scope="session")
def anyio_backend():
    return "asyncio"


@pytest.fixture
def kafka(kafka_broker):
    return kafka_broker.aio


@pytest.fixture
async def settings(kafka):
    settings = Settings(
        kafka.bootstrap_servers,
        prefix=f"test-{uuid.uuid4().hex[:8]}.",
        max_attempts=3,
        retry_delay_s=0.05,
        session_timeout_ms=1000,
        heartbeat_interval_ms=200,
    )
    for topic in settings.topics:
        await kafka.create_topic(topic, partitions=3)
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
