"""Every message, in every version: encoded, decoded, equal. What is cut, bent or made up is refused, not believed."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.errors import MalformedMessage
from pykbroker.protocol.schema import Message
from tests.examples import examples

from .declared import declared_messages
from .maker import make_message

every_message = pytest.mark.parametrize("name", sorted(declared_messages()))
seeds = st.integers(0, 2**32)


def _versions(cls: type[Message]) -> range:
    versions = cls.__schema__.versions
    return range(versions.low, versions.high + 1)


@every_message
@examples(5)
@given(seed=seeds, most_elements=st.integers(0, 3))
def test_what_is_encoded_is_decoded_again(name: str, seed: int, most_elements: int) -> None:
    cls = declared_messages()[name]
    for version in _versions(cls):
        message = make_message(cls, version, seed, most_elements)
        encoded = encode(message, version)
        assert decode(cls, version, encoded) == (message, len(encoded))
        # In the middle of a reused buffer, with something behind it.
        buffer = memoryview(bytearray(b"\xff\xff" + encoded + b"\xff\xff\xff"))
        assert decode(cls, version, buffer, 2) == (message, 2 + len(encoded))


@every_message
@examples(2)
@given(seed=seeds)
def test_a_message_that_is_cut_anywhere_is_malformed(name: str, seed: int) -> None:
    cls = declared_messages()[name]
    for version in _versions(cls):
        encoded = encode(make_message(cls, version, seed, 1), version)
        step = 1 + len(encoded) // 100
        for size in range(0, len(encoded), step):
            with pytest.raises(MalformedMessage):
                decode(cls, version, encoded[:size])


@every_message
@examples(2)
@given(seed=seeds)
def test_bent_bytes_are_decoded_or_malformed_and_nothing_else(name: str, seed: int) -> None:
    cls = declared_messages()[name]
    rng = Random(seed)
    for version in _versions(cls):
        bent = bytearray(encode(make_message(cls, version, seed), version))
        for _ in range(5):
            if bent:
                bent[rng.randrange(len(bent))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            _decode_or_refuse(cls, version, bytes(bent))


@every_message
@examples(2)
@given(seed=seeds)
def test_made_up_bytes_are_decoded_or_malformed_and_nothing_else(name: str, seed: int) -> None:
    cls = declared_messages()[name]
    rng = Random(seed)
    for version in _versions(cls):
        few_values = bytes(rng.choice((0, 0, 1, 2, 0xFF)) for _ in range(rng.randrange(200)))
        _decode_or_refuse(cls, version, few_values)
        _decode_or_refuse(cls, version, rng.randbytes(rng.randrange(200)))


def _decode_or_refuse(cls: type[Message], version: int, data: bytes) -> None:
    try:
        message, end = decode(cls, version, data, objects_limit=1000)
    except MalformedMessage:
        return
    assert end <= len(data)
    # What was understood can be said again, whatever its text was. (Equal bytes: a NaN is not equal to itself.)
    again = encode(message, version)
    assert encode(decode(cls, version, again)[0], version) == again
