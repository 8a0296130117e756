"""The journal of what Java's client does, which goes by topic ids: the newest versions of all requests."""

import pytest

from pykbroker.testing import Broker

from .apache_kafka.tools import Tool, run_tool

pytestmark = pytest.mark.java


def test_java_clients_are_there_by_the_names_of_their_topics() -> None:
    with Broker() as broker:
        topic = broker.create_topic("orders")
        servers = ("--bootstrap-server", broker.bootstrap_servers, "--topic", topic)
        mark = broker.journal.position
        run_tool(Tool.CONSOLE_PRODUCER, *servers, stdin=b"one book\n")
        options = ("--from-beginning", "--max-messages", "1", "--group", "billing", "--timeout-ms", "30000")
        assert run_tool(Tool.CONSOLE_CONSUMER, *servers, *options).stdout == "one book\n"
        (produced,) = broker.requests("Produce", topic="orders", since=mark)
        assert produced.version >= 13
        assert produced.request["topic_data"][0]["topic_id"]
        assert "one book" in repr(produced.request)
        fetched = broker.requests("Fetch", topic="orders", since=mark)
        assert any("one book" in repr(each.response) for each in fetched)
        for each in broker.requests(since=mark):
            assert "not_shown" not in each.request, each
            assert each.response is None or "not_shown" not in each.response, each
