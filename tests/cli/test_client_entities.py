"""Values of quotas and passwords in flags: how they are read, and how they are shown."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.cli.command import CommandFailed
from pykbroker.cli.java_double import java_double
from pykbroker.cli.main import main
from pykbroker.cli.scram_password import ScramPassword, parse_scram_password, with_password

SHA = "SCRAM-SHA-256"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (1024.0, "1024.0"),
        (50.5, "50.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (10_000_000.0, "1.0E7"),
        (20_480_000.0, "2.048E7"),
        (-12_345_678.9, "-1.23456789E7"),
        (2.0**63, "9.223372036854776E18"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_is_written_is_the_number(value: float) -> None:
    assert float(java_double(value)) == value


@pytest.mark.parametrize(
    ("value", "password"),
    [
        ("password=p", ScramPassword("p", 4096)),
        ("iterations=8192,password=p,q=r", ScramPassword("p,q=r", 8192)),
        ("password=iterations=1,password=2", ScramPassword("iterations=1,password=2", 4096)),
    ],
)
def test_a_password_is_the_rest_of_its_value(value: str, password: ScramPassword) -> None:
    assert parse_scram_password(SHA, value) == password
    assert password.text not in repr(password)


@pytest.mark.parametrize(
    "value", ["", "hunter2", "password=", "iterations=4096", "iterations=99999,password=hunter2", "salt=x,password=p"]
)
def test_a_value_without_a_password_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(CommandFailed) as refused:
        parse_scram_password(SHA, value)
    assert "hunter2" not in refused.value.message


def test_a_password_from_elsewhere_does_not_replace_one_that_is_given() -> None:
    assert with_password("", "p") == "password=p"
    assert with_password("iterations=8192", "p,q") == "iterations=8192,password=p,q"
    assert with_password("password=own", "p") == "password=own"


@pytest.mark.parametrize("text", ["", "\n", "two\nlines\n", "x" * 1001])
def test_a_file_that_is_no_password_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "password"
    file.write_text(text)
    arguments = ["--bootstrap-server", "127.0.0.1:1", "--alter", "--user", "a", "--add-config", f"{SHA}=[]"]
    for given_by in (["--password-file", str(file)], ["--password-file", "-"]):
        refused = CliRunner().invoke(main, ["users", *arguments, *given_by], input=text)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert refused.stderr == "Error: The password must be one line of 1 to 1000 characters\n"
