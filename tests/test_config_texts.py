"""What keys mean: every key that DescribeConfigs may show has a sentence."""

from __future__ import annotations

import pytest

from pykbroker.config import broker_keys, group_keys, node_keys, topic_keys
from pykbroker.config.client_metrics_keys import client_metrics_keys
from pykbroker.config.texts import Kind, _texts, text_of
from pykbroker.config.topic_keys import INTERNAL_TOPIC_KEYS
from pykbroker.config.unserved_keys import is_without_effect, protects

KEYS: dict[Kind, set[str]] = {
    "topic": {*topic_keys(), *INTERNAL_TOPIC_KEYS},
    "broker": set(node_keys()),
    "group": set(group_keys()),
    "client-metrics": set(client_metrics_keys()),
}


@pytest.mark.parametrize("kind", KEYS)
def test_every_key_has_a_text_and_no_text_is_of_a_key_that_is_gone(kind: Kind) -> None:
    assert [name for name in sorted(KEYS[kind]) if text_of(name, kind) is None] == []
    assert _texts(kind).keys() - KEYS[kind] == set()


@pytest.mark.parametrize("kind", KEYS)
def test_a_text_is_a_sentence_on_one_line(kind: Kind) -> None:
    for name, text in _texts(kind).items():
        assert text.endswith("."), name
        assert text[0].isupper() or text.startswith("_"), name
        assert text.isprintable(), name
        assert len(text) < 120, name


def test_a_key_that_changes_nothing_says_so() -> None:
    silent = [name for name in broker_keys() if is_without_effect(name) or protects(name)]
    assert not set(silent) & _texts("broker").keys(), "a text of a key that has no effect would not be true"
    assert "no effect" in (text_of("num.io.threads") or "")
    assert "does not serve" in (text_of("principal.builder.class") or "")


def test_a_key_of_one_listener_means_what_it_means_for_all() -> None:
    assert text_of("listener.name.ssl.ssl.client.auth") == f"{text_of('ssl.client.auth')} Of one listener."
    assert text_of("listener.name.ssl.no.such.key") is None
    assert text_of("no.such.key") is None
    assert text_of("log.retention.ms", "topic") is None
