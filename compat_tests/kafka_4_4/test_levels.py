"""metadata.version from 4.3-IV0 to 4.4-IV2 and back, as far as that goes, and what it opens."""

from __future__ import annotations

import re
import subprocess

import pytest

from compat_tests.answers import TestAnswers
from compat_tests.apache_kafka.tools import Tool, run_tool
from compat_tests.brokers import pykbroker_command
from compat_tests.waiting import until
from pykbroker.protocol.messages.brokers import UnregisterControllerRequest

from .asking import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    Address,
    call,
    finalized,
    listeners_of,
    until_at,
    update,
)
from .conftest import FreshNode
from .nodes import OLDEST

NODE_ID = 1
KAFKA = "apache-kafka"


def unregistered(address: Address, controller_id: int) -> tuple[int, str | None]:
    answer = call(address, UnregisterControllerRequest(controller_id=controller_id), 0)
    return answer.error_code, answer.error_message


def test_the_level_goes_up_and_down_where_nothing_has_changed(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node(release=OLDEST)
    at = node.address
    until(lambda: update(at, 31, validate_only=True)[0] == 0, "the controller has registered")
    answers.same("up, only to see", update(at, 33, validate_only=True))
    answers.same("level", finalized(at))
    code, reason = update(at, 34)
    assert f"only supports versions {7 if node.kind == KAFKA else 30}-33" in (reason or "")
    answers.same("too high", (code, re.sub(r"\d+-33$", "…-33", reason or "")))
    answers.same("up to 31", update(at, 31))
    until_at(node, 31)
    answers.same("down without saying so", update(at, 30, UPGRADE))
    answers.same("up by a downgrade", update(at, 32, SAFE_DOWNGRADE))
    answers.same("down to 30, only to see", update(at, 30, SAFE_DOWNGRADE, validate_only=True))
    answers.same("down to 30", update(at, 30, SAFE_DOWNGRADE))
    until_at(node, 30)
    answers.same("up to 33", update(listeners_of(node)["controller"], 33))
    until_at(node, 33)
    for level in (32, 31, 30):
        answers.same(f"from 33 down to {level}", update(at, level, SAFE_DOWNGRADE))
        answers.same(f"from 33 down to {level} at all events", update(at, level, UNSAFE_DOWNGRADE))
    answers.same("what is there already", update(at, 33))
    node.stop()
    node.start()
    until_at(node, 33)


def test_controllers_are_unregistered_from_4_4_iv2_on(fresh_node: FreshNode, answers: TestAnswers) -> None:
    node = fresh_node(release=OLDEST)
    until(lambda: update(node.address, 31, validate_only=True)[0] == 0, "the controller has registered")
    for level in (30, 32, 33):
        update(node.address, level)
        until_at(node, level)
        for name, address in listeners_of(node).items():
            for controller_id in (NODE_ID, 2, -1):
                answer = unregistered(address, controller_id)
                answers.same(f"{controller_id} at level {level}, at the {name}'s listener", answer)


@pytest.mark.java
@pytest.mark.parametrize("kind", ["pykbroker"], indirect=True, scope="session")
def test_tools_raise_and_lower_the_level_of_a_running_cluster(fresh_node: FreshNode, kind: str) -> None:
    node = fresh_node(release=OLDEST)
    until(lambda: update(node.address, 31, validate_only=True)[0] == 0, "the controller has registered")

    def kafkas(*arguments: str) -> str:
        return run_tool(Tool.FEATURES, "--bootstrap-server", node.bootstrap, *arguments, allowed=(0, 1)).stdout

    def ours(*arguments: str) -> str:
        command = pykbroker_command("features", *arguments, "--bootstrap-server", node.bootstrap)
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=60).stdout

    assert "metadata.version was upgraded to 31." in kafkas("upgrade", "--feature", "metadata.version=31")
    until_at(node, 31)
    assert "metadata.version can be downgraded to 30." in ours(
        "downgrade", "--feature", "metadata.version=30", "--dry-run"
    )
    assert "metadata.version was downgraded to 30." in kafkas("downgrade", "--feature", "metadata.version=30")
    until_at(node, 30)
    assert "metadata.version was upgraded to 33." in ours("upgrade", "--metadata", "4.4")
    until_at(node, 33)
    refusal = "Refusing to perform the requested downgrade because it might delete metadata information."
    assert refusal in kafkas("downgrade", "--feature", "metadata.version=30")
    assert refusal in ours("downgrade", "--feature", "metadata.version=30", "--yes")
    assert "SupportedMaxVersion: 4.4-IV2" in ours("describe")
    assert "FinalizedVersionLevel: UNKNOWN 33" in kafkas("describe"), "4.3.1 has no name for it"
