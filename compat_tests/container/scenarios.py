"""What is done with the examples in docker/, one after another in new namespaces:

    python -m compat_tests.container.scenarios STORAGE DIRECTORY [NAME]...

The last line is a JSON object: for each scenario its traceback, which is empty where all went well.
"""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from compat_tests.container.manifests import pods
from compat_tests.container.services import Service, World, world
from pykbroker.config.properties import read_properties

ADMIN = "/var/lib/pykbroker/secure/clients/admin.properties"


def use(service: Service, bootstrap: str, topic: str, **properties: str) -> None:
    """Have a stock client use the broker from the service's network."""
    command = [*service.enter, sys.executable, "-m", "compat_tests.container.client", bootstrap, topic]
    command += [f"{name}={value}" for name, value in properties.items()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stderr}\n{service.log.read_text()}"


def one_node(made: World) -> None:
    """docker/compose.yaml: the default node, with a variable, seen from the host and by Kafka's tools."""
    with made.composed("compose.yaml") as services:
        broker = services["broker"]
        use(broker, "localhost:9092", "from-the-host")
        described = broker.run("kafka-topics.sh", "--describe", "--topic", "from-the-host")
        assert "PartitionCount: 3" in described
        assert "(id: 1 rack: null isFenced: false) -> (" in broker.run("kafka-broker-api-versions.sh")


def cluster(made: World) -> None:
    """docker/compose-cluster.yaml: a record that one node takes is read from another, and all are in sync."""
    with made.composed("compose-cluster.yaml") as services:
        first, last = services["node-1"], services["node-3"]
        at_first, at_last = ("--bootstrap-server", "node-1:19092"), ("--bootstrap-server", "node-3:19092")
        first.run("kafka-topics.sh", *at_first, "--create", "--topic", "t", "--partitions", "3")
        first.run("kafka-console-producer.sh", *at_first, "--topic", "t", stdin="one\n")
        flags = ("--topic", "t", "--from-beginning", "--max-messages", "1")
        assert last.run("kafka-console-consumer.sh", *at_last, *flags) == "one\n"
        assert first.run("kafka-topics.sh", *at_first, "--describe", "--under-min-isr-partitions").strip() == ""


def secure(made: World) -> None:
    """docker/compose-secure.yaml: TLS, users and rights, with the files that the first start wrote."""
    with made.composed("compose-secure.yaml") as services:
        broker = services["broker"]
        flags = ("--bootstrap-server", "localhost:9092", "--command-config", ADMIN)
        broker.run("kafka-topics.sh", *flags, "--create", "--topic", "t")
        assert broker.run("kafka-topics.sh", *flags, "--list") == "t\n"
        files = broker.volumes["/var/lib/pykbroker"] / "secure" / "clients"
        properties = read_properties(files / "librdkafka.properties")
        use(broker, "localhost:9092", "t", **{**properties, "ssl.ca.location": str(files.parent / "ca.pem")})


def from_apache(made: World) -> None:
    """docker/compose-from-apache.yaml: the node, its health check, and the service that makes a topic."""
    with made.composed("compose-from-apache.yaml") as services:
        broker = services["broker"]
        use(broker, "localhost:9092", "orders")
        assert broker.run("/opt/kafka/bin/kafka-topics.sh", "--list").splitlines() == ["__consumer_offsets", "orders"]
        assert (broker.volumes["/tmp/kraft-combined-logs"] / "meta.properties").is_file()
        log = broker.log.read_text()
        assert "without meaning in pykbroker: KAFKA_HEAP_OPTS\n" in log
        assert "cluster.id=4L6g3nShT-eMCtK--X86sw" in log


def from_bitnami(made: World) -> None:
    """docker/compose-from-bitnami.yaml: users who log in by SCRAM, and data in the volume."""
    with made.composed("compose-from-bitnami.yaml") as services:
        broker = services["kafka"]
        user = {"sasl.username": "writer", "sasl.password": "writer-password", "security.protocol": "SASL_PLAINTEXT"}
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN"):
            use(broker, "localhost:9094", mechanism, **user, **{"sasl.mechanism": mechanism})
        assert (broker.volumes["/bitnami"] / "kafka" / "data" / "meta.properties").is_file()
        log = broker.log.read_text()
        assert log.count("without meaning") == 1
        assert "cluster.id=abcdefghijklmnopqrstuv" in log


def kubernetes(made: World) -> None:
    """docker/kubernetes: the pods of the StatefulSet, each with the id of its name, are one cluster."""
    with made.together(pods()) as services:
        first = services["pykbroker-0"]
        at = ("--bootstrap-server", "pykbroker-2.pykbroker:9092")
        first.run("kafka-topics.sh", *at, "--create", "--topic", "t", "--partitions", "3")
        described = first.run("kafka-topics.sh", *at, "--describe", "--topic", "t")
        assert "ReplicationFactor: 3" in described
        assert "min.insync.replicas=2" in described
        first.run("kafka-console-producer.sh", *at, "--topic", "t", stdin="one\n")
        for number in range(3):
            assert f" node.id={number} " in services[f"pykbroker-{number}"].log.read_text()


SCENARIOS = {each.__name__: each for each in (one_node, cluster, secure, from_apache, from_bitnami, kubernetes)}


def outcome(scenario: Callable[[World], None], made: World) -> str:
    try:
        scenario(made)
    except Exception:
        return traceback.format_exc()
    return ""


if __name__ == "__main__":
    with world(Path(sys.argv[1]), Path(sys.argv[2])) as made_world:
        sys.stdout.write(json.dumps({name: outcome(SCENARIOS[name], made_world) for name in sys.argv[3:] or SCENARIOS}))
