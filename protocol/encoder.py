"""This module writes the function that encodes one version of one message.

It appends to a list of buffers: adjacent fields of fixed size, and the length that follows them, become one `pack`.
The names in the generated code: `w` the append of that list (another one inside of a tagged field), `regions` the
places in the list where records are that the transport must send itself.
"""

from __future__ import annotations

from typing import Any, Final

from . import primitives
from .encoded_structs import SHARED_BYTES, EncodedStructs
from .errors import UnsupportedVersion
from .schema import Codec, Field, Struct, StructType
from .source import FIXED, Source, is_present, is_tagged, plain_fields, tagged_fields

_BUFFERS: Final = (bytes, memoryview, bytearray)

_RUNTIME: Final[dict[str, Any]] = {
    "SHORT": primitives.SHORT_VARINTS,
    "BUFFERS": _BUFFERS,
    "EncodedStructs": EncodedStructs,
    "encode_uvarint": primitives.encode_uvarint,
    "encode_tags": primitives.encode_tags,
    "pack_numbers": primitives.pack_numbers,
    "pack_uuids": primitives.pack_uuids,
    "checked_uuid": primitives.checked_uuid,
    "too_long": primitives.too_long,
    "UnsupportedVersion": UnsupportedVersion,
}

# A bool is packed as a number: `?` would take None for False.
_PACK_CODES: Final = {kind: "b" if kind == "bool" else code for kind, (code, _) in FIXED.items()}


def compile_encoder(cls: StructType, version: int) -> Codec:
    """`encode(message, out: list, regions: list[int]) -> None`."""
    writer = _EncoderWriter(cls, version, flexible=cls.__schema__.flexible.includes(version))
    return writer.source.compile("encode", f"<encode {cls.__name__} v{version}>")


def compile_struct_encoder(cls: StructType, message: StructType, version: int) -> Codec:
    """The same for one struct of a message: `encode(struct, out, regions)`."""
    writer = _EncoderWriter(cls, version, flexible=message.__schema__.flexible.includes(version))
    return writer.source.compile("encode", f"<encode {cls.__name__} of {message.__name__} v{version}>")


class _EncoderWriter:
    def __init__(self, cls: StructType, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source("encode(message, out, regions)")
        self.source.constants.update(_RUNTIME)
        self._write = "w"
        self._run: list[tuple[str, str]] = []
        self.source.line("w = out.append")
        self._struct(cls, "message")
        self._flush()

    def _fixed(self, code: str, value: str) -> None:
        self._run.append((code, value))

    def _flush(self) -> None:
        if self._run:
            codes = "".join(code for code, _ in self._run)
            values = ", ".join(value for _, value in self._run)
            self.source.line(f"{self._write}({self.source.struct_method(codes, 'pack')}({values}))")
            self._run.clear()

    def _struct(self, cls: StructType, value: str) -> None:
        for f in cls.__schema__.fields:
            if not is_present(f, self.version) and not f.ignorable:
                with self.source.block(f"if {self._differs_from_default(f, f'{value}.{f.name}')}:"):
                    self._refuse(f"{cls.__name__}.{f.name} is set, version {self.version} cannot carry it")
        for f in plain_fields(cls.__schema__, self.version):
            self._value(f, f"{value}.{f.name}", f"{cls.__name__}.{f.name}")
        if self.flexible:
            self._tagged_section(cls, value)
        else:
            with self.source.block(f"if {value}.unknown_tagged_fields:"):
                self._refuse(f"{cls.__name__} has tagged fields, version {self.version} cannot carry them")

    def _refuse(self, why: str) -> None:
        self.source.line(f"raise UnsupportedVersion({why!r})")

    def _differs_from_default(self, f: Field, value: str) -> str:
        default = f.new_default()
        if default is None:
            return f"{value} is not None"
        if default == [] or (default in (0, "", b"") and f.kind != "float64"):
            return f"{value} or {value} is None"
        if isinstance(default, Struct):
            parts = [self._differs_from_default(part, f"{value}.{part.name}") for part in f.struct.__schema__.fields]
            return " or ".join([f"{value} is None", *parts, f"{value}.unknown_tagged_fields"])
        return f"{value} != {default!r}"

    def _tagged_section(self, cls: StructType, value: str) -> None:
        source = self.source
        self._flush()
        unknown = f"{value}.unknown_tagged_fields"
        known = tagged_fields(cls.__schema__, self.version)
        if not known:
            source.line(f"{self._write}(encode_tags(None, {unknown}) if {unknown} else SHORT[0])")
            return
        tags, outer = source.variable("tags"), self._write
        source.line(f"{tags} = None")
        for f in known:
            with source.block(f"if {self._differs_from_default(f, f'{value}.{f.name}')}:"):
                parts = source.variable("parts")
                self._write = f"{parts}.append"
                source.line(f"{parts} = []")
                self._value(f, f"{value}.{f.name}", f"{cls.__name__}.{f.name}")
                self._flush()
                with source.block(f"if {tags} is None:"):
                    source.line(f"{tags} = {{}}")
                source.line(f"{tags}[{f.tag}] = b''.join({parts})")
        self._write = outer
        source.line(f"{outer}(encode_tags({tags}, {unknown}) if {tags} or {unknown} else SHORT[0])")

    def _value(self, f: Field, value: str, name: str) -> None:
        nullable = f.nullable.includes(self.version)
        flexible = self.flexible and f.flexible
        if f.is_array:
            self._array(f, value, name, nullable)
        elif f.kind == "uuid":
            self._fixed("16s", f"checked_uuid({value})")
        elif f.kind in FIXED:
            self._fixed(_PACK_CODES[f.kind], value)
        elif f.kind == "struct":
            self._struct_value(f, value, nullable)
        elif f.kind == "string":
            self._string(value, name, nullable, flexible)
        else:
            self._buffer(f.kind, value, name, nullable, flexible)

    def _struct_value(self, f: Field, value: str, nullable: bool) -> None:
        variable = self.source.variable("o")
        if not nullable:
            self.source.line(f"{variable} = {value}")
            self._struct(f.struct, variable)
            return
        self._flush()
        self.source.line(f"{variable} = {value}")
        # Null is marked by -1 in the body, but by 0 in the tagged section.
        null = b"\x00" if is_tagged(f, self.version) else b"\xff"
        with self.source.block(f"if {variable} is None:"):
            self.source.line(f"{self._write}({null!r})")
        with self.source.block("else:"):
            self.source.line(f"{self._write}(b'\\x01')")
            self._struct(f.struct, variable)
            self._flush()

    def _write_length(self, code: str, length: str, flexible: bool) -> None:
        """Write a length, which is already one more than the length in flexible versions."""
        if not flexible:
            self._fixed(code, length)
            self._flush()
            return
        self._flush()
        self.source.line(f"{self._write}(SHORT[{length}] if {length} < 128 else encode_uvarint({length}))")

    def _string(self, value: str, name: str, nullable: bool, flexible: bool) -> None:
        source = self.source
        raw, length = source.variable("b"), source.variable("n")
        encoded = f"{value}.encode()"
        one_more = " + 1" if flexible else ""
        if nullable:
            null_length = 0 if flexible else -1
            with source.block(f"if {value} is None:"):
                source.line(f"{raw} = b''")
                source.line(f"{length} = {null_length}")
            with source.block("else:"):
                source.line(f"{raw} = {encoded}")
                source.line(f"{length} = len({raw}){one_more}")
        else:
            source.line(f"{raw} = {encoded}")
            source.line(f"{length} = len({raw}){one_more}")
        with source.block(f"if {length} > {primitives.MAX_STRING_BYTES + (1 if flexible else 0)}:"):
            source.line(f"raise too_long({name!r}, len({raw}))")
        self._write_length("h", length, flexible)
        source.line(f"{self._write}({raw})")

    def _buffer(self, kind: str, value: str, name: str, nullable: bool, flexible: bool) -> None:
        source = self.source
        raw, length = source.variable("b"), source.variable("n")
        measured = f"len({raw})" if kind == "bytes" else f"len({raw}) if isinstance({raw}, BUFFERS) else {raw}.size"
        one_more = " + 1" if flexible else ""
        source.line(f"{raw} = {value}")
        if nullable:
            with source.block(f"if {raw} is None:"):
                source.line(f"{length} = {0 if flexible else -1}")
            with source.block("else:"):
                source.line(f"{length} = ({measured}){one_more}")
        else:
            source.line(f"{length} = ({measured}){one_more}")
        self._write_length("i", length, flexible)
        with source.block(f"if {length} > {1 if flexible else 0}:"):
            if kind == "records":
                with source.block(f"if not isinstance({raw}, BUFFERS):"):
                    source.line("regions.append(len(out))")
            source.line(f"{self._write}({raw})")

    def _array(self, f: Field, value: str, name: str, nullable: bool) -> None:
        source = self.source
        items, length = source.variable("items"), source.variable("n")
        one_more = " + 1" if self.flexible else ""
        source.line(f"{items} = {value}")
        if nullable:
            with source.block(f"if {items} is None:"):
                source.line(f"{length} = {0 if self.flexible else -1}")
            with source.block("else:"):
                source.line(f"{length} = len({items}){one_more}")
        else:
            source.line(f"{length} = len({items}){one_more}")
        self._write_length("i", length, self.flexible)
        with source.block(f"if {length} > {1 if self.flexible else 0}:"):
            self._elements(f, items, name)

    def _elements(self, f: Field, items: str, name: str) -> None:
        source = self.source
        kind = f.element
        if kind == "uuid":
            source.line(f"{self._write}(pack_uuids({items}))")
        elif kind in FIXED:
            source.line(f"{self._write}(pack_numbers({_PACK_CODES[kind]!r}, {items}))")
        elif kind == "struct":
            with source.block(f"if {items}.__class__ is EncodedStructs:"):
                self._encoded_elements(items)
            with source.block("else:"):
                item = source.variable("o")
                with source.block(f"for {item} in {items}:"):
                    self._struct(f.struct, item)
                    self._flush()
        else:
            assert kind == "string", f"{name}: arrays of {kind} do not occur in the protocol"
            item = source.variable("o")
            with source.block(f"for {item} in {items}:"):
                self._string(item, name, False, self.flexible)
                self._flush()

    def _encoded_elements(self, items: str) -> None:
        """Large parts are not copied: several answers share them. In a tagged field everything is copied."""
        source = self.source
        part = source.variable("part")
        with source.block(f"for {part} in {items}.parts_in({self.version}):"):
            if self._write == "w":
                with source.block(f"if len({part}) >= {SHARED_BYTES}:"):
                    source.line("regions.append(len(out))")
            source.line(f"{self._write}({part})")
