"""Records of a table, written to topics by producers in Spark's tasks.

Spark's own sink has no column for timestamps, and no transactions; so each task has producers of librdkafka. A task
has the records of whole partitions of the source, one partition after the other, in their order.
"""

from __future__ import annotations

from .driver import TopicWriter
from .job import Route, Transactions, WriteJob, Written

__all__ = ["Route", "TopicWriter", "Transactions", "WriteJob", "Written"]
