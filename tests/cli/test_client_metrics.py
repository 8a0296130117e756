"""`pykbroker client-metrics`: subscriptions to what clients measure, in words, with Kafka's flags, and in JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

import pytest

from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]


@pytest.fixture
def subscription(call: Call, name: Callable[[str], str]) -> Iterator[str]:
    """A name that nothing has; what a test makes of it goes with the test."""
    mine = name("subscription")
    yield mine
    call(f"client-metrics --delete --name {mine}")


def configs(call: Call, name: str) -> dict[str, str]:
    [described] = json.loads(call(f"client-metrics describe {name} --json").out)
    assert (described["type"], described["name"]) == ("client-metric", name)
    return {each["name"]: each["value"] for each in described["configs"]}


def test_a_subscription_is_made_changed_and_deleted_in_words(call: Call, subscription: str) -> None:
    made = call(f"client-metrics alter {subscription} --metrics * --interval 60000 --match client_id=app.*")
    assert made == Outcome(0, f"Altered client metrics config for {subscription}.\n", "")
    assert configs(call, subscription) == {"interval.ms": "60000", "match": "client_id=app.*", "metrics": "*"}
    assert subscription in call("client-metrics list").lines
    assert {"name": subscription} in json.loads(call("client-metrics list --json").out)
    call(f"client-metrics alter {subscription} --interval 1000")
    call(f"client-metrics alter {subscription} --match", "")
    assert configs(call, subscription) == {"interval.ms": "1000", "match": "", "metrics": "*"}
    deleted = call(f"client-metrics delete {subscription} --yes")
    assert deleted == Outcome(0, f"Deleted client metrics config for {subscription}.\n", "")
    assert subscription not in call("client-metrics list").lines


def test_changes_are_told_in_json(call: Call, subscription: str) -> None:
    made = call(f"client-metrics alter {subscription} --metrics a,b --json --interval", "")
    assert json.loads(made.out) == [{"name": subscription, "set": ["metrics"], "deleted": ["interval.ms"]}]
    deleted = call(f"client-metrics delete {subscription} --json")
    assert json.loads(deleted.out) == [{"name": subscription, "deleted": True}]


def test_the_flags_of_kafkas_tool_do_the_same(call: Call, subscription: str) -> None:
    assert call(f"client-metrics --alter --name {subscription} --metrics * --interval 1000").code == 0
    described = call(f"client-metrics --describe --name {subscription}")
    assert described.lines == [
        f"Client metrics configs for {subscription} are:",
        "  interval.ms=1000",
        "  match=",
        "  metrics=*",
    ]
    assert described.out in call("client-metrics --describe").out
    assert subscription in call("client-metrics --list").lines
    assert call(f"client-metrics --delete --name {subscription}").code == 0
    assert call(f"client-metrics --delete --name {subscription}").code == 0
    gone = call(f"client-metrics --describe --name {subscription}")
    told = f"The client metric resource {subscription} doesn't exist and doesn't have dynamic config.\n"
    assert gone == Outcome(0, told, "")


@pytest.mark.parametrize("form", ["--alter --generate-name", "alter --generate-name"])
def test_a_name_is_made_where_none_is_given(call: Call, form: str) -> None:
    made = call(f"client-metrics {form} --metrics *")
    found = re.fullmatch(r"Altered client metrics config for ([\w-]{22})\.\n", made.out)
    assert found, made
    assert found[1] in call("client-metrics list").lines
    assert call(f"client-metrics --delete --name={found[1]}").code == 0


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--name x", "Command must include exactly one action: --alter, --delete, --describe or --list."),
        ("--list --describe", "Command must include exactly one action: --alter, --delete, --describe or --list."),
        ("--list --name x", "--name cannot be used with --list"),
        ("--describe --metrics x", "--metrics can be used with --alter only"),
        ("--delete", "A client metrics resource name must be specified with --delete."),
        ("--alter --metrics x", "One of --name or --generate-name must be specified with --alter."),
        ("--alter --name x --generate-name", "One of --name or --generate-name must be specified with --alter."),
        ("--alter --name x --interval 1s", "Invalid interval value. Enter an integer, or leave empty to reset."),
        (
            "--alter --name x --interval 5",
            "Invalid value 5 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
        ),
        ("alter --metrics x", "Give a name or --generate-name"),
        ("alter x", "Say what to alter: --metrics, --interval or --match"),
        ("alter x --match client_id", "Illegal client matching pattern: client_id"),
        ("describe none", "There is no subscription none"),
        ("delete none --yes", "There is no subscription none"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_changes_nothing(call: Call, flags: str, message: str) -> None:
    before = call("client-metrics list").out
    refused = call(f"client-metrics {flags}")
    assert (refused.code, refused.out) == (1, "")
    assert message in refused.err
    assert refused.err.count("\n") == 1
    assert call("client-metrics list").out == before


def test_what_is_wrong_in_itself_needs_no_cluster(call: Call) -> None:
    refused = call("client-metrics --alter --name x --interval 1s --bootstrap-server 127.0.0.1:1", with_server=False)
    assert refused == Outcome(1, "", "Error: Invalid interval value. Enter an integer, or leave empty to reset.\n")
