"""Spark and the pipeline's commands with a broker that asks for TLS and a password."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
import trio

from compat_tests.secure_start import client_configuration, secure_broker
from compat_tests.waiting import DEADLINE_S
from pykbroker.client.acls import create_acls
from pykbroker.client.cluster import Cluster
from pykbroker.client.delegation_tokens import create_token, describe_tokens
from pykbroker.client.from_properties import cluster_of
from pykbroker.client.scram_users import set_scram_password
from pykbroker.security.acls.entry import AccessControlEntry
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.resources import PatternType, ResourceType
from pykbroker.spark import (
    ArchiveOptions,
    AuditOptions,
    Listener,
    MirrorOptions,
    ReplayOptions,
    Source,
    archive,
    audit,
    mirror,
    replay,
)
from pykbroker.spark.errors import NotAllowed, PipelineError
from spark_compat.session import connector_jars
from spark_compat.streams import read_batch, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 1000
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Secured:
    """A broker and the directory of its clients' configurations."""

    bootstrap: str
    directory: Path

    @property
    def spark_options(self) -> dict[str, str]:
        return client_configuration(self.directory, "spark.json")

    def source(self, **changes: str) -> Source:
        return Source(self.bootstrap, client_configuration(self.directory, "java.properties") | changes)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    work = tmp_path_factory.mktemp("secured")
    with secure_broker(work / "secure", work / "data") as bootstrap:
        yield Secured(bootstrap, work / "secure")


@pytest.fixture
def filled(spark: SparkSession, secured: Secured, topic: str) -> str:
    """A topic that Spark's connector has written with the configuration that is made for it."""
    rows = [(b"%d" % (number % 7), b"value %d" % number) for number in range(RECORDS)]
    frame = spark.createDataFrame(rows, "key binary, value binary")
    write_batch(frame, secured.bootstrap, topic, **secured.spark_options)
    return topic


def values(spark: SparkSession, secured: Secured, topic: str) -> list[bytes]:
    rows = read_batch(spark, secured.bootstrap, topic, **secured.spark_options).select("value").collect()
    return sorted(bytes(row.value) for row in rows)


def test_sparks_connector_writes_and_reads(spark: SparkSession, secured: Secured, filled: str, table: str) -> None:
    written = sorted(b"value %d" % number for number in range(RECORDS))
    assert values(spark, secured, filled) == written
    stream = spark.readStream.format("kafka").options(**secured.spark_options).option("subscribe", filled)
    query = (
        stream.option("startingOffsets", "earliest")
        .load()
        .writeStream.format("memory")
        .queryName(table)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(bytes(row.value) for row in spark.table(table).collect()) == written


def test_a_topic_is_archived_replayed_mirrored_and_audited(
    spark: SparkSession, secured: Secured, filled: str, tmp_path: Path
) -> None:
    source, path = secured.source(), str(tmp_path / "archive")
    assert archive(ArchiveOptions(source, path, topics=(filled,)), spark=spark).records == RECORDS
    again = f"{filled}-again"
    write_batch(spark.createDataFrame([(b"first",)], "value binary"), secured.bootstrap, again, **secured.spark_options)
    replay(ReplayOptions(source, path, filled, again, exactly_once=True, same_partitions=False), spark=spark)
    assert values(spark, secured, again) == sorted([b"first", *values(spark, secured, filled)])
    found = audit(AuditOptions(source, topics=(filled,), archive=path), spark=spark)
    assert not found.problems
    copied = mirror(MirrorOptions(source, source, topics=(filled,), prefix="copy-", groups_matching=None), spark=spark)
    assert copied.records == RECORDS
    assert values(spark, secured, f"copy-{filled}") == values(spark, secured, filled)


def test_sparks_connector_logs_in_with_a_delegation_token(spark: SparkSession, secured: Secured, filled: str) -> None:
    """As users of notebooks have it: the token is made by `pykbroker tokens`, and no password is given to Spark."""
    token = trio.run(partial(with_cluster, secured, partial(create_token, renewers=())))
    options = {
        **secured.spark_options,
        "kafka.sasl.jaas.config": scram_line(token.token_id, b64encode(token.hmac).decode(), "tokenauth=true"),
    }
    read = read_batch(spark, secured.bootstrap, filled, **options).select("value").collect()
    assert len(read) == RECORDS
    write_batch(spark.createDataFrame([(b"more",)], "value binary"), secured.bootstrap, filled, **options)
    assert len(values(spark, secured, filled)) == RECORDS + 1


def test_spark_obtains_tokens_by_itself(spark: SparkSession, secured: Secured, filled: str, tmp_path: Path) -> None:
    """Spark has one for a session, and for all that this session does; so it is one of its own."""
    app = secured.source().properties
    clusters = {
        "auth.bootstrap.servers": secured.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(secured.directory / "truststore.p12"),
        "ssl.truststore.password": (secured.directory / "store-password").read_text(),
        "kafka.sasl.mechanism": app["sasl.mechanism"],
        "kafka.sasl.jaas.config": app["sasl.jaas.config"],
    }
    told = json.dumps({"topic": filled, "work": str(tmp_path), "jars": connector_jars(spark), "clusters": clusters})
    command = [sys.executable, "-m", "spark_compat.token_program"]
    done = subprocess.run(command, input=told, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"tokens": 1, "records": RECORDS}
    tokens = trio.run(partial(with_cluster, secured, describe_tokens))
    assert any(token.owner == ("User", "app") for token in tokens)


async def with_cluster(secured: Secured, question: Callable[[Cluster], Awaitable[T]]) -> T:
    properties = client_configuration(secured.directory, "java.properties")
    async with cluster_of(secured.bootstrap, properties, client_id="test") as cluster:
        return await question(cluster)


def scram_line(user: str, password: str, *options: str) -> str:
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return " ".join((f'{module} required username="{user}" password="{password}"', *options)) + ";"


def test_a_wrong_password_is_one_line_that_does_not_tell_it(
    spark: SparkSession, secured: Secured, tmp_path: Path
) -> None:
    source = secured.source(**{"sasl.jaas.config": scram_line("app", "hunter2")})
    with pytest.raises(PipelineError) as refused:
        archive(ArchiveOptions(source, str(tmp_path / "archive"), topics=("any",)), spark=spark)
    assert "invalid credentials with SASL mechanism SCRAM-SHA-512" in str(refused.value)
    assert "hunter2" not in str(refused.value) + repr(source)


@pytest.mark.parametrize("rights", [(), (Operation.DESCRIBE,)], ids=["none", "describe"])
def test_a_run_that_follows_ends_where_a_right_is_missing(
    spark: SparkSession, secured: Secured, filled: str, tmp_path: Path, rights: tuple[Operation, ...]
) -> None:
    """Our own client is refused where there is no right at all, and Spark's consumer where that to read is missing."""
    source = new_user(secured, f"user-{filled}", filled, *rights)
    lines: list[str] = []
    options = ArchiveOptions(source, str(tmp_path / "archive"), topics=(filled,), follow=True, poll_interval_s=0.1)
    with pytest.raises(NotAllowed):
        archive(options, spark=spark, listener=Listener(lines.append, lambda progress: None))
    assert not any("next try" in line for line in lines)


def new_user(secured: Secured, name: str, topic: str, *operations: Operation) -> Source:
    """A user with these rights on the topic, as a source."""
    admin = client_configuration(secured.directory, "admin.properties")
    entries = [
        AccessControlEntry(
            ResourceType.TOPIC, topic, PatternType.LITERAL, f"User:{name}", "*", operation, Permission.ALLOW
        )
        for operation in operations
    ]

    async def make() -> None:
        async with cluster_of(secured.bootstrap, admin, client_id="test") as cluster:
            await create_acls(cluster, entries)
            await set_scram_password(cluster, name, "SCRAM-SHA-512", "password", 4096)

    trio.run(make)
    return secured.source(**{"sasl.jaas.config": scram_line(name, "password")})
