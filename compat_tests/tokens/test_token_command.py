"""`pykbroker tokens` on both brokers, beside Kafka's own tool: each sees and changes what the other has made.

Where no owner is named, Kafka's tool asks for the tokens of none; ours asks for all that the user may see.
"""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest

from compat_tests.acls.test_security_commands import run_ours
from compat_tests.waiting import until

from .token_broker import Token, TokenBroker
from .token_tool import TokenTools, created

pytestmark = pytest.mark.java

DAY_MS = 86_400_000


def test_tokens_are_made_renewed_and_removed(tokens: TokenBroker, tmp_path: Path) -> None:
    tools = TokenTools(tokens, tmp_path)
    properties = tools.properties("alice")

    def ours(line: str) -> list[str]:
        return run_ours(tokens, f"tokens --command-config {properties} {line}").splitlines()

    def rows(lines: list[str], token: Token) -> list[list[str]]:
        return [line.split() for line in lines if line.split()[:1] == [token.token_id]]

    made = ours(f"--create --max-life-time-period {DAY_MS} --renewer-principal User:bob")
    row = made[-1].split()
    own = Token(row[0], b64decode(row[1]))
    assert made[0] == f"Created delegation token with tokenId : {own.token_id}"
    theirs = created(tools.tokens("alice", "--create", "--max-life-time-period", "-1"))
    until(lambda: rows(ours("--describe"), theirs), "the token that Kafka's tool has made is there")
    for token in (own, theirs):
        of_alice = tools.tokens("alice", "--describe", "--owner-principal", "User:alice")
        assert rows(ours("--describe"), token) == rows(of_alice.lines, token)
    renewed = ours(f"--renew --hmac {theirs.password} --renew-time-period {DAY_MS // 2}")
    assert renewed[0].startswith("Completed renew operation. New expiry date : 20")
    expired = ours(f"--expire --hmac {own.password} --expiry-time-period -1")
    assert expired[0].startswith("Completed expire operation. New expiry date : 20")
    until(lambda: not rows(ours("--describe --owner-principal User:alice"), own), "the token is gone")
    assert rows(ours("--describe --owner-principal User:alice"), theirs)
