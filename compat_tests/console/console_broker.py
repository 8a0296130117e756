"""A broker, as a process of its own, with its console at a free port."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compat_tests.brokers import Pykbroker, pykbroker_command

_ADDRESS = re.compile(r"the console, metrics and health at (https?://\S+?)/?$", re.MULTILINE)
TIMEOUT_S = 60

USERS = {"admin": "admin-secret", "alice": "alice-secret"}


def console_address(log: str) -> str:
    """The address of the console, without a slash at the end, from what a broker has logged."""
    found = _ADDRESS.findall(log)
    assert found, log[-3000:]
    return str(found[-1])


class ConsoleBroker(Pykbroker):
    """url: of the console, without a slash at the end, once the broker runs."""

    def __init__(self, directory: Path, properties: Mapping[str, str] | None = None) -> None:
        super().__init__(directory, {"console.listener": "127.0.0.1:0", **(properties or {})})

    @property
    def url(self) -> str:
        return console_address(self.log_text())


class ConsoleBrokerWithUsers(ConsoleBroker):
    """The users of USERS log in by PLAIN; `admin` may do everything."""

    def base_properties(self) -> dict[str, str]:
        known = " ".join(f'user_{name}="{password}"' for name, password in USERS.items())
        login = f'username="admin" password="{USERS["admin"]}"'
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return super().base_properties() | {
            "listeners": f"SASL_PLAINTEXT://{self.bootstrap},CONTROLLER://127.0.0.1:{self.controller_port}",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{module} required {login} {known};",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:admin;User:ANONYMOUS",
            "delegation.token.secret.key": "hush",
        }


def start_and_stop(directory: Path, overrides: Sequence[str]) -> tuple[int, list[str]]:
    """The exit code and the lines of a start that is ended as soon as the node is ready."""
    flags = [part for each in overrides for part in ("--override", each)]
    command = pykbroker_command("start", "--data-dir", str(directory / "data"), "--port", "0", *flags)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if "pykbroker ready" in line:
                process.terminate()
        return process.wait(TIMEOUT_S), lines


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"]["name"])


def ask(
    url: str,
    method: str = "GET",
    body: object = None,
    headers: Mapping[str, str] | None = None,
    *,
    as_page: bool = True,
) -> Answer:
    """The answer to a request; as_page: with the headers that the console's own page sends for a change."""
    given = dict(headers or {})
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if as_page and method != "GET":
        origin = "/".join(url.split("/")[:3])
        given = {"Content-Type": "application/json", "X-Console-Request": "1", "Origin": origin} | given
    request = urllib.request.Request(url, data, given, method=method)
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:
            return Answer(response.status, dict(response.headers), response.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, dict(error.headers), error.read())
