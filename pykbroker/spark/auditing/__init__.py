"""Whole topics and archives, read by Spark, and what is to be known of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..progress import Listener
from ..python_tasks import ARROW, check_packages
from .options import AuditOptions
from .report import AuditReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["AuditOptions", "AuditReport", "audit"]


def audit(options: AuditOptions, *, spark: SparkSession | None = None, listener: Listener | None = None) -> AuditReport:
    """Read topics or an archive as a whole, and report. What must not be is in the report's `problems`.

    spark: the session to use; one is started where none runs. Raises the errors of `pykbroker.spark.errors`.
    """
    options.check()
    check_packages(*ARROW)
    from .run import run_audit  # needs NumPy, which is only in the extra

    return run_audit(options, spark, listener or Listener())
