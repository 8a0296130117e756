"""The persister that keeps nothing, and who gets it."""

from __future__ import annotations

import pytest
import trio

from pykbroker.config import BrokerConfig
from pykbroker.server.node.composition.sharing import no_op_persister, writes_letters
from pykbroker.server.runtime.startup_error import StartupError
from pykbroker.sharing.no_op_persister import CLASS_NAMES, NoOpPersister
from pykbroker.sharing.persister import Initialization, Reading, SharePartitionKey, Writing

KEY = SharePartitionKey("g", b"t" * 16, 0)
LETTERS_CLASS = "group.share.dlq.manager.class.name"
PERSISTER_CLASS = "group.share.persister.class.name"


def test_everything_is_done_and_nothing_is_known() -> None:
    async def run() -> None:
        persister = NoOpPersister()
        (initialized,) = await persister.initialize([Initialization(KEY, 1, 5)])
        (written,) = await persister.write([Writing(KEY, 1, 0, 7, 0, ())])
        (state,) = await persister.read([Reading(KEY, 0)])
        (summary,) = await persister.read_summary([Reading(KEY, 0)])
        (deleted,) = await persister.delete([KEY])
        assert not any(each.error_code for each in (initialized, written, state, summary, deleted))
        assert (state.start_offset, summary.start_offset, summary.leader_epoch) == (-1, -1, 0)

    trio.run(run)


@pytest.mark.parametrize("name", CLASS_NAMES)
def test_it_is_had_by_its_name_or_by_none(name: str) -> None:
    assert isinstance(no_op_persister(BrokerConfig({"node.id": "1", PERSISTER_CLASS: name})), NoOpPersister)
    assert no_op_persister(BrokerConfig({"node.id": "1"})) is None


@pytest.mark.parametrize("name", ["", "org.apache.kafka.server.share.dlq.NoOpShareGroupDLQManager"])
def test_dead_letters_are_written_unless_nobody_is_to_write_them(name: str) -> None:
    assert writes_letters(BrokerConfig({"node.id": "1"}))
    assert not writes_letters(BrokerConfig({"node.id": "1", LETTERS_CLASS: name}))


def test_a_writer_of_letters_of_ones_own_is_refused() -> None:
    with pytest.raises(StartupError, match=r"com\.example\.Letters is not known"):
        writes_letters(BrokerConfig({"node.id": "1", LETTERS_CLASS: "com.example.Letters"}))


def test_a_class_of_ones_own_is_refused() -> None:
    with pytest.raises(StartupError, match=r"com\.example\.Persister is not known"):
        no_op_persister(BrokerConfig({"node.id": "1", PERSISTER_CLASS: "com.example.Persister"}))
