"""What a declared class is: slots, defaults, copies, and a text that shows no secrets."""

from __future__ import annotations

import copy
import pickle

import pytest

from pykbroker.protocol.messages.fetch import FetchResponse, PartitionData
from pykbroker.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol
from pykbroker.protocol.messages.sasl import SaslAuthenticateRequest
from pykbroker.protocol.messages.transactions import InitProducerIdRequest
from pykbroker.protocol.schema import NO_TAGS, Message, Struct, field, parse_versions

from .declared import declared_messages


class Outer(Message, api_key=1000, versions="0-2", flexible="2+"):
    number: int = field("int32", default=-1)
    inner: Inner = field("struct", "1+")
    inners: list[Inner] | None = field("[]struct", "1+", nullable="1+")


class Inner(Struct):
    text: str | None = field("string", nullable="0+", default=None)


def test_every_message_can_be_made_without_arguments_and_no_two_share_what_can_change() -> None:
    for cls in declared_messages().values():
        first, second = cls(), cls()
        assert first == second
        for f in cls.__schema__.fields:
            value = getattr(first, f.name)
            if isinstance(value, (list, Struct)):
                assert value is not getattr(second, f.name)


def test_fields_are_given_by_keyword_and_misspelled_ones_are_refused() -> None:
    assert Outer(number=3).number == 3
    assert Outer().inners == []
    with pytest.raises(TypeError):
        Outer(nummer=3)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        Outer().nummer = 3  # type: ignore[attr-defined]


def test_the_shared_empty_tags_cannot_be_changed() -> None:
    message = Outer()
    assert message.unknown_tagged_fields == {}
    for change in (
        lambda tags: tags.__setitem__(1, b""),
        lambda tags: tags.update({1: b""}),
        lambda tags: tags.setdefault(1, b""),
        lambda tags: tags.clear(),
    ):
        with pytest.raises(TypeError, match="assign a new dict"):
            change(message.unknown_tagged_fields)
    assert NO_TAGS == {}


def test_messages_can_be_copied_and_pickled() -> None:
    message = JoinGroupRequest(group_id="g", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")])
    for made in (copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert made == message
        assert made.protocols[0] is not message.protocols[0]
        assert made.unknown_tagged_fields is NO_TAGS


def test_the_text_of_a_message_shows_the_size_of_opaque_bytes_only() -> None:
    assert (
        repr(SaslAuthenticateRequest(auth_bytes=b"\0user\0secret")) == "SaslAuthenticateRequest(auth_bytes=<12 bytes>)"
    )
    assert "records=<3 bytes>" in repr(PartitionData(records=memoryview(b"abc")))
    assert repr(Outer(unknown_tagged_fields={7: b"x"})).endswith("unknown_tagged_fields=<tags [7]>)")


def test_versions_are_read_and_written_in_kafkas_notation() -> None:
    for text in ("0+", "3+", "0-12", "4", "none"):
        assert str(parse_versions(text)) == text
    assert parse_versions("4").includes(4)
    assert not parse_versions("4").includes(5)
    assert not parse_versions("none").includes(0)


def test_an_unstable_version_is_declared_and_not_advertised() -> None:
    assert str(InitProducerIdRequest.__schema__.versions) == "0-6"
    assert str(InitProducerIdRequest.__schema__.stable_versions) == "0-5"
    assert FetchResponse.__schema__.stable_versions == FetchResponse.__schema__.versions
