"""Keys and values in Avro and Protobuf, by schemas from files."""

import io
import json
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import fastavro
import pytest
from google.protobuf import descriptor_pb2

from pykbroker.cli.command import CommandFailed
from pykbroker.cli.line_reader import InvalidLine
from pykbroker.cli.records import proto_file
from pykbroker.cli.records.codec_options import CodecOptions
from pykbroker.cli.records.codecs import Codec
from tests.cli.conftest import Outcome

Call = Callable[..., Outcome]

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "raw", "type": "bytes"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "lines", "type": {"type": "array", "items": "double"}},
    ],
}
DOCUMENT = {"id": 0, "note": {"string": "ä"}, "raw": "\u0000ÿ", "at": 1_764_410_400_000, "lines": [1.5]}
DATUM = {"id": 0, "note": "ä", "raw": b"\0\xff", "at": 1_764_410_400_000, "lines": [1.5]}
PREFIX = b"\0\0\0\1\x02"  # of schema 258


def avro_data() -> bytes:
    """Bytes that open with a zero, as those behind a prefix do, too."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(ORDER), DATUM)
    return stream.getvalue()


@pytest.fixture
def avsc(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(ORDER))
    return path


@pytest.fixture
def descriptors(tmp_path: Path) -> Path:
    """What `protoc --include_imports --descriptor_set_out=…` makes of two files."""
    files = descriptor_pb2.FileDescriptorSet()
    money = files.file.add(name="money.proto", package="shop", syntax="proto3")
    message = money.message_type.add(name="Money")
    message.field.add(name="cents", number=1, type="TYPE_INT64", label="LABEL_OPTIONAL")
    order = files.file.add(name="order.proto", package="shop", syntax="proto3", dependency=["money.proto"])
    order.message_type.add(name="Unused")
    message = order.message_type.add(name="Order")
    message.field.add(name="id", number=1, type="TYPE_INT32", label="LABEL_OPTIONAL")
    message.field.add(name="note", number=2, type="TYPE_STRING", label="LABEL_OPTIONAL")
    message.field.add(name="price", number=3, type="TYPE_MESSAGE", type_name=".shop.Money", label="LABEL_OPTIONAL")
    message.nested_type.add(name="Inner").field.add(name="a", number=1, type="TYPE_BYTES", label="LABEL_OPTIONAL")
    path = tmp_path / "order.desc"
    path.write_bytes(files.SerializeToString())
    return path


def codec(schema: Path, message: str | None = None, schema_id: int | None = None) -> Codec:
    return CodecOptions("value", schema=schema, message=message, schema_id=schema_id).codec()


def test_avro_is_shown_in_its_own_json_and_comes_back(avsc: Path) -> None:
    data = avro_data()
    document = codec(avsc).document(data)
    assert json.loads(document) == DOCUMENT
    assert codec(avsc).shown(data) == document.encode()
    assert codec(avsc).from_line(document.encode()) == data
    assert codec(avsc).from_document(DOCUMENT) == data


def test_avro_is_read_with_a_registrys_prefix_and_written_with_one(avsc: Path) -> None:
    data = avro_data()
    assert data[0] == 0
    assert codec(avsc).document(PREFIX + data) == codec(avsc).document(data)
    assert codec(avsc, schema_id=258).from_document(DOCUMENT) == PREFIX + data


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0\0\0\1", b"\xff" * 30, avro_data()[:-1], avro_data() + b"\0", b"{}"]
)
def test_what_is_not_avro_of_the_schema_is_refused(avsc: Path, data: bytes) -> None:
    with pytest.raises(InvalidLine, match="not Avro of this schema: "):
        codec(avsc).document(data)


@pytest.mark.parametrize(
    "document",
    [
        None,
        1,
        [],
        {},
        {**DOCUMENT, "id": "x"},
        {**DOCUMENT, "id": 2**40},
        {**DOCUMENT, "note": {"int": 1}},
        {**DOCUMENT, "notes": 1},
    ],
)
def test_a_document_that_does_not_fit_the_avro_schema_is_refused(avsc: Path, document: object) -> None:
    with pytest.raises(InvalidLine, match="does not fit the Avro schema: "):
        codec(avsc).from_document(document)


@pytest.mark.parametrize(
    "text", ["", "{", '"nothing"', '{"type":"record"}', "5", "[]", "[" * 5_000, '{"type":"enum","name":"e"}']
)
def test_a_file_that_is_no_avro_schema_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.avsc"
    path.write_text(text)
    with pytest.raises(CommandFailed, match=r"bad\.avsc is not an Avro schema: "):
        codec(path)


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "null"}]},
    ],
)
def test_an_array_that_a_few_bytes_make_endless_is_refused(tmp_path: Path, items: object) -> None:
    path = tmp_path / "endless.avsc"
    fields = [{"name": "all", "type": ["int", {"type": "array", "items": items}]}]
    path.write_text(json.dumps({"type": "record", "name": "Outer", "fields": fields}))
    with pytest.raises(CommandFailed, match="arrays of entries that have no bytes"):
        codec(path)


def test_an_array_of_a_type_without_bytes_is_refused_by_its_name_too(tmp_path: Path) -> None:
    path = tmp_path / "endless.avsc"
    empty = {"type": "record", "name": "Empty", "fields": []}
    fields = [{"name": "one", "type": empty}, {"name": "all", "type": {"type": "array", "items": "shop.Empty"}}]
    path.write_text(json.dumps({"type": "record", "name": "Outer", "namespace": "shop", "fields": fields}))
    with pytest.raises(CommandFailed, match="arrays of entries that have no bytes"):
        codec(path)


@pytest.mark.parametrize("inner", ["Node", ["null", "Node"], {"type": "map", "values": ["null", "Node"]}])
def test_a_record_that_contains_itself_is_refused_for_data_could_exhaust_the_stack(
    tmp_path: Path, inner: object
) -> None:
    path = tmp_path / "recursive.avsc"
    path.write_text(json.dumps({"type": "record", "name": "Node", "fields": [{"name": "next", "type": inner}]}))
    with pytest.raises(CommandFailed, match="Node contains itself, which is not supported"):
        codec(path)


def test_a_record_may_be_used_again_beside_itself(tmp_path: Path) -> None:
    path = tmp_path / "pair.avsc"
    point = {"type": "record", "name": "Point", "fields": [{"name": "x", "type": "int"}]}
    fields = [{"name": "from", "type": point}, {"name": "via", "type": {"type": "array", "items": "Point"}}]
    path.write_text(json.dumps({"type": "record", "name": "Way", "fields": fields}))
    document = '{"from":{"x":1},"via":[{"x":2},{"x":3}]}'
    assert codec(path).document(codec(path).from_line(document.encode())) == document


def test_protobuf_is_shown_in_its_own_json_and_comes_back(descriptors: Path) -> None:
    data = bytes.fromhex("08071202c3a41a0308ac02")
    document = '{"id":7,"note":"ä","price":{"cents":"300"}}'
    orders = codec(descriptors, "shop.Order")
    assert orders.document(data) == document
    assert orders.shown(data) == document.encode()
    assert orders.from_line(document.encode()) == orders.from_document(json.loads(document)) == data


@pytest.mark.parametrize(
    ("message", "index"), [("shop.Money", b"\0"), ("shop.Order", b"\2\2"), ("shop.Order.Inner", b"\4\2\0")]
)
def test_protobuf_is_read_with_a_registrys_prefix_and_written_with_one(
    descriptors: Path, message: str, index: bytes
) -> None:
    data = codec(descriptors, message, 258).from_line(b"{}")
    assert data == PREFIX + index
    assert codec(descriptors, message).document(data) == "{}"
    assert codec(descriptors, message).document(b"") == "{}"


@pytest.mark.parametrize("data", [b"\x08", b"\xff\xff", b"\x12\x7f", b"\0\0\0\0\1", b"\0\0\0\0\1\xff\xff\xff\xff\x0f"])
def test_what_is_not_the_protobuf_message_is_refused(descriptors: Path, data: bytes) -> None:
    with pytest.raises(InvalidLine, match="not this Protobuf message: "):
        codec(descriptors, "shop.Order").document(data)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"id":"x"}', b'{"other":1}', b"\xff", b"[" * 10_000])
def test_a_document_that_does_not_fit_the_message_is_refused(descriptors: Path, text: bytes) -> None:
    with pytest.raises(InvalidLine):
        codec(descriptors, "shop.Order").from_line(text)


def test_a_descriptor_set_must_be_one_and_have_the_message(descriptors: Path, avsc: Path) -> None:
    with pytest.raises(CommandFailed, match=r"has no message 'Order', but shop\.Unused, shop\.Order$"):
        codec(descriptors, "Order")
    with pytest.raises(CommandFailed, match=r"order\.avsc is not a descriptor set"):
        codec(avsc, "shop.Order")


@pytest.mark.parametrize(("module", "extra"), [("fastavro", "avro"), ("google.protobuf", "protobuf")])
def test_a_package_that_is_missing_is_named(
    avsc: Path, monkeypatch: pytest.MonkeyPatch, module: str, extra: str
) -> None:
    for name in [each for each in sys.modules if each.startswith(module)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CommandFailed, match=rf"pip install 'pykbroker\[{extra}\]'"):
        codec(avsc, "shop.Order" if extra == "protobuf" else None)


def test_schemas_go_with_lines_and_with_envelopes(
    call: Call, run: Call, topic: str, avsc: Path, descriptors: Path
) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    schemas = f"--key-schema {avsc} --value-schema {descriptors} --value-message shop.Order"
    document = json.dumps(DOCUMENT, ensure_ascii=False)
    line = f'{document}\t{{"id":7}}\n'.encode()
    sent = run(f"produce --topic {topic} --parse-key {schemas} --key-schema-id 5 --value-schema-id 6", stdin=line)
    assert (sent.code, sent.err) == (0, "1 record acknowledged\n")
    shown = run(f"consume --topic {topic} -e {schemas}")
    assert json.loads(shown.out.split("\t")[0]) == DOCUMENT
    assert json.loads(shown.out.split("\t")[1]) == {"id": 7}
    envelope = run(f"consume --topic {topic} -e --json {schemas}").out
    assert json.loads(envelope)["key"] == DOCUMENT
    assert run(f"consume --topic {topic} -e {schemas} --where", "id == `7`").out == shown.out
    assert run(f"consume --topic {topic} -e {schemas} --where", "id == `8`").out == ""
    assert run(f"produce --topic {topic} --json {schemas}", stdin=envelope.encode()).code == 0
    assert run(f"consume --topic {topic} -e {schemas}").out == shown.out * 2


def test_a_line_that_does_not_fit_its_schema_is_named(call: Call, run: Call, topic: str, avsc: Path) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    lines = json.dumps(DOCUMENT).encode() + b"\n{}\n"
    ended = run(f"produce --topic {topic} --value-schema {avsc}", stdin=lines)
    assert ended.code == 1
    assert ended.err.startswith("Error: Line 2: value: does not fit the Avro schema: ")
    assert ended.err.endswith("; that and what follows is not sent (1 record acknowledged)\n")


@pytest.fixture
def proto(tmp_path: Path) -> Path:
    """A file that imports another one and a well-known type, in a directory that has a package of Python's name."""
    directory = tmp_path / "a:b"
    (directory / "parts").mkdir(parents=True)
    (directory / "google").mkdir()
    (directory / "google" / "__init__.py").write_text("raise SystemExit('imported from beside the file')")
    (directory / "parts" / "money.proto").write_text(
        'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    )
    path = directory / "-order.proto"
    path.write_text(
        'syntax = "proto3";\npackage shop;\nimport "parts/money.proto";\nimport "google/protobuf/timestamp.proto";\n'
        "message Order { Money price = 1; google.protobuf.Timestamp at = 2; message Line { string sku = 1; } }\n"
    )
    return path


def test_a_proto_file_with_one_message_needs_no_name(proto: Path) -> None:
    codec = CodecOptions("value", schema=proto).codec()
    document = {"price": {"cents": "250"}, "at": "2026-01-31T12:00:00Z"}
    data = codec.from_document(document)
    assert data.startswith(b"\x0a\x03\x08\xfa\x01")
    assert json.loads(codec.document(data)) == document


def test_a_nested_message_is_named_by_its_path(proto: Path) -> None:
    codec = CodecOptions("key", schema=proto, message="shop.Order.Line", schema_id=1).codec()
    assert codec.from_document({"sku": "b"}) == b"\0\0\0\0\1\x04\0\0\x0a\1b"


@pytest.mark.parametrize(
    ("text", "message", "complaint"),
    [
        ("message A {}\nmessage B { int32 x = 1 }", None, "x.proto:3:25: Expected"),
        ('import "nothere.proto";', None, 'x.proto:2:1: Import "nothere.proto" was not found'),
        ("message A {}\nmessage B {}", None, "several messages: name one by --value-message: A, B"),
        ("message A {}\nmessage B {}", "C", "has no message 'C', but A, B"),
        ("enum E { ZERO = 0; }", None, "x.proto has no message"),
        ("".join(f"message M{number} {{}}\n" for number in range(12)), None, "M8, M9 and 2 more"),
        ("message M { " * 10_000, None, "x.proto:2:"),
    ],
    ids=["syntax", "import", "several", "unknown", "none", "many", "deep"],
)
def test_what_is_wrong_with_a_proto_file_is_one_line(
    tmp_path: Path, text: str, message: str | None, complaint: str
) -> None:
    path = tmp_path / "x.proto"
    path.write_text(f'syntax = "proto3";\n{text}\n')
    with pytest.raises(CommandFailed) as raised:
        CodecOptions("value", schema=path, message=message).codec()
    assert complaint in raised.value.message
    assert raised.value.message.startswith(str(tmp_path))
    assert raised.value.message.isprintable()
    assert len(raised.value.message) < 400


def test_a_compiler_that_hangs_is_ended(proto: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proto_file, "_LONGEST_S", 0.01)
    with pytest.raises(CommandFailed, match="not compiled it within"):
        CodecOptions("value", schema=proto).codec()


def test_proto_files_go_with_lines(call: Call, run: Call, topic: str, proto: Path) -> None:
    call(f"topics --create --topic {topic} --partitions 1")
    schema = ["--value-schema", str(proto)]
    assert run(f"produce --topic {topic}", *schema, stdin=b'{"price": {"cents": "7"}}\n').code == 0
    assert run(f"consume --topic {topic} -e", *schema).lines[0] == '{"price":{"cents":"7"}}'


@pytest.mark.parametrize(
    "schema", [{"type": "array", "items": ["null", "int"]}, {"type": "map", "values": "int"}, "string"]
)
@pytest.mark.parametrize("count", [b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f\2"])
def test_a_length_beyond_the_data_takes_no_memory(tmp_path: Path, schema: object, count: bytes) -> None:
    path = tmp_path / "x.avsc"
    path.write_text(json.dumps(schema))
    read = codec(path).document
    with pytest.raises(InvalidLine):
        read(b"\xfe")  # what is imported first is not counted
    tracemalloc.start()
    try:
        with pytest.raises(InvalidLine, match="not Avro of this schema: "):
            read(count + b"\2" * 1_000)
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
