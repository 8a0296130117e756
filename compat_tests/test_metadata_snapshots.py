"""Metadata snapshots that pykbroker and Apache Kafka take over from each other, the log in front of them gone."""

import itertools
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import KafkaAdminClient

from .apache_kafka.broker import CLUSTER_ID, ApacheKafka
from .apache_kafka.metadata_shell import paths_in_snapshot
from .apache_kafka.tools import Tool, run_tool
from .brokers import Broker, Pykbroker
from .conftest import watch_log
from .topics import create_topic
from .waiting import DEADLINE_S, until

pytestmark = pytest.mark.java

OFTEN = {
    "metadata.log.max.record.bytes.between.snapshots": "1500",
    "metadata.max.retention.bytes": "1",
    "internal.metadata.log.segment.bytes": "4096",
    "internal.metadata.delete.delay.millis": "100",
}
KEPT = {"retention.ms": "123456789000"}


class DynamicKafka(ApacheKafka):
    """With voters that may change (KIP-853), as Kafka's quick start formats it: only snapshots and log know them."""

    def base_properties(self) -> dict[str, str]:
        properties = super().base_properties()
        voters = properties.pop("controller.quorum.voters")
        return properties | {"controller.quorum.bootstrap.servers": voters.partition("@")[2]}

    def prepare(self) -> None:
        if not self._is_formatted:
            run_tool(Tool.STORAGE, "format", "--standalone", "-t", CLUSTER_ID, "-c", str(self.properties_file))


@pytest.mark.parametrize("apache_kafka", [ApacheKafka, DynamicKafka])
def test_each_starts_on_the_others_snapshot_without_the_log_before_it(
    tmp_path: Path, apache_kafka: type[ApacheKafka], request: pytest.FixtureRequest
) -> None:
    data = tmp_path / "data"
    metadata = data / "__cluster_metadata-0"
    kafkas = apache_kafka(tmp_path / "kafka-1", {**OFTEN, "log.dirs": str(data)})
    ours = Pykbroker(tmp_path / "pykbroker", {**OFTEN, "log.dirs": str(data), "node.id": "1"})
    kafkas_again = apache_kafka(tmp_path / "kafka-2", {**OFTEN, "log.dirs": str(data)}, is_formatted=True)
    for broker in (kafkas, ours, kafkas_again):
        watch_log(request.node, broker)

    kafkas.start()
    try:
        create_topic(kafkas, "kept", 3, KEPT)
        topic_id = id_of(kafkas, "kept")
        add_scram_user(kafkas, "bob")
        names = {"kept", *create_topics_until_a_snapshot_covers_a_segment(kafkas, metadata)}
    finally:
        kafkas.stop()
    remove_what_the_latest_snapshot_covers(metadata)

    ours.start()
    try:
        assert topics_of(ours) == names
        assert id_of(ours, "kept") == topic_id
        names |= create_topics(ours, "ours", 12)
    finally:
        ours.kill()
    assert "metadata snapshot" in ours.log_text()
    ours.start()
    assert topics_of(ours) == names
    until(lambda: len(snapshots(metadata)) == 1, "what the latest snapshot replaces is deleted")
    ours.stop()
    assert_kafkas_tools_read_it(metadata)

    kafkas_again.start()
    try:
        assert topics_of(kafkas_again) == names
        assert id_of(kafkas_again, "kept") == topic_id
        assert retention_of(kafkas_again, "kept") == KEPT["retention.ms"]
        assert scram_iterations(kafkas_again, "bob") == 8192
    finally:
        kafkas_again.stop()


def remove_what_the_latest_snapshot_covers(metadata: Path) -> None:
    """As Kafka's cleaner does it, which comes by once a minute."""
    older = snapshots(metadata)[:-1]
    gone = covered_segments(metadata)
    assert older
    assert gone
    for path in [*older, *gone]:
        path.unlink()
    for path in gone:
        for suffix in (".index", ".timeindex", ".snapshot"):
            path.with_suffix(suffix).unlink(missing_ok=True)


def covered_segments(metadata: Path) -> list[Path]:
    end_offset = max((int(path.name[:20]) for path in snapshots(metadata)), default=0)
    segments = sorted(metadata.glob("*.log"))
    return [path for path, following in itertools.pairwise(segments) if int(following.stem) <= end_offset]


def create_topics_until_a_snapshot_covers_a_segment(kafka: Broker, metadata: Path) -> set[str]:
    """How soon it does so depends on when Kafka's snapshot thread gets to run."""
    names: set[str] = set()
    while not covered_segments(metadata):
        assert len(names) < 200
        names |= create_topics(kafka, f"of-kafka-{len(names)}", 4)
    return names


def assert_kafkas_tools_read_it(metadata: Path) -> None:
    snapshot = snapshots(metadata)[-1]
    assert int(min(metadata.glob("*.log")).stem) > 0
    dumped = run_tool(
        Tool.DUMP_LOG_SEGMENTS, "--cluster-metadata-decoder", "--deep-iteration", "--files", str(snapshot)
    ).stdout
    assert f"Snapshot end offset: {int(snapshot.name[:20])}, epoch: {int(snapshot.name[21:31])}" in dumped
    assert "isvalid: false" not in dumped
    for what in ("SnapshotHeader", '"name":"kept"', "USER_SCRAM_CREDENTIAL_RECORD", "SnapshotFooter"):
        assert what in dumped
    wanted = {
        "/image/topics/byName/kept/2",
        "/image/configs/TOPIC:kept/retention.ms",
        "/image/scram/SCRAM-SHA-256/bob",
    }
    # The shell may print before all of the snapshot is in its image.
    until(lambda: wanted <= set(paths_in_snapshot(snapshot)), f"the shell shows {wanted}")


def snapshots(metadata: Path) -> list[Path]:
    return sorted(metadata.glob("*.checkpoint"))


def create_topics(broker: Broker, stem: str, count: int) -> set[str]:
    names = {f"{stem}-{number}" for number in range(count)}
    for name in sorted(names):
        create_topic(broker, name)
    return names


def add_scram_user(broker: Broker, name: str) -> None:
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 8192)
    change = UserScramCredentialUpsertion(name, credential, b"secret")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.alter_user_scram_credentials([change])[name].result()


def scram_iterations(broker: Broker, name: str) -> int:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    described = admin.describe_user_scram_credentials([name])[name].result()
    return int(described.scram_credential_infos[0].iterations)


def topics_of(broker: Broker) -> set[str]:
    return set(AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=DEADLINE_S).topics)


def id_of(broker: Broker, topic: str) -> str:
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    (described,) = admin.describe_topics([topic])
    admin.close()
    return str(described["topic_id"])


def retention_of(broker: Broker, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return str(admin.describe_configs([resource])[resource].result()["retention.ms"].value)
