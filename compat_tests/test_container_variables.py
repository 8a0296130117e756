"""Variables as the class of Kafka's image reads them that writes its `server.properties`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from compat_tests.apache_kafka.jars import class_path
from compat_tests.apache_kafka.java import find_java
from pykbroker.config import broker_keys
from pykbroker.config.properties import read_properties
from pykbroker.container.environment import read_environment
from pykbroker.container.names import key_of, variable_of

pytestmark = pytest.mark.java

FILES = ("server.properties", "log4j2.yaml", "tools-log4j2.yaml")
EXCLUDED = {
    "KAFKA_VERSION": "1",
    "KAFKA_HEAP_OPTS": "-Xmx1g",
    "KAFKA_LOG4J_OPTS": "-Da=b",
    "KAFKA_OPTS": "-Da=b",
    "KAFKA_JMX_OPTS": "-Da=b",
    "KAFKA_JVM_PERFORMANCE_OPTS": "-Da=b",
    "KAFKA_GC_LOG_OPTS": "-Da=b",
    "KAFKA_LOG4J_ROOT_LOGLEVEL": "INFO",
    "KAFKA_LOG4J_LOGGERS": "kafka=INFO",
    "KAFKA_TOOLS_LOG4J_LOGLEVEL": "INFO",
    "KAFKA_JMX_HOSTNAME": "host",
}
VALUES = {
    "KAFKA_BROKER_RACK": "  a rack ",
    "KAFKA_SASL_JAAS_CONFIG": 'org.Module required\\\n  username="a\\\\b";',
    "KAFKA_SSL_KEYSTORE_KEY": "one\\ntwo",
    "KAFKA_SSL_ENDPOINT_IDENTIFICATION_ALGORITHM": "",
    "KAFKA_LISTENER_NAME_SASL__SSL_SCRAM___SHA___256_SASL_JAAS_CONFIG": "line;",
    "KAFKA_LISTENERS": "A://:1,\\\n   B://:2",
}


def written_by_kafka(directory: Path, variables: dict[str, str], mounted: str | None = None) -> dict[str, str]:
    """The properties that Kafka's image would start with."""
    for name in ("default", "mounted", "final"):
        (directory / name).mkdir()
        for file in FILES:
            if name != "mounted":
                (directory / name / file).write_text("a.default=1\n" if file.endswith("properties") else "")
    if mounted is not None:
        (directory / "mounted" / FILES[0]).write_text(mounted)
    flags = [
        text
        for flag, name in (("-D", "default"), ("-M", "mounted"), ("-F", "final"))
        for text in (flag, str(directory / name))
    ]
    command = [find_java(), "-cp", class_path(), "kafka.docker.KafkaDockerWrapper", "setup", *flags]
    # The files are written by the time that it wants to format.
    subprocess.run(command, env=variables, capture_output=True, timeout=120, check=False)
    return read_properties(directory / "final" / FILES[0])


def test_every_variable_sets_the_key_that_it_sets_in_kafkas_image(tmp_path: Path) -> None:
    variables = {variable_of(key): "1" for key in broker_keys() if not key.startswith("cfg.")}
    variables |= {"KAFKA_ABC__DEF": "1", "KAFKA_ABC___DEF": "1", "KAFKA_X_KAFKA_Y": "1", "KAFKA_A____B": "1"}
    written = written_by_kafka(tmp_path, variables | EXCLUDED)
    assert set(written) == {key_of(name) for name in variables}


def test_every_text_is_the_value_that_it_is_in_kafkas_image(tmp_path: Path) -> None:
    assert read_environment(VALUES).properties == written_by_kafka(tmp_path, VALUES)


def test_the_mounted_file_and_the_defaults_count_as_in_kafkas_image(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    assert written_by_kafka(tmp_path / "a", {}) == {"a.default": "1"}
    assert written_by_kafka(tmp_path / "b", {"KAFKA_NODE_ID": "1"}) == {"node.id": "1"}
    written = written_by_kafka(tmp_path / "c", {"KAFKA_NODE_ID": "1"}, "node.id=2\nnum.partitions=3")
    assert written == {"node.id": "1", "num.partitions": "3"}
