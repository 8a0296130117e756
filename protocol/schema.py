"""The declaration of a message of the Kafka protocol, and what it knows.

A declaration is a class with one `field` per entry of Kafka's JSON schema. It says which versions carry the field,
where it may be null, and what value it has when a version leaves it out. The bytes are the business of `compile`.

    class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible="4+"):
        group_id: str = field("string")
        group_instance_id: str | None = field("string", "3+", nullable="3+", default=None)

Structs are named in annotations and looked up at first use, so a module may read from the message down to its parts.
Every field has a default, so that messages are built by keyword. A UUID is 16 raw `bytes` (`uuids` has its text).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar, dataclass_transform

NO_UUID: Final = bytes(16)
"""Kafka's zero UUID, which stands for "no id"."""

_UNSET: Final[Any] = object()
_NEWEST: Final = 32767


class Versions(NamedTuple):
    """A range of versions, both ends included; `high < low` is the empty range."""

    low: int
    high: int

    def includes(self, version: int) -> bool:
        """Tell whether the version is in the range."""
        return self.low <= version <= self.high

    def __str__(self) -> str:
        if self.high < self.low:
            return "none"
        if self.high == _NEWEST:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


@cache
def parse_versions(text: str) -> Versions:
    """Kafka's notation: `3+`, `0-12`, `4`, `none`."""
    if text == "none":
        return Versions(0, -1)
    if text.endswith("+"):
        return Versions(int(text[:-1]), _NEWEST)
    low, _, high = text.partition("-")
    return Versions(int(low), int(high or low))


class RecordsRegion(Protocol):
    """Record batches that stay where they are (a slice of a log file) until the transport sends them.

    A `records` field of a message that is encoded may hold one in the place of bytes.
    """

    @property
    def size(self) -> int: ...


def _refuse_change(*_: object, **__: object) -> NoReturn:
    raise TypeError("unknown_tagged_fields: assign a new dict instead of changing the shared empty one")


class _NoTags(dict[int, bytes]):
    """The one shared value of `unknown_tagged_fields` where there are none; assign a new dict to add some."""

    __slots__ = ()
    __setitem__: Any = _refuse_change
    __delitem__: Any = _refuse_change
    __ior__: Any = _refuse_change
    update: Any = _refuse_change
    setdefault: Any = _refuse_change
    pop: Any = _refuse_change
    popitem: Any = _refuse_change
    clear: Any = _refuse_change

    def __copy__(self) -> _NoTags:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> _NoTags:
        return self

    def __reduce__(self) -> str:
        return "NO_TAGS"


NO_TAGS: Final = _NoTags()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
    """One entry of a schema. `kind` is Kafka's type, with `struct` in place of a struct's name."""

    name: str
    kind: str
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    default: Any
    ignorable: bool
    map_key: bool
    flexible: bool
    annotation: str
    module: str

    @property
    def is_array(self) -> bool:
        return self.kind.startswith("[]")

    @property
    def element(self) -> str:
        """The type of one element of an array, or the type itself."""
        return self.kind.removeprefix("[]")

    @property
    def struct(self) -> type[Struct]:
        """The class of a struct field, or of a struct array's elements."""
        name = re.sub(r"^list\[(.*)\]$", r"\1", self.annotation.removesuffix(" | None"))
        found: type[Struct] = vars(sys.modules[self.module])[name]
        assert issubclass(found, Struct), (
            f"{self.module}: {self.name} is declared as a struct, its annotation is {name}"
        )
        return found

    def new_default(self) -> Any:
        """The value in versions that lack the field; a fresh one where it is mutable."""
        if self.default is not _UNSET:
            return self.default
        if self.is_array:
            return []
        if self.kind == "struct":
            return self.struct()
        return _ZERO_VALUES[self.kind]


_ZERO_VALUES: Final[dict[str, Any]] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "string": "",
    "uuid": NO_UUID,
    "bytes": b"",
    "records": None,
}


class _Declared(NamedTuple):
    options: dict[str, Any]


def field(
    type: str,
    versions: str = "0+",
    *,
    nullable: str = "none",
    default: Any = _UNSET,
    tag: int | None = None,
    tagged: str = "none",
    ignorable: bool = False,
    map_key: bool = False,
    flexible: bool = True,
) -> Any:
    """Declare a field of a message or struct.

    `tagged` are the versions in which it travels in the tagged section, under number `tag`. `ignorable` fields are
    dropped in versions that lack them; others refuse to be encoded there unless they have their default.
    `flexible=False` keeps a string in its old form for ever (the request header's client id). `map_key` is the schema's
    `mapKey`: Kafka finds an element of the array by this field.
    """
    return _Declared(
        {
            "kind": type,
            "versions": parse_versions(versions),
            "nullable": parse_versions(nullable),
            "tagged": parse_versions(tagged),
            "tag": tag,
            "default": default,
            "ignorable": ignorable,
            "map_key": map_key,
            "flexible": flexible,
        }
    )


Codec: TypeAlias = Callable[..., Any]


@dataclass(slots=True, kw_only=True, eq=False)
class Schema:
    """The knowledge of a declared class of itself; the generated codecs are kept here, one per version.

    listeners: the kinds of listeners that the schema names, such as `broker` and `controller`; empty but for requests.
    """

    name: str
    fields: tuple[Field, ...]
    versions: Versions
    flexible: Versions
    api_key: int | None
    listeners: tuple[str, ...]
    latest_version_unstable: bool
    decoders: dict[int, Codec]
    encoders: dict[int, Codec]
    struct_encoders: dict[tuple[StructType, int], Codec]
    """Of a message's structs, for those who encode them ahead."""

    @property
    def stable_versions(self) -> Versions:
        """The versions that a broker advertises."""
        return self.versions._replace(high=self.versions.high - 1) if self.latest_version_unstable else self.versions


def _generate_init_and_call(self: Struct, **values: Any) -> None:
    """The constructor of every class until its first use, which replaces it: imports need not pay for it."""
    cls = type(self)
    parameters, body = [], ["self.unknown_tagged_fields = unknown_tagged_fields"]
    names: dict[str, Any] = {"NO_TAGS": NO_TAGS, "UNSET": _UNSET}
    for f in cls.__schema__.fields:
        if f.default is _UNSET and (f.is_array or f.kind == "struct"):
            names[f"new_{f.name}"] = list if f.is_array else f.struct
            parameters.append(f"{f.name}=UNSET")
            body.append(f"self.{f.name} = new_{f.name}() if {f.name} is UNSET else {f.name}")
        else:
            names[f"default_{f.name}"] = f.new_default()
            parameters.append(f"{f.name}=default_{f.name}")
            body.append(f"self.{f.name} = {f.name}")
    parameters.append("unknown_tagged_fields=NO_TAGS")
    source = f"def __init__(self, *, {', '.join(parameters)}):\n    " + "\n    ".join(body)
    exec(compile(source, f"<{cls.__name__}.__init__>", "exec"), names)  # noqa: S102 - compiled from declarations
    names["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    type.__setattr__(cls, "__init__", names["__init__"])
    names["__init__"](self, **values)


@dataclass_transform(kw_only_default=True, eq_default=True)
class StructType(type):
    """Turns the declaration into a class with slots, a keyword constructor and a `__schema__`."""

    __schema__: Schema

    def __new__(
        mcls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        api_key: int | None = None,
        versions: str = "0+",
        flexible: str = "0+",
        listeners: str = "",
        latest_version_unstable: bool = False,
    ) -> StructType:
        annotations = namespace.get("__annotations__", {})
        declared = {key: value.options for key, value in namespace.items() if isinstance(value, _Declared)}
        module = namespace["__module__"]
        fields = tuple(
            Field(name=key, annotation=annotations[key], module=module, **options) for key, options in declared.items()
        )
        namespace = {key: value for key, value in namespace.items() if key not in declared}
        namespace["__slots__"] = tuple(declared) if bases else ("unknown_tagged_fields",)
        namespace.pop("unknown_tagged_fields", None)
        namespace["__init__"] = _generate_init_and_call
        cls = super().__new__(mcls, name, bases, namespace)
        cls.__schema__ = Schema(
            name=name,
            fields=fields,
            versions=parse_versions(versions),
            flexible=parse_versions(flexible),
            api_key=api_key,
            listeners=tuple(listeners.split()),
            latest_version_unstable=latest_version_unstable,
            decoders={},
            encoders={},
            struct_encoders={},
        )
        return cls


class Struct(metaclass=StructType):
    """A part of a message. Its versions are those of the message that holds it.

    unknown_tagged_fields: the bytes of tagged fields that the schema does not have, by tag. The empty dict is shared by
    all structs without any: assign a new one.
    """

    __slots__: ClassVar[tuple[str, ...]]
    __schema__: ClassVar[Schema]
    unknown_tagged_fields: dict[int, bytes] = NO_TAGS

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        if self.unknown_tagged_fields != getattr(other, "unknown_tagged_fields", None):
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        # Opaque bytes are shown by their size: they are long, and some of them are secrets.
        shown = [f"{f.name}={_shown(f, getattr(self, f.name))}" for f in type(self).__schema__.fields]
        if self.unknown_tagged_fields:
            shown.append(f"unknown_tagged_fields=<tags {sorted(self.unknown_tagged_fields)}>")
        return f"{type(self).__name__}({', '.join(shown)})"


class Message(Struct):
    """A request, a response, a header, or a record of one of the internal topics: what has versions of its own."""


MessageT = TypeVar("MessageT", bound=Message)


def _shown(described: Field, value: object) -> str:
    if described.kind == "bytes" and isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if described.kind == "records" and isinstance(value, (bytes, memoryview)):
        return f"<{len(value)} bytes>"
    return repr(value)
