"""`pykbroker configs` against a broker."""

from collections.abc import Callable

from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]


def test_own_configs_are_shown_and_with_all_the_defaults_too(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --config retention.ms=60000")
    own = call(f"configs --describe --entity-type topics --entity-name {topic}")
    title, line = own.lines
    assert title == f"Dynamic configs for topic {topic} are:"
    assert line.startswith("  retention.ms=60000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=60000")
    title, *lines = call(f"configs --describe --topic {topic} --all").lines
    assert title == f"All configs for topic {topic} are:"
    assert len(lines) > 25
    assert "  cleanup.policy=delete sensitive=false synonyms={DEFAULT_CONFIG:log.cleanup.policy=delete}" in lines


def test_configs_are_set_and_deleted(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic} --config retention.ms=60000")
    altered = call(
        f"configs --alter --topic {topic} --add-config cleanup.policy=[compact,delete],segment.ms=70000 "
        "--delete-config retention.ms"
    )
    assert altered == Outcome(0, f"Completed updating config for topic {topic}.\n", "")
    lines = call(f"configs --describe --topic {topic}").lines[1:]
    assert [line.split(" sensitive")[0] for line in lines] == ["  cleanup.policy=compact,delete", "  segment.ms=70000"]


def test_a_brokers_configs_are_shown(call: Call) -> None:
    lines = call("configs --describe --entity-type brokers").lines
    assert lines[0].startswith("Dynamic configs for broker ")
    assert "Default configs for brokers in the cluster are:" in lines
    broker = lines[0].removeprefix("Dynamic configs for broker ").removesuffix(" are:")
    every = call(f"configs --describe --broker {broker} --all")
    assert every.lines[0] == f"All configs for broker {broker} are:"
    assert any(line.startswith("  num.partitions=1 ") for line in every.lines)


def test_what_does_not_exist_is_one_line(call: Call, topic: str) -> None:
    for action in ("--describe", "--alter --add-config retention.ms=1"):
        missing = call(f"configs {action} --topic {topic}")
        assert missing == Outcome(1, "", f"Error: Topic '{topic}' does not exist\n")
    assert call("configs --describe --broker 4711").err.startswith("Error: There is no broker 4711")


def test_a_config_that_is_refused_changes_nothing(call: Call, topic: str) -> None:
    call(f"topics --create --topic {topic}")
    refused = call(f"configs --alter --topic {topic} --add-config segment.ms=70000,foo=1")
    assert refused.code == 1
    assert refused.err == "Error: Unknown topic config name: foo\n"
    assert call(f"configs --describe --topic {topic}").lines == [f"Dynamic configs for topic {topic} are:"]
