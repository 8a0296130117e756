"""Which keys of TLS are changed at run time, for which listeners and brokers, and how they are described."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.broker_configs import APPEND, DELETE, SET
from compat_tests.waiting import until

from .listeners import prefixed
from .reload_listeners import AUTHORITY, ELSEWHERE, FIRST, TRUSTING
from .reload_scene import KEY_PASSWORD_KEY, LOCATION, PASSWORD, TRUST_LOCATION, TYPE, ReloadScene


def test_keys_are_changed_for_one_listener_of_one_broker(scene: ReloadScene, answers: TestAnswers) -> None:
    path = scene.pkcs12("good-enough", AUTHORITY.server())
    key = prefixed("BAD", LOCATION)
    for name, answer in {
        "without a value": scene.alter((key, SET, None)),
        "appended": scene.alter((key, APPEND, path)),
        "twice": scene.alter((key, SET, path), (key, SET, path)),
        "without the listener": scene.alter((LOCATION, SET, path)),
        "without the listener, deleted": scene.alter((LOCATION, DELETE, None)),
        "for all brokers": scene.alter((key, SET, path), broker=""),
        "without the listener for all brokers": scene.alter((LOCATION, SET, path), broker=""),
        "another broker": scene.alter((key, SET, path), broker="7"),
        "an unknown listener": scene.alter((prefixed("NOWHERE", LOCATION), SET, path)),
        "an unknown listener, deleted": scene.alter((prefixed("NOWHERE", LOCATION), DELETE, None)),
        "a plaintext listener": scene.alter((prefixed("PLAINTEXT", LOCATION), SET, path), validate_only=True),
        "an unknown key": scene.alter((prefixed("BAD", "ssl.keystore.colour"), SET, "red"), validate_only=True),
    }.items():
        answers.same(name, answer)
    assert scene.shown_serial("BAD") == FIRST["BAD"].certificate.serial_number


STATIC_KEYS = {
    "ssl.client.auth": "required",
    "ssl.enabled.protocols": "TLSv1.2",
    "ssl.protocol": "TLSv1.2",
    "ssl.cipher.suites": "TLS_AES_128_GCM_SHA256",
}


def test_other_keys_of_a_listener_wait_for_a_restart(scene: ReloadScene, answers: TestAnswers) -> None:
    rules = ("ssl.principal.mapping.rules", SET, "DEFAULT")
    answers.same("a key of the broker", scene.alter(rules))
    for key, value in STATIC_KEYS.items():
        answers.same(f"{key} of all brokers", scene.alter((key, SET, value), broker=""))
        answers.same(f"{key} of a listener", scene.set("BAD", {key: value}))
        assert scene.unset("BAD", key) == "NONE"
    answers.same("a value that there is not", scene.set("BAD", {"ssl.client.auth": "perhaps"}))
    assert scene.set("BAD", {"ssl.client.auth": "required"}) == "NONE"
    until(lambda: prefixed("BAD", "ssl.client.auth") in scene.dynamic_keys(), "it is stored")
    assert scene.shown_serial("BAD") == FIRST["BAD"].certificate.serial_number, "no certificate is required"
    assert scene.unset("BAD", "ssl.client.auth") == "NONE"


DESCRIBED = (LOCATION, PASSWORD, KEY_PASSWORD_KEY, TYPE, TRUST_LOCATION, "ssl.truststore.password", "ssl.client.auth")


def test_stores_are_described_without_their_secrets(scene: ReloadScene, answers: TestAnswers) -> None:
    assert scene.set("SHOWN", {LOCATION: scene.pkcs12("described", TRUSTING)}) == "NONE"
    until(lambda: prefixed("SHOWN", LOCATION) in scene.dynamic_keys(), "it is stored")
    of_listeners = [prefixed("SHOWN", key) for key in DESCRIBED]
    inline = ("ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates")
    of_listeners += [prefixed("SHOWNINLINE", key) for key in inline]
    for asked in (of_listeners, []):
        found = scene.described(*asked)
        for key in of_listeners:
            answers.same(f"{key} of {len(asked)}", plain(found[key], scene.directory))


def test_keys_of_the_broker_are_described_with_their_defaults(scene: ReloadScene, answers: TestAnswers) -> None:
    found = {key: plain(config, scene.directory) for key, config in scene.described().items() if key.startswith("ssl.")}
    answers.all_same(found)


@pytest.mark.java
def test_the_tool_changes_and_describes_stores(scene: ReloadScene, answers: TestAnswers) -> None:
    second = AUTHORITY.server()
    path = scene.pkcs12("by-tool", second)
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    server = ("--bootstrap-server", scene.secured.broker.bootstrap)
    key = prefixed("TOOL", LOCATION)
    changed = run_tool(Tool.CONFIGS, *server, *entity, "--alter", "--add-config", f"{key}={path}")
    answers.same("altered", changed.stdout)
    scene.await_certificate("TOOL", second)
    described = run_tool(Tool.CONFIGS, *server, *entity, "--describe").lines
    answers.same(
        "described",
        sorted(line.replace(str(scene.directory), "DIRECTORY").strip() for line in described if key in line),
    )
    wrong = scene.pkcs12("by-tool-wrong", AUTHORITY.server(ELSEWHERE))
    refused = run_tool(Tool.CONFIGS, *server, *entity, "--alter", "--add-config", f"{key}={wrong}", allowed=(1,))
    assert "Keystore DistinguishedName does not match" in refused.stderr
    answers.same("refused", re.findall(r"\w+Exception", refused.stderr)[:2])


def plain(config: Any, directory: Path) -> dict[str, Any]:
    def shown(value: str | None) -> str | None:
        return None if value is None else value.replace(str(directory), "DIRECTORY")

    return {
        "value": shown(config.value),
        "source": config.config_source,
        "read only": config.read_only,
        "sensitive": config.is_sensitive,
        "type": config.config_type,
        "synonyms": [[each.name, shown(each.value), each.source] for each in config.synonyms],
    }
