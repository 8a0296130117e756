"""This module writes the function that decodes one version of one message: straight-line code, one loop per array.

Adjacent fields of fixed size, and the length that follows them, are read by one `unpack_from`. The names in the
generated code: `data` a memoryview, `p` the position, `end` the size of the data, `budget` the array elements that
may still be made.
"""

from __future__ import annotations

from typing import Any, Final

from . import primitives
from .schema import NO_TAGS, Codec, Field, Struct, StructType
from .source import FIXED, Source, is_present, is_tagged, plain_fields, smallest_element, tagged_fields

_RUNTIME: Final[dict[str, Any]] = {
    "new": object.__new__,
    "NO_TAGS": NO_TAGS,
    "finish_uvarint": primitives.finish_uvarint,
    "read_numbers": primitives.read_numbers,
    "read_uuids": primitives.read_uuids,
    "read_tags": primitives.read_tags,
    "read_tag": primitives.read_tag,
    "check_tag_count": primitives.check_tag_count,
    "bad_null": primitives.bad_null,
    "bad_length": primitives.bad_length,
    "bad_count": primitives.bad_count,
    "bad_tag_size": primitives.bad_tag_size,
    "misplaced_tag": primitives.misplaced_tag,
    "overrun": primitives.overrun,
}


def compile_decoder(cls: StructType, version: int) -> Codec:
    """`decode(data: memoryview, p: int, budget: int) -> (message, position behind it)`."""
    writer = _DecoderWriter(cls, version)
    return writer.source.compile("decode", f"<decode {cls.__name__} v{version}>")


class _DecoderWriter:
    def __init__(self, cls: StructType, version: int) -> None:
        self.version = version
        self.flexible = cls.__schema__.flexible.includes(version)
        self.source = Source("decode(data, p, budget)")
        self.source.constants.update(_RUNTIME)
        self._run: list[tuple[str, str]] = []
        self.source.line("end = len(data)")
        self._struct(cls, "message")
        with self.source.block("if p > end:"):
            self.source.line("raise overrun(p, end)")
        self.source.line("return message, p")

    # Fields of fixed size wait in `_run` until something else is read.

    def _fixed(self, code: str, target: str) -> None:
        self._run.append((code, target))

    def _flush(self) -> None:
        if not self._run:
            return
        codes = "".join(code for code, _ in self._run)
        targets = ", ".join(target for _, target in self._run)
        size = sum(1 if code == "B" else _SIZES[code] for code, _ in self._run)
        if codes == "B":
            self.source.line(f"{targets} = data[p]")
        else:
            comma = "," if len(self._run) == 1 else ""
            self.source.line(f"{targets}{comma} = {self.source.struct_method(codes, 'unpack_from')}(data, p)")
        self.source.line(f"p += {size}")
        self._run.clear()

    def _struct(self, cls: StructType, target: str) -> None:
        source = self.source
        source.line(f"{target} = new({source.constant(cls.__name__, cls)})")
        for f in cls.__schema__.fields:
            if not is_present(f, self.version) or is_tagged(f, self.version):
                self._default(f, f"{target}.{f.name}")
        for f in plain_fields(cls.__schema__, self.version):
            self._value(f, f"{target}.{f.name}", f"{cls.__name__}.{f.name}")
        if self.flexible:
            self._tagged_section(cls, target)
        else:
            self._flush()
            source.line(f"{target}.unknown_tagged_fields = NO_TAGS")

    def _default(self, f: Field, target: str) -> None:
        default = f.new_default()
        if isinstance(default, list):
            self.source.line(f"{target} = []")
        elif isinstance(default, Struct):
            self._default_struct(type(default), target)
        else:
            self.source.line(f"{target} = {default!r}")

    def _default_struct(self, cls: StructType, target: str) -> None:
        variable = self.source.variable("s")
        self.source.line(f"{target} = {variable} = new({self.source.constant(cls.__name__, cls)})")
        for f in cls.__schema__.fields:
            self._default(f, f"{variable}.{f.name}")
        self.source.line(f"{variable}.unknown_tagged_fields = NO_TAGS")

    def _tagged_section(self, cls: StructType, target: str) -> None:
        source = self.source
        count = source.variable("n")
        self._fixed("B", count)
        self._flush()
        known = tagged_fields(cls.__schema__, self.version)
        misplaced = tuple(f.tag for f in cls.__schema__.fields if f.tag is not None and f not in known)
        with source.block(f"if {count}:"):
            with source.block(f"if {count} > 127:"):
                source.line(f"{count}, p = finish_uvarint(data, p, {count})")
            if known or misplaced:
                self._known_tags(cls, known, misplaced, target, count)
            else:
                source.line(f"{target}.unknown_tagged_fields, p, budget = read_tags(data, p, {count}, budget)")
        with source.block("else:"):
            source.line(f"{target}.unknown_tagged_fields = NO_TAGS")

    def _known_tags(
        self, cls: StructType, known: list[Field], misplaced: tuple[int, ...], target: str, count: str
    ) -> None:
        source = self.source
        tag, value_end, unknown = source.variable("tag"), source.variable("q"), source.variable("unknown")
        source.line(f"budget = check_tag_count({count}, budget)")
        source.line(f"{tag} = -1")
        source.line(f"{unknown} = NO_TAGS")
        with source.block(f"for _ in range({count}):"):
            source.line(f"{tag}, p, {value_end} = read_tag(data, p, {tag})")
            with source.block(f"if {tag} in {misplaced}:"):
                source.line(f"raise misplaced_tag({cls.__name__!r}, {tag})")
            for f in known:
                with source.block(f"elif {tag} == {f.tag}:"):
                    self._value(f, f"{target}.{f.name}", f"{cls.__name__}.{f.name}")
                    self._flush()
                    with source.block(f"if p != {value_end}:"):
                        source.line(f"raise bad_tag_size({cls.__name__ + '.' + f.name!r})")
            with source.block("else:"):
                with source.block(f"if {unknown} is NO_TAGS:"):
                    source.line(f"{unknown} = {{}}")
                source.line(f"{unknown}[{tag}] = bytes(data[p:{value_end}])")
                source.line(f"p = {value_end}")
        source.line(f"{target}.unknown_tagged_fields = {unknown}")

    def _value(self, f: Field, target: str, name: str) -> None:
        nullable = f.nullable.includes(self.version)
        flexible = self.flexible and f.flexible
        if f.is_array:
            self._array(f, target, name, nullable)
        elif f.kind in FIXED:
            self._fixed(FIXED[f.kind][0], target)
        elif f.kind == "struct":
            self._struct_value(f, target, name, nullable)
        elif f.kind == "string":
            self._sized(f.kind, target, name, nullable, flexible, 'str(data[p:{q}], "utf-8", "kafka-replace")')
        else:
            self._sized(
                f.kind, target, name, nullable, flexible, "data[p:{q}]" if f.kind == "records" else "bytes(data[p:{q}])"
            )

    def _struct_value(self, f: Field, target: str, name: str, nullable: bool) -> None:
        source = self.source
        variable = source.variable("o")
        if not nullable:
            self._struct(f.struct, variable)
            source.line(f"{target} = {variable}")
            return
        # The mark in front is -1 for null in the body, but 0 in the tagged section; Kafka writes 1 for what follows.
        mark, null = source.variable("n"), 0 if is_tagged(f, self.version) else -1
        self._fixed("b", mark)
        self._flush()
        with source.block(f"if {mark} == {null}:"):
            source.line(f"{target} = None")
        with source.block(f"elif {mark} < 0:"):
            source.line(f"raise bad_length({name!r}, {mark})")
        with source.block("else:"):
            self._struct(f.struct, variable)
            source.line(f"{target} = {variable}")

    def _length(self, code: str, name: str, flexible: bool) -> str:
        """Read a length; in flexible versions it is one more than the length, and zero stands for null."""
        source = self.source
        length = source.variable("n")
        self._fixed("B" if flexible else code, length)
        self._flush()
        if flexible:
            with source.block(f"if {length} > 127:"):
                source.line(f"{length}, p = finish_uvarint(data, p, {length})")
        return length

    def _null_branch(self, length: str, target: str, name: str, nullable: bool, flexible: bool) -> None:
        """End in the `else:` of the caller: what is neither null nor negative."""
        source = self.source
        with source.block(f"if {length} == {0 if flexible else -1}:"):
            source.line(f"{target} = None" if nullable else f"raise bad_null({name!r})")
        if not flexible:
            with source.block(f"elif {length} < 0:"):
                source.line(f"raise bad_length({name!r}, {length})")

    def _sized(self, kind: str, target: str, name: str, nullable: bool, flexible: bool, read: str) -> None:
        source = self.source
        length = self._length("h" if kind == "string" else "i", name, flexible)
        behind = source.variable("q")
        self._null_branch(length, target, name, nullable, flexible)
        if kind == "string" and flexible:
            with source.block(f"elif {length} > {primitives.MAX_STRING_BYTES + 1}:"):
                source.line(f"raise bad_length({name!r}, {length} - 1)")
        if kind == "string":
            with source.block(f"elif {length} == {1 if flexible else 0}:"):
                source.line(f"{target} = ''")
        with source.block("else:"):
            source.line(f"{behind} = p + {length}" + (" - 1" if flexible else ""))
            source.line(f"{target} = {read.format(q=behind)}")
            source.line(f"p = {behind}")

    def _array(self, f: Field, target: str, name: str, nullable: bool) -> None:
        source = self.source
        count = self._length("i", name, self.flexible)
        smallest = smallest_element(f, self.version, self.flexible)
        self._null_branch(count, target, name, nullable, self.flexible)
        with source.block("else:"):
            if self.flexible:
                source.line(f"{count} -= 1")
            with source.block(f"if {count} > budget or {count} * {smallest} > end - p:"):
                source.line(f"raise bad_count({name!r}, {count}, end - p, budget)")
            source.line(f"budget -= {count}")
            self._elements(f, target, name, count)

    def _elements(self, f: Field, target: str, name: str, count: str) -> None:
        source = self.source
        kind = f.element
        if kind == "uuid":
            source.line(f"{target} = read_uuids(data, p, {count})")
            source.line(f"p += 16 * {count}")
        elif kind in FIXED:
            code, size = FIXED[kind]
            source.line(f"{target} = read_numbers('>{code}', {size}, {count}, data, p)")
            source.line(f"p += {size} * {count}")
        else:
            items, add, item = source.variable("items"), source.variable("add"), source.variable("o")
            source.line(f"{target} = {items} = []")
            source.line(f"{add} = {items}.append")
            with source.block(f"for _ in range({count}):"):
                if kind == "struct":
                    self._struct(f.struct, item)
                else:
                    self._element(f, item, name)
                source.line(f"{add}({item})")

    def _element(self, f: Field, target: str, name: str) -> None:
        """A string, the only type of variable size that occurs as an element."""
        assert f.element == "string", f"{name}: arrays of {f.element} do not occur in the protocol"
        self._sized("string", target, name, False, self.flexible, 'str(data[p:{q}], "utf-8", "kafka-replace")')


_SIZES: Final = dict(FIXED.values())
