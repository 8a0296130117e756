"""How much memory one element of a request's arrays takes: the reason for the floor in `costs`.

A handler's `most_entries` and the codec's OBJECTS_LIMIT count elements. So a request takes its own size, and at most
so many times BYTES_OF_AN_ELEMENT.
"""

from __future__ import annotations

import pytest

from pykbroker.protocol.api_keys import ApiKey, request_type
from pykbroker.protocol.compile import decode, encode
from pykbroker.protocol.schema import Field, Struct
from pykbroker.protocol.source import is_present

from .costs import BYTES_PER_BYTE, peak_bytes

BYTES_OF_AN_ELEMENT = 400
"""A struct of twenty fields of which most are empty lists of their own takes most."""
ELEMENTS = 1000


@pytest.mark.parametrize("key", sorted(ApiKey), ids=lambda key: key.name)
def test_an_element_takes_so_much_at_most(key: ApiKey) -> None:
    cls = request_type(key)
    version = cls.__schema__.versions.high
    for f in cls.__schema__.fields:
        if f.is_array and is_present(f, version):
            data = encode(cls(**{f.name: [_smallest(f)] * ELEMENTS}), version)
            decode(cls, version, data)
            peak = peak_bytes(lambda data=data: decode(cls, version, data))
            assert peak <= BYTES_PER_BYTE * len(data) + BYTES_OF_AN_ELEMENT * ELEMENTS, f"{f.name}: {peak} bytes"


def _smallest(f: Field) -> object:
    match f.element:
        case "struct":
            made: Struct = f.struct()
            return made
        case "string":
            return ""
        case "uuid":
            return bytes(16)
        case _:
            return 0
