"""Kafka for the tests: pykbroker, inside this process."""

import threading
import uuid

import pytest
from payments.gateway import Gateway
from payments.service import Service
from payments.settings import Settings
from payments.topics import set_up_topics


@pytest.fixture
def new_settings(kafka_broker):
    """Settings without their topics."""
    return Settings(
        kafka_broker.bootstrap_servers,
        prefix=f"test-{uuid.uuid4().hex[:8]}.",
        session_timeout_ms=1000,
        heartbeat_interval_ms=200,
    )


@pytest.fixture
def settings(new_settings):
    set_up_topics(new_settings)
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
