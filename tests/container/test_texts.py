"""The text of a variable as the value of a property."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pykbroker.config import ConfigurationError
from pykbroker.container.texts import MOST_BYTES, file_text, value_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" a ", "a "),
        ("", ""),
        ("a\n", "a"),
        (r"a\\b", r"a\b"),
        (r"one\ntwo", "one\ntwo"),
        ("a,\\\n  b", "a,b"),
        ("\n", ""),
    ],
)
def test_a_text_is_read_as_a_line_of_the_properties_file(text: str, value: str) -> None:
    assert value_of("KAFKA_LISTENERS", "listeners", text) == value


@pytest.mark.parametrize("text", ["a\nnode.id=2", "a\rb", "a\\\\\nb"])
def test_a_line_break_makes_no_second_property(text: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^KAFKA_LISTENERS has a line break in its value; listeners is one line$"
    ):
        value_of("KAFKA_LISTENERS", "listeners", text)


def test_certificates_and_jaas_lines_may_have_several_lines() -> None:
    for key in ("ssl.keystore.certificate.chain", "listener.name.a.plain.sasl.jaas.config"):
        assert value_of("KAFKA_X", key, "one\ntwo\n") == "one\ntwo"


def test_a_wrong_escape_is_told_with_the_variable() -> None:
    with pytest.raises(ConfigurationError, match=r"^KAFKA_BROKER_RACK: "):
        value_of("KAFKA_BROKER_RACK", "broker.rack", r"\uZZZZ")
    with pytest.raises(ConfigurationError, match="zero byte"):
        value_of("KAFKA_BROKER_RACK", "broker.rack", "a\0b")


def test_a_file_has_a_text_without_its_last_line_end(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text(" secret \n")
    assert file_text("X_FILE", path) == " secret "


def test_a_file_that_cannot_be_a_secret_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^X_FILE: .*/none cannot be read: No such file or directory$"):
        file_text("X_FILE", tmp_path / "none")
    with pytest.raises(ConfigurationError, match="Is a directory"):
        file_text("X_FILE", tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="is no text in UTF-8"):
        file_text("X_FILE", tmp_path / "bytes")
    with pytest.raises(ConfigurationError, match=f"has more than {MOST_BYTES} bytes"):
        file_text("X_FILE", Path("/dev/zero"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="pipe is a pipe"):
        file_text("X_FILE", tmp_path / "pipe")
