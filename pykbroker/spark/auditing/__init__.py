"""Whole topics and archives, read by Spark, and what is to be known of them."""

from __future__ import annotations

from .options import AuditOptions
from .report import AuditReport
from .run import audit

__all__ = ["AuditOptions", "AuditReport", "audit"]
