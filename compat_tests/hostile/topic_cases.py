"""Topics with names and settings that no broker takes: rows 27 to 36."""

from typing import Any

from compat_tests.cases import code
from pykbroker.protocol.messages.metadata import MetadataRequestTopic
from pykbroker.protocol.messages.topics import CreatableTopic

from .framing_cases import metadata_of
from .scene import Case, Scene

INVALID = "INVALID_TOPIC_EXCEPTION"


def named(name: str) -> Any:
    return lambda scene: scene.create(CreatableTopic(name=name, num_partitions=1, replication_factor=1))


def with_partitions(count: int, replicas: int = 1, **configs: str | None) -> Any:
    def run(scene: Scene) -> str:
        topic = CreatableTopic(name=scene.name(), num_partitions=count, replication_factor=replicas)
        return scene.create(topic, {key.replace("_", "."): value for key, value in configs.items()})

    return run


def colliding(scene: Scene) -> str:
    name = scene.name("collision")
    assert named(f"{name}.x")(scene) == "NONE"
    return str(named(f"{name}_x")(scene))


def existing(scene: Scene) -> str:
    return str(named(scene.topic())(scene))


def twice_in_one_request(scene: Scene) -> list[str]:
    topic = CreatableTopic(name=scene.name(), num_partitions=1, replication_factor=1)
    return sorted(set(scene.create_all([topic, topic])))


def asked_for_by_metadata(name: str) -> Any:
    return lambda scene: code(metadata_of(scene, [MetadataRequestTopic(name=name)], 8).topics[0].error_code)


BAD_NAMES = ["", ".", "..", "../../etc/passwd", "a/b", "a\\b", "a\0b", "a\nb", "a b", "ünï", "x" * 250]

CASES = [
    *(Case("27-31", f"create a topic named {name[:20]!r}", named(name), INVALID) for name in BAD_NAMES),
    *(Case("27-31", f"metadata of {name[:20]!r}", asked_for_by_metadata(name), INVALID) for name in BAD_NAMES),
    Case("31", "create a topic with 249 characters", named("y" * 249), "NONE"),
    Case("32", "create t_x where t.x is", colliding, INVALID),
    Case("32", "create a topic that is there", existing, "TOPIC_ALREADY_EXISTS"),
    Case("33", "create __cluster_metadata", named("__cluster_metadata"), "INVALID_REQUEST"),
    Case("33", "a name twice in one request", twice_in_one_request, ["INVALID_REQUEST"]),
    Case("36", "no partitions", with_partitions(0), "INVALID_PARTITIONS"),
    Case("36", "-2 partitions", with_partitions(-2), "INVALID_PARTITIONS"),
    Case("36", "a million partitions", with_partitions(1_000_000), "POLICY_VIOLATION"),
    Case("36", "no replicas", with_partitions(1, 0), "INVALID_REPLICATION_FACTOR"),
    Case("36", "more replicas than brokers", with_partitions(1, 5), "INVALID_REPLICATION_FACTOR"),
    Case("36", "an unknown config", with_partitions(1, no_such_config="1"), "INVALID_CONFIG"),
    Case("36", "a config that is no number", with_partitions(1, retention_ms="soon"), "INVALID_CONFIG"),
    Case("36", "a config out of range", with_partitions(1, segment_bytes="1"), "INVALID_CONFIG"),
    Case("36", "a config outside of its choices", with_partitions(1, cleanup_policy="burn"), "INVALID_CONFIG"),
    Case("36", "a config that is null", with_partitions(1, retention_ms=None), "INVALID_CONFIG"),
]
