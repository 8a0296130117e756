"""Errors that end a pipeline: one sentence each, which says what to do about it."""

from __future__ import annotations


class PipelineError(Exception):
    """The base of all that `pykbroker.spark` raises on purpose."""


class SparkMissing(PipelineError):
    """A package of the extra `spark` is not installed, such as pyspark."""


class JavaMissing(PipelineError):
    """Spark needs Java 17 or newer."""


class ConnectorMissing(PipelineError):
    """Spark's Kafka connector is not there and cannot be fetched."""


class BadOptions(PipelineError):
    """The options contradict each other, or the cluster."""


class ClusterUnavailable(PipelineError):
    """The cluster cannot be asked, or refuses."""


class NotAllowed(PipelineError):
    """The cluster knows the user not, or does not let him do it: trying again is of no use."""


class ArchiveMismatch(PipelineError):
    """An archive holds records of something else than what is to be added to it."""


class ArchiveDamaged(PipelineError):
    """The files of an archive are not what its manifest says."""


class CheckpointDamaged(PipelineError):
    """The checkpoint of a query is not what Spark writes."""


class ArchiveBusy(PipelineError):
    """Another run has committed to the archive meanwhile."""


class TopicChanged(PipelineError):
    """A topic was deleted and created again while it was copied."""


class RecordsLost(PipelineError):
    """Records are gone from the topic that were not read yet."""


class WriteFailed(PipelineError):
    """A record was not acknowledged by the brokers."""


class TakenOver(WriteFailed):
    """Another run writes the same records, and goes on with them."""


class TaskLost(WriteFailed):
    """A task that writes was lost, and nobody knows how far it came."""


class NoRoom(PipelineError):
    """A disk is full."""


class Cancelled(PipelineError):
    """All of Spark's jobs were cancelled."""


class JobFailed(PipelineError):
    """Spark ended a job for a reason that has no error of its own here."""
