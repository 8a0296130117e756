"""Producers with acks=all, idempotent and plain: each record is acknowledged or of unknown fate."""

from __future__ import annotations

import random
import threading
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaException, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError as PythonKafkaError

from tests.history.recorder import Recording

from .stage import PLAIN, TOPICS, Stage, encode, pause

DELIVERY_TIMEOUT_S = 20
MOST_RECORDS = 5
MOST_RECORDS_OF_MANY = 400
_LIKELINESS_OF_MANY = 0.01
LONGEST_PAUSE_S = 0.1


def records_of_one_turn(rng: random.Random) -> int:
    """Return how many records a producer sends before it waits for the answers: mostly few, now and then hundreds."""
    return rng.randint(1, MOST_RECORDS_OF_MANY if rng.random() < _LIKELINESS_OF_MANY else MOST_RECORDS)


def produce_with_confluent(stage: Stage, rng: random.Random) -> None:
    while stage.writing.is_set():
        producer = Producer(
            stage.config(enable_idempotence=True, linger_ms=0, message_timeout_ms=DELIVERY_TIMEOUT_S * 1000)
        )
        proc = stage.recorder.new_process()
        is_certain = True
        while is_certain and stage.writing.is_set():
            is_certain = _send_some(stage, producer, proc, rng)
            pause(rng, LONGEST_PAUSE_S)
        producer.purge()
        producer.flush(1)


def _send_some(stage: Stage, producer: Producer, proc: int, rng: random.Random) -> bool:
    """False where it is not known of all what became of them: then another producer takes over."""
    partition, count = rng.randrange(TOPICS[PLAIN]), records_of_one_turn(rng)
    recording = stage.recorder.invoke(proc, "send")
    deliveries: list[Any] = []
    for _ in range(count):
        value = stage.new_value()
        number = recording.sending(f"{PLAIN}-{partition}", value)
        try:
            producer.produce(
                PLAIN, encode(value), partition=partition, on_delivery=_report(recording, number, deliveries)
            )
        except KafkaException as fatal:  # it will never send again
            recording.info()
            stage.progress.note_end(fatal)
            return False
    producer.flush(DELIVERY_TIMEOUT_S * 2)
    is_certain = len(deliveries) == count and all(each is None for each in deliveries)
    recording.ended("ok" if is_certain else "info")
    if is_certain:
        stage.progress.note()
    else:
        stage.progress.note_end(next((each for each in deliveries if each is not None), "no answer"))
    return is_certain


def _report(recording: Recording, number: int, deliveries: list[Any]) -> Any:
    def note(error: Any, message: Any) -> None:
        if error is None and not recording.is_ended:
            recording.sent(number, message.offset())
        deliveries.append(error)

    return note


def produce_with_kafka_python(stage: Stage, rng: random.Random) -> None:
    _produce_with_kafka_python(stage, rng, enable_idempotence=True)


def produce_plainly(stage: Stage, rng: random.Random) -> None:
    """Without producer ids, and so without a second try, which could write a record twice."""
    _produce_with_kafka_python(stage, rng, enable_idempotence=False, retries=0)


def _produce_with_kafka_python(stage: Stage, rng: random.Random, **config: Any) -> None:
    while stage.writing.is_set():
        try:
            producer = KafkaProducer(
                bootstrap_servers=stage.bootstrap,
                client_id=threading.current_thread().name,  # and so has the thread that sends for it
                acks="all",
                delivery_timeout_ms=DELIVERY_TIMEOUT_S * 1000,
                request_timeout_ms=5_000,
                max_block_ms=5_000,
                reconnect_backoff_max_ms=500,
                **config,
            )
        except PythonKafkaError as error:  # it waits for the one node that it has chosen, whatever is wrong with that
            stage.progress.note_end(error)
            pause(rng, 1.0)
            continue
        proc = stage.recorder.new_process()
        is_certain = True
        while is_certain and stage.writing.is_set():
            is_certain = _send_some_with_kafka_python(stage, producer, proc, rng)
            pause(rng, LONGEST_PAUSE_S)
        with suppress(PythonKafkaError):  # `close` flushes first; what it still has ends at the delivery timeout
            producer.close(timeout=DELIVERY_TIMEOUT_S)


def _send_some_with_kafka_python(stage: Stage, producer: KafkaProducer, proc: int, rng: random.Random) -> bool:
    partition = rng.randrange(TOPICS[PLAIN])
    recording = stage.recorder.invoke(proc, "send")
    numbers = []
    try:
        sent = []
        for _ in range(records_of_one_turn(rng)):
            value = stage.new_value()
            numbers.append(recording.sending(f"{PLAIN}-{partition}", value))
            sent.append(producer.send(PLAIN, encode(value), partition=partition))
        for number, future in zip(numbers, sent, strict=True):
            recording.sent(number, future.get(DELIVERY_TIMEOUT_S * 2).offset)
    except PythonKafkaError as error:
        recording.info()
        stage.progress.note_end(error)
        return False
    recording.ok()
    stage.progress.note()
    return True
