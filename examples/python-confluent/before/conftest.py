"""Kafka for the tests: a container."""

import os
import threading
import time
import uuid

import pytest
from payments.gateway import Gateway
from payments.service import Service
from payments.settings import Settings
from payments.topics import set_up_topics
from testcontainers.community.kafka import KafkaContainer


@pytest.fixture(scope="session")
def bootstrap_servers():
    """A container, or the service container of the CI."""
    if "KAFKA_BOOTSTRAP_SERVERS" in os.environ:
        yield os.environ["KAFKA_BOOTSTRAP_SERVERS"]
    else:
        container = KafkaContainer("confluentinc/cp-kafka:7.6.0").with_kraft()
        container.with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
        container.with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
        with container as kafka:
            yield kafka.get_bootstrap_server()


@pytest.fixture
def new_settings(bootstrap_servers):
    """Settings without their topics."""
    return Settings(
        bootstrap_servers,
        prefix=f"test-{uuid.uuid4().hex[:8]}.",
        session_timeout_ms=6000,  # the least that Kafka takes
        heartbeat_interval_ms=200,
    )


@pytest.fixture
def settings(new_settings):
    set_up_topics(new_settings)
    time.sleep(1)  # until every client finds them
    return new_settings


@pytest.fixture
def gateway(settings):
    return Gateway(settings)


class Running:
    """An instance of the service in a thread."""

    def __init__(self, service):
        self.service = service
        self.error = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        try:
            self.service.run(self._stop)
        except Exception as error:
            self.error = error

    def stop(self):
        self._stop.set()
        self.join()

    def join(self):
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def start(settings):
    """A function that starts an instance of the service, which a test may stop."""
    instances = []

    def start(instance="0", **options):
        instances.append(Running(Service(settings, instance, **options)))
        return instances[-1]

    yield start
    for instance in instances:
        instance.stop()
