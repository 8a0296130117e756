"""`pykbroker start` with signed tokens of OAUTHBEARER: what ends the start before anybody is served."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.security.sasl.tokens import jwks

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
PROPERTY = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


def start(tmp_path: Path, url: str, allowed: str) -> subprocess.CompletedProcess[str]:
    properties = tmp_path / "server.properties"
    properties.write_text(
        f"""listeners=SASL_PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0
listener.security.protocol.map=SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=SASL_PLAINTEXT
sasl.enabled.mechanisms=OAUTHBEARER
sasl.mechanism.inter.broker.protocol=OAUTHBEARER
listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config={MODULE} required;
sasl.oauthbearer.jwks.endpoint.url={url}
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms=0
sasl.oauthbearer.expected.audience=kafka
sasl.oauthbearer.expected.issuer=https://issuer.example.org/
"""
    )
    command = [sys.executable, "-m", "pykbroker", "start", str(properties), "--data-dir", str(tmp_path / "data")]
    environment = os.environ | {"KAFKA_OPTS": f"-D{PROPERTY}={allowed}"}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=environment)


@pytest.mark.parametrize(
    ("content", "is_allowed", "reason"),
    [
        (b"", False, "it must be allowed where the process is started"),
        (None, True, "there are no keys to verify tokens with"),
        (b"{}", True, "it is no JWKS document"),
        (jwks({"kty": "oct", "k": "c2VjcmV0"}), True, "it has no public key that verifies signatures"),
    ],
    ids=["not allowed", "not there", "no document", "no key"],
)
def test_a_node_without_keys_does_not_start(
    tmp_path: Path, content: bytes | None, is_allowed: bool, reason: str
) -> None:
    path = tmp_path / "keys.json"
    if content is not None:
        path.write_bytes(content)
    url = f"file://{path}"
    done = start(tmp_path, url, url if is_allowed else "https://elsewhere/")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("Error: ")]
    assert "sasl.oauthbearer.jwks.endpoint.url" in line
    assert reason in line


def test_an_address_where_nobody_answers_ends_the_start(tmp_path: Path) -> None:
    url = "https://localhost:1/keys"
    done = start(tmp_path, url, url)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(f"{url}: it cannot be reached: Connection refused")


def test_the_plain_broker_imports_nothing_for_tokens() -> None:
    program = (
        "import sys, pykbroker.api, pykbroker.server.node.node, pykbroker.cli.start;"
        "print([each for each in sys.modules if each.split('.')[0] in ('joserfc', 'http', 'cryptography')"
        " or 'oauthbearer' in each])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
