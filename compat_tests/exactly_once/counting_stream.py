"""A Kafka Streams application with `exactly_once_v2`: counts the records of each key of one topic into another.

`python -m compat_tests.exactly_once.counting_stream BOOTSTRAP SOURCE TARGET STATE_DIRECTORY`, until it is killed; the
JVM then ends at once, without closing the application. Kafka's classes are driven by Py4J, so that no Java compiler is
needed.
"""

import sys
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from compat_tests.apache_kafka import class_path, find_java
from compat_tests.apache_kafka.warm_jvm import py4j_jar

NAME = "counting"


def start(gateway: JavaGateway, bootstrap: str, source: str, target: str, directory: str) -> Any:
    java: Any = gateway.jvm.java
    kafka: Any = gateway.jvm.org.apache.kafka
    properties = java.util.Properties()
    for key, value in {
        "application.id": NAME,
        "bootstrap.servers": bootstrap,
        "state.dir": directory,
        "processing.guarantee": "exactly_once_v2",
        "statestore.cache.max.bytes": "0",
        "commit.interval.ms": "100",
        "default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
        "default.value.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
        "consumer.session.timeout.ms": "6000",
        "consumer.auto.offset.reset": "earliest",
    }.items():
        properties.setProperty(key, value)
    serdes = kafka.common.serialization.Serdes
    builder = kafka.streams.StreamsBuilder()
    counts = builder.stream(source).groupByKey().count()
    produced = kafka.streams.kstream.Produced
    counts.toStream().to(target, getattr(produced, "with")(serdes.String(), serdes.Long()))
    streams = kafka.streams.KafkaStreams(builder.build(), properties)
    streams.start()
    return streams


def main() -> None:
    bootstrap, source, target, directory = sys.argv[1:5]
    port = launch_gateway(
        jarpath=py4j_jar(),
        classpath=class_path(),
        java_path=find_java(),
        javaopts=["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
        die_on_exit=True,
        redirect_stdout=sys.stderr,
        redirect_stderr=sys.stderr,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    streams = start(gateway, bootstrap, source, target, directory)
    while str(streams.state()) not in ("ERROR", "NOT_RUNNING"):
        gateway.jvm.java.lang.Thread.sleep(200)
    sys.exit(f"the application is in state {streams.state()}")


if __name__ == "__main__":
    main()
