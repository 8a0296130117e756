"""Clusters of several nodes, of Apache Kafka, of pykbroker or of both, and the scenarios that run on them."""

from .cluster import Cluster
from .layout import BROKER, COMBINED, CONTROLLER, KAFKA, PYKBROKER, NodeSpec

__all__ = ["BROKER", "COMBINED", "CONTROLLER", "KAFKA", "PYKBROKER", "Cluster", "NodeSpec"]
