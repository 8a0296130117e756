"""`pykbroker configs` in words: `describe TYPE NAME`, `alter TYPE NAME --set --delete`; and JSON."""

import json
from collections.abc import Callable

import pytest

from pykbroker.cli.config_entries import as_json
from pykbroker.protocol.messages.configs import DescribeConfigsResourceResult, DescribeConfigsSynonym
from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]


@pytest.fixture
def existing_topic(call: Call, topic: str) -> str:
    assert call(f"topics create {topic}").code == 0
    return topic


def own(call: Call, topic: str) -> dict[str, str]:
    [described] = json.loads(call(f"configs describe topic {topic} --json").out)
    return {each["name"]: each["value"] for each in described["configs"]}


def test_configs_are_set_and_deleted_in_words(call: Call, existing_topic: str) -> None:
    altered = call(f"configs alter topic {existing_topic} --set cleanup.policy=compact,delete --set segment.ms=70000")
    assert altered == Outcome(0, f"Completed updating config for topic {existing_topic}.\n", "")
    assert own(call, existing_topic) == {"cleanup.policy": "compact,delete", "segment.ms": "70000"}
    call(f"configs alter topic {existing_topic} --delete cleanup.policy --set segment.ms=80000")
    assert own(call, existing_topic) == {"segment.ms": "80000"}


@pytest.mark.parametrize("form", ["topic {}", "topics {}", "--entity-type topics {}", "topic --entity-name {}"])
def test_a_description_is_that_of_the_flags(call: Call, existing_topic: str, form: str) -> None:
    described = call(f"configs describe {form.format(existing_topic)} --all")
    assert described == call(f"configs --describe --topic {existing_topic} --all")
    assert len(described.lines) > 25


def test_several_entities_are_described_at_once(call: Call, existing_topic: str) -> None:
    call(f"topics create {existing_topic}-b")
    described = call(f"configs describe topic {existing_topic} {existing_topic}-b")
    assert described.lines == [
        f"Dynamic configs for topic {existing_topic} are:",
        f"Dynamic configs for topic {existing_topic}-b are:",
    ]
    objects = json.loads(call(f"configs describe topic {existing_topic} {existing_topic}-b --json").out)
    assert [each["name"] for each in objects] == [existing_topic, f"{existing_topic}-b"]


def test_brokers_and_their_default_have_words(call: Call) -> None:
    assert call("configs describe broker") == call("configs --describe --entity-type brokers")
    assert call("configs describe broker --default") == call("configs --describe --broker-defaults")
    default = json.loads(call("configs describe broker --default --json").out)
    assert [(each["type"], each["name"]) for each in default] == [("broker", None)]


def test_json_has_the_source_and_the_synonyms_of_a_value(call: Call, existing_topic: str) -> None:
    call(f"configs alter topic {existing_topic} --set cleanup.policy=compact")
    flags = call(f"configs --describe --topic {existing_topic} --json")
    assert flags == call(f"configs describe topic {existing_topic} --json")
    [described] = json.loads(flags.out)
    [config] = described["configs"]
    assert config["source"] == "DYNAMIC_TOPIC_CONFIG"
    assert (config["type"], config["read_only"], config["sensitive"]) == ("list", False, False)
    assert config["synonyms"][-1] == {"name": "log.cleanup.policy", "value": "delete", "source": "DEFAULT_CONFIG"}


def test_the_value_of_a_secret_is_never_shown() -> None:
    row = DescribeConfigsResourceResult(
        name="ssl.key.password",
        value="hush",
        config_source=4,
        is_sensitive=True,
        config_type=9,
        synonyms=[DescribeConfigsSynonym(name="ssl.key.password", value="hush", source=4)],
    )
    shown = json.dumps(as_json("broker", "1", [row]))
    assert '"type": "password"' in shown
    assert "hush" not in shown


def test_quotas_and_passwords_of_a_user_are_configs(call: Call, name: Callable[[str], str]) -> None:
    user = name("user")
    assert call(f"configs alter user {user} --set producer_byte_rate=1024").code == 0
    assert call(f"configs describe user {user}") == call(f"configs --describe --user {user}")
    expected = [{"entity": {"user": user}, "quotas": {"producer_byte_rate": 1024}}]
    assert json.loads(call(f"configs describe user {user} --json").out) == expected
    assert call(f"configs alter user {user} --delete producer_byte_rate").code == 0
    assert call(f"configs describe user {user} --json").out == "[]\n"


def test_subscriptions_of_client_metrics_are_set_listed_and_deleted(call: Call, topic: str) -> None:
    name = f"of-{topic}"
    altered = call(f"configs alter client-metrics {name} --set metrics=* --set interval.ms=1000")
    assert altered == Outcome(0, f"Completed updating config for client-metric {name}.\n", "")
    flags = f"configs --alter --entity-type client-metrics --entity-name {name}"
    call(f"{flags} --add-config match=[client_id=a.*,client_software_name=b] --delete-config interval.ms")
    described = json.loads(call("configs describe client-metrics --json").out)
    configs = next(each["configs"] for each in described if each["name"] == name)
    assert {each["name"]: each["value"] for each in configs} == {
        "metrics": "*",
        "match": "client_id=a.*,client_software_name=b",
    }
    call(f"configs alter client-metrics {name} --delete metrics --delete match")
    assert name not in call("configs describe client-metrics").out


def test_a_misspelt_key_of_client_metrics_is_told_with_the_one_that_was_meant(call: Call) -> None:
    refused = call("configs alter client-metrics one --set intervall.ms=1")
    assert (refused.code, refused.out) == (1, "")
    assert "did you mean interval.ms?" in refused.err
