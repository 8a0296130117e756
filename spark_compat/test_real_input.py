"""A small cut of what `make spark` does with five million records."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from pykbroker.cli.main import main
from spark_compat import real_text
from spark_compat.real_input import CommandLine, RealInput, content_of
from spark_compat.real_text import Amount, pieces_of, records_of_text, text_files
from spark_compat.session import connector_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from compat_tests.brokers import Broker


class CommandsHere(CommandLine):
    """The commands, in this process and with the Spark that runs here."""

    def call(self, arguments: Sequence[str]) -> tuple[int, str, str]:
        done = CliRunner().invoke(main, ["spark", *arguments])
        return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def process_is_left_as_it_was() -> Iterator[None]:
    """A command sets up its process: it ends as on Ctrl-C, and logs nothing."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("process_is_left_as_it_was")
@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_real_text_comes_back(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    commands = CommandsHere(broker.bootstrap, 2, connector_jars(spark))
    page = tmp_path / "page.html"
    proof = RealInput(broker, topic, Amount(20_000, 3_000_000), tmp_path, page, commands)
    sent = proof.run()
    assert content_of(spark, broker.bootstrap, proof.copy) == sent
    assert proof.copy in page.read_text()
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(proof.copy, b"one more")
    assert producer.flush(30) == 0
    assert content_of(spark, broker.bootstrap, proof.copy) != sent
    with pytest.raises(AssertionError, match="audit ended with 1"):
        commands.run("audit", "--topic", topic)


def test_pieces_are_the_file() -> None:
    some = [path for path in text_files() if path.suffix == ".py"][:50]
    assert all(b"".join(pieces_of(path)) == path.read_bytes() for path in some)


def test_files_come_again_under_other_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "some.py"
    file.write_bytes(b"a line\n" * 100)
    monkeypatch.setattr(real_text, "text_files", lambda: [file])
    pieces = list(pieces_of(file))
    records = list(records_of_text(Amount(2 * len(pieces), 1)))
    assert records == [(f"{number}{file}".encode(), piece) for number in (0, 1) for piece in pieces]
    file.write_bytes(b"")
    with pytest.raises(FileNotFoundError, match="no text in"):
        next(records_of_text(Amount(1, 1)))
