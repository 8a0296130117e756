"""`kafka-delegation-tokens.sh` and other tools of Kafka's, as a user with a password or with a token."""

from __future__ import annotations

import re
from base64 import b64decode
from pathlib import Path

from compat_tests.acls.users import password
from compat_tests.apache_kafka.tools import Output, Tool, run_tool

from .token_broker import PLAIN_MODULE, SCRAM_MODULE, Token, TokenBroker

_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


class TokenTools:
    """The tools against one broker."""

    def __init__(self, tokens: TokenBroker, directory: Path) -> None:
        self._bootstrap = tokens.bootstrap
        self._directory = directory

    def properties(self, user: str) -> Path:
        """Those of a user with a password."""
        line = f'{PLAIN_MODULE} required username="{user}" password="{password(user)}";'
        return self._properties("PLAIN", line)

    def properties_of(self, token: Token, mechanism: str) -> Path:
        """Those of a client with a token."""
        line = f'{SCRAM_MODULE} required username="{token.token_id}" password="{token.password}" tokenauth="true";'
        return self._properties(mechanism, line)

    def _properties(self, mechanism: str, jaas: str) -> Path:
        path = self._directory / "client.properties"
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}\n"
            "request.timeout.ms=10000\ndefault.api.timeout.ms=20000\n"
        )
        return path

    def tokens(self, user: str, *arguments: str) -> Output:
        """Run `kafka-delegation-tokens.sh`."""
        return self.tokens_with(self.properties(user), *arguments)

    def tokens_with(self, properties: Path, *arguments: str) -> Output:
        options = ("--bootstrap-server", self._bootstrap, "--command-config", str(properties), *arguments)
        return run_tool(Tool.DELEGATION_TOKENS, *options, allowed=(0, 1))

    def topics(self, properties: Path) -> Output:
        """Run `kafka-topics.sh --list`."""
        options = ("--bootstrap-server", self._bootstrap, "--command-config", str(properties), "--list")
        return run_tool(Tool.TOPICS, *options, allowed=(0, 1))


def created(output: Output) -> Token:
    """The token that the tool printed."""
    row = next(line for line in output.lines if _DATE.search(line)).split()
    return Token(row[0], b64decode(row[1]))


def shown(output: Output, *tokens: Token) -> list[str]:
    """The lines without ids, HMACs and dates; the tokens by their numbers, in their order, and no others."""
    lines = []
    for line in [*output.lines, *output.stderr.splitlines()]:
        if line.lstrip().startswith("at ") or not line.strip() or line.startswith("Total number of tokens"):
            continue  # frames of a stack, and a count of which other tests' tokens are part
        names = [number for number, token in enumerate(tokens) if token.token_id in line]
        if _DATE.search(line) and not names and not line.startswith("Completed"):
            continue
        for number, token in enumerate(tokens):
            line = line.replace(token.token_id, f"id-{number}").replace(token.password, f"hmac-{number}")
        line = re.sub(r"\S*\d{4}-\d\d-\d\dT\d\d:\d\d\S*", "a date", line)
        line = re.sub(r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d \w+ \d{4}|\b\d{13}\b", "a time", line)
        lines.append(re.sub(r"\s+", " ", line).strip())
    return sorted(lines)
