"""Client properties that protect: a misspelled one ends the command, and one without effect is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Outcome

Call = Callable[..., Outcome]


@pytest.fixture
def list_with(call: Call, tmp_path: Path) -> Callable[[str], Outcome]:
    def run(content: str) -> Outcome:
        file = tmp_path / "client.properties"
        file.write_text(content)
        return call(f"topics --list --command-config {file}")

    return run


@pytest.mark.parametrize(
    ("key", "advice"),
    [
        ("security.protocoll", "; did you mean security.protocol?"),
        ("ssl.truststore.lokation", "; did you mean ssl.truststore.location?"),
        ("sasl.username", ": write sasl.jaas.config"),
        ("ssl.ca.location", ": write ssl.truststore.location, with ssl.truststore.type=PEM"),
        ("sasl.mechanisms", ": write sasl.mechanism"),
        ("ssl.zzz", ""),
    ],
)
def test_a_key_that_would_protect_nothing_ends_the_command(
    list_with: Callable[[str], Outcome], key: str, advice: str
) -> None:
    done = list_with(f"client.id=me\n{key}=SSL\n")
    assert done == Outcome(1, "", f"Error: {key} is no property of a client, and would protect nothing{advice}\n")


def test_what_kafkas_clients_have_and_this_one_does_not_act_on_is_told_once(
    list_with: Callable[[str], Outcome],
) -> None:
    done = list_with("security.providers=a\nsasl.kerberos.service.name=kafka\nconfig.providers=file\n")
    assert done.code == 0
    assert done.err == (
        "WARN: no effect in pykbroker's client: security.providers, sasl.kerberos.service.name, config.providers\n"
    )


def test_other_keys_are_those_of_other_programs(list_with: Callable[[str], Outcome]) -> None:
    done = list_with("group.id=g\nacks=all\nno.such.key=1\nssl.client.auth=none\nsecurity.protocol=PLAINTEXT\n")
    assert (done.code, done.err) == (0, "")
