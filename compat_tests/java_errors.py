"""Errors of Java, as Py4J tells them, where PySpark runs in the same process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def as_py4j_tells() -> Iterator[None]:
    """Raise `Py4JJavaError` for what a JVM throws.

    PySpark replaces the function that reads the answers of every gateway of the process by one that asks a JVM with
    Spark what an exception means.
    """
    from py4j import java_gateway, protocol

    replaced = java_gateway.get_return_value
    java_gateway.get_return_value = protocol.get_return_value
    try:
        yield
    finally:
        java_gateway.get_return_value = replaced
