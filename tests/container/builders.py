"""Environments of nodes for the tests, and a root with the places of an image."""

from __future__ import annotations

from pathlib import Path

from pykbroker.config import BrokerConfig
from pykbroker.container.environment import read_environment
from pykbroker.container.node_environment import NodeEnvironment
from pykbroker.container.places import Places

ONE_NODE = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_LISTENERS": "CONTROLLER://:29093,PLAINTEXT_HOST://:9092,PLAINTEXT://:19092",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT_HOST://localhost:9092,PLAINTEXT://broker:19092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@broker:29093",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "PLAINTEXT",
}


def read(variables: dict[str, str], root: Path | None = None) -> NodeEnvironment:
    return read_environment(variables, Places(root))


def config_of(variables: dict[str, str], root: Path | None = None) -> BrokerConfig:
    """The configuration of the node; each variable that is no key of Kafka's has been told by then."""
    node = read(variables, root)
    return BrokerConfig.load(node.file, node.properties, node.defaults)


def write(root: Path, path: str, text: str) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file
