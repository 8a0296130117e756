"""Fetches Apache Kafka's jars where they are missing, and prints the directory that holds them."""

import sys

from .jars import JarsMissing, kafka_libs

try:
    print(kafka_libs())  # noqa: T201
except JarsMissing as reason:
    sys.exit(str(reason))
