"""Policies of one's own: what they are asked, what becomes of what they say, and what ends a start."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest
import trio
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from pykbroker.config import BrokerConfig, ConfigurationError
from pykbroker.metadata.policy_check import PolicyCheck
from pykbroker.policies import AlterConfigRequest, CreateTopicRequest, PolicyViolation
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import IncrementalAlterConfigsRequest
from pykbroker.protocol.messages.topics import CreateTopicsRequest, DeleteTopicsRequest
from pykbroker.server.quorum.node_policies import NodePolicies
from pykbroker.testing import Broker

HERE = __name__
ROOT = Path(__file__).parents[2]


class Recording:
    """A policy that says yes, and remembers what it was asked."""

    asked: ClassVar[list[object]] = []
    configured: ClassVar[list[Mapping[str, str]]] = []
    closed = 0

    def configure(self, configs: Mapping[str, str]) -> None:
        type(self).configured.append(configs)

    def validate(self, request: object) -> None:
        assert threading.current_thread() is not threading.main_thread()
        type(self).asked.append(request)

    def close(self) -> None:
        type(self).closed += 1


class Failing:
    def validate(self, request: object) -> None:
        raise RuntimeError("a secret of the policy")


class WithoutValidate:
    pass


def failing_to_be_made() -> None:
    raise OSError("no such file")


@pytest.fixture
def recording() -> type[Recording]:
    Recording.asked, Recording.configured, Recording.closed = [], [], 0
    return Recording


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the documentation is a module that can be imported."""
    text = (ROOT / "docs/administration.md").read_text()
    found = re.search(r"^```python policy_example\.py\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert found is not None
    (tmp_path / "policy_example.py").write_text(found[1])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "policy_example", raising=False)


def created(admin: AdminClient, *topics: NewTopic, validate_only: bool = False) -> dict[str, tuple[str, str] | None]:
    """The error of each topic by name, and its text; None where it was created."""
    futures = admin.create_topics(list(topics), validate_only=validate_only)
    return {name: _error(future) for name, future in futures.items()}


def altered(admin: AdminClient, topic: str, **configs: str | None) -> tuple[str, str] | None:
    entries = [
        ConfigEntry(
            name.replace("_", "."),
            value,
            incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
        )
        for name, value in configs.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    (future,) = admin.incremental_alter_configs([resource]).values()
    return _error(future)


def _error(future: object) -> tuple[str, str] | None:
    try:
        future.result(20)  # type: ignore[attr-defined]
    except KafkaException as failure:
        return failure.args[0].name(), failure.args[0].str()
    return None


def test_the_example_of_the_documentation_refuses_and_allows(example: None) -> None:
    config = {
        "create.topic.policy.class.name": "policy_example:SmallTopics",
        "alter.config.policy.class.name": "policy_example:KeptForAWeek",
    }
    with Broker(config) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        assert created(
            admin,
            NewTopic("orders", 1),
            NewTopic("shop.orders", 12),
            NewTopic("shop.large", 13),
            NewTopic("shop.assigned", 14, replica_assignment=[[1]] * 14),
        ) == {
            "orders": ("POLICY_VIOLATION", "orders: a topic is called TEAM.NAME"),
            "shop.orders": None,
            "shop.large": ("POLICY_VIOLATION", "shop.large: 13 partitions are more than 12"),
            "shop.assigned": ("POLICY_VIOLATION", "shop.assigned: 14 partitions are more than 12"),
        }
        assert created(admin, NewTopic("shop.orders", 9))["shop.orders"] == (
            "TOPIC_ALREADY_EXISTS",
            "Topic 'shop.orders' already exists.",
        )
        refused = "shop.orders: records are kept for a week at most"
        assert altered(admin, "shop.orders", retention_ms="-1") == ("POLICY_VIOLATION", refused)
        assert altered(admin, "shop.orders", retention_ms="604800000") is None
        assert set(admin.list_topics().topics) == {"shop.orders"}


def test_a_policy_is_asked_what_kafkas_is(recording: type[Recording]) -> None:
    policy = f"{HERE}:Recording"
    config = {"create.topic.policy.class.name": policy, "alter.config.policy.class.name": policy, "num.partitions": "5"}
    with Broker(config) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        assert created(admin, NewTopic("a", -1, -1, config={"retention.ms": "7"})) == {"a": None}
        assert created(admin, NewTopic("b", 2, replica_assignment=[[1], [1]]), validate_only=True) == {"b": None}
        assert altered(admin, "a", retention_ms="7", cleanup_policy="compact") is None
        assert altered(admin, "a", retention_ms=None) is None
        broker.stop()
    assert recording.asked == [
        CreateTopicRequest("a", 5, 1, None, {"retention.ms": "7"}),
        CreateTopicRequest("b", None, None, {0: [1], 1: [1]}, {}),
        AlterConfigRequest("TOPIC", "a", {"cleanup.policy": "compact"}),
        AlterConfigRequest("TOPIC", "a", {"retention.ms": None}),
    ]
    assert [each["num.partitions"] for each in recording.configured] == ["5", "5"]
    assert recording.closed == 2


def test_a_policy_that_fails_allows_nothing_and_tells_nobody_how(caplog: pytest.LogCaptureFixture) -> None:
    with Broker({"create.topic.policy.class.name": f"{HERE}:Failing"}) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        name, text = created(admin, NewTopic("a", 1))["a"] or ("", "")
        assert not admin.list_topics().topics
    assert (name, text) == ("UNKNOWN", "The policy failed; the log of the controller says how.")
    assert "a secret of the policy" in caplog.text


@pytest.mark.parametrize("key", ["create.topic.policy.class.name", "alter.config.policy.class.name"])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("org.example.Policy", "classes of Java cannot be loaded"),
        ("no_such_module:Policy", "there is no such class"),
        (f"{HERE}:NoSuchClass", "there is no such class"),
        (f"{HERE}:ROOT", "a class, or a function that makes a policy"),
        (f"{HERE}:WithoutValidate", "a policy has a method validate(request)"),
        (f"{HERE}:failing_to_be_made", "the policy cannot be made: OSError: no such file"),
    ],
)
def test_what_is_no_policy_is_a_configuration_error(key: str, name: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(reason)) as refused:
        NodePolicies.load(BrokerConfig({key: name}))
    assert key in str(refused.value)
    assert "\n" not in str(refused.value)


def test_without_a_name_there_is_none() -> None:
    assert NodePolicies.load(BrokerConfig({})) is None
    assert NodePolicies.load(BrokerConfig({"create.topic.policy.class.name": ""})) is None


def test_a_policy_concerns_its_own_requests() -> None:
    policies = NodePolicies(Recording(), None)
    assert policies.check_for(CreateTopicsRequest()) is not None
    assert policies.check_for(IncrementalAlterConfigsRequest()) is None
    assert policies.check_for(DeleteTopicsRequest()) is None


def questioned(*topics: str) -> PolicyCheck:
    check = PolicyCheck(creates=True, alters=True)
    for topic in topics:
        with pytest.raises(ApiError):
            check.check(CreateTopicRequest(topic, 1, 1))
    return check


def test_a_policy_that_takes_too_long_allows_nothing_and_holds_nobody_up() -> None:
    may_go_on = threading.Event()

    class Slow:
        def validate(self, request: CreateTopicRequest) -> None:
            if request.topic != "quick":
                may_go_on.wait(20)

    policies = NodePolicies(Slow(), None, timeout_s=0.2)

    async def ask() -> None:
        try:
            check = questioned("quick", "slow")
            await policies.judge(check)
            check.check(CreateTopicRequest("quick", 1, 1))
            with pytest.raises(ApiError, match="has not answered within") as refused:
                check.check(CreateTopicRequest("slow", 1, 1))
            assert refused.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
            behind = questioned("quick")
            await policies.judge(behind)  # the thread is still at it
            with pytest.raises(ApiError, match="has not answered within"):
                behind.check(CreateTopicRequest("quick", 1, 1))
        finally:
            may_go_on.set()

    trio.run(ask)


def test_what_has_changed_since_the_policy_was_asked_is_not_allowed() -> None:
    class Yes:
        def validate(self, request: object) -> None: ...

    async def ask() -> None:
        check = PolicyCheck(creates=False, alters=True)
        check.check(CreateTopicRequest("no policy for this", 1, 1))
        with pytest.raises(ApiError):
            check.check(AlterConfigRequest("TOPIC", "a", {"cleanup.policy": "compact"}))
        await NodePolicies(None, Yes()).judge(check)
        check.check(AlterConfigRequest("TOPIC", "a", {"cleanup.policy": "compact"}))
        with pytest.raises(ApiError, match="altered while the policy looked") as refused:
            check.check(AlterConfigRequest("TOPIC", "a", {"cleanup.policy": "compact,delete"}))
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT

    trio.run(ask)


def test_a_violation_is_told_in_its_own_words() -> None:
    class No:
        def validate(self, request: CreateTopicRequest) -> None:
            raise PolicyViolation("x" * 100_000)

    async def ask() -> None:
        check = questioned("a")
        await NodePolicies(No(), None).judge(check)
        with pytest.raises(ApiError) as refused:
            check.check(CreateTopicRequest("a", 1, 1))
        assert refused.value.code is ErrorCode.POLICY_VIOLATION
        assert refused.value.message == "x" * 10_000

    trio.run(ask)
