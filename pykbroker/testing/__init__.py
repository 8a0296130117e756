"""Brokers for tests: in this process, on a free port, ready within a blink, with nothing left behind.

    from pykbroker.testing import Broker

    with Broker() as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)

The names below are imported when they are used. The modules, in reading order:

- `broker`, `cluster`: `Broker` and `Cluster`; `forking`: what a fork of a broker has of its own.
- `kafka`: what a test may ask of any cluster; `operations` are its coroutines, `pykbroker.client` the client below.
- `clock`: time that passes in scopes.
- `profile`: settings of brokers in tests.
- `hosted_kafka`, `hosted_node`, `node_control`, `reserved_port`: nodes in a thread of this process.
- `threaded_kafka`, `loop_thread`, `in_thread`: that thread.
- `external_kafka`, `apache_kafka`: other brokers in their place; `pytest_plugin`: the fixtures; `failed_tests`.
- `broker_log`: their last log lines; `journal`: all requests and responses.
- `broker_audit`, `audit_option`: what clients did that loses records or repeats them.
- `faults`: faults of a broker, as a test asks for them.
- `lazy_module`: what keeps the import quick.
- `errors`: what goes wrong.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pykbroker.client.conditions import ConditionNotMet
    from pykbroker.client.errors import BadInput, ClientError, KafkaError, UnknownTopic
    from pykbroker.config.keys import ConfigurationError
    from pykbroker.control.journal.json_lines import JournalCut, JournalFileError, ReadJournal, read_journal
    from pykbroker.control.journal.query import UnknownApi, UnknownError
    from pykbroker.control.journal.recorded_request import RecordedRequest
    from pykbroker.control.savepoints.errors import InvalidSavepoint, SavepointError, SavepointRefused

    from .broker import AsyncBroker, Broker
    from .broker_audit import AuditFailed, BrokerAudit
    from .cluster import AsyncCluster, Cluster
    from .errors import BrokerFailed, BrokerNotRunning, NoJournal, TestingError
    from .faults import AsyncBrokerFaults, AsyncFault, BrokerFaults, Fault
    from .journal import AsyncBrokerJournal, BrokerJournal, JournalForgot
    from .kafka import AsyncGroup, AsyncKafkaUnderTest, AsyncTopic, Group, KafkaUnderTest, Topic

__all__ = [
    "AsyncBroker",
    "AsyncBrokerFaults",
    "AsyncBrokerJournal",
    "AsyncCluster",
    "AsyncFault",
    "AsyncGroup",
    "AsyncKafkaUnderTest",
    "AsyncTopic",
    "AuditFailed",
    "BadInput",
    "Broker",
    "BrokerAudit",
    "BrokerFailed",
    "BrokerFaults",
    "BrokerJournal",
    "BrokerNotRunning",
    "ClientError",
    "Cluster",
    "ConditionNotMet",
    "ConfigurationError",
    "Fault",
    "Group",
    "InvalidSavepoint",
    "JournalCut",
    "JournalFileError",
    "JournalForgot",
    "KafkaError",
    "KafkaUnderTest",
    "NoJournal",
    "ReadJournal",
    "RecordedRequest",
    "SavepointError",
    "SavepointRefused",
    "TestingError",
    "Topic",
    "UnknownApi",
    "UnknownError",
    "UnknownTopic",
    "read_journal",
]

_MODULES = {
    "broker": ("AsyncBroker", "Broker"),
    "broker_audit": ("AuditFailed", "BrokerAudit"),
    "cluster": ("AsyncCluster", "Cluster"),
    "errors": ("BrokerFailed", "BrokerNotRunning", "NoJournal", "TestingError"),
    "journal": ("AsyncBrokerJournal", "BrokerJournal", "JournalForgot"),
    "faults": ("AsyncBrokerFaults", "AsyncFault", "BrokerFaults", "Fault"),
    "kafka": ("AsyncGroup", "AsyncKafkaUnderTest", "AsyncTopic", "Group", "KafkaUnderTest", "Topic"),
    "pykbroker.client.conditions": ("ConditionNotMet",),
    "pykbroker.client.errors": ("BadInput", "ClientError", "KafkaError", "UnknownTopic"),
    "pykbroker.config.keys": ("ConfigurationError",),
    "pykbroker.control.journal.json_lines": ("JournalCut", "JournalFileError", "ReadJournal", "read_journal"),
    "pykbroker.control.journal.query": ("UnknownApi", "UnknownError"),
    "pykbroker.control.journal.recorded_request": ("RecordedRequest",),
    "pykbroker.control.savepoints.errors": ("InvalidSavepoint", "SavepointError", "SavepointRefused"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module if "." in module else f"{__name__}.{module}"), name)
    globals()[name] = value
    return value
