"""What a disk may hold after a crash: the journal of a `RecordingDisk`, cut short, with anything unsynced kept or lost.

The rules are those of POSIX as file systems with a journal keep them (ext4, xfs; "All File Systems Are Not Created
Equal", Pillai et al., 2014):

- What was written is certain after a sync of the file, names after a sync of their directory, and nothing else is:
  neither does the sync of a file keep its name, nor does one directory's sync keep another's names.
- Of the changes to a file since its last sync any first part may be there. The last write of that part may be torn,
  end in zeros, or be a size without bytes; an earlier one may be missing, as zeros, where later ones are there.
- A file that was made shorter may still have its old size, with zeros behind the new end.
- Different files keep different parts. A change of names is atomic. Names may be there before the bytes of their files,
  or without them, and new names in any order, also those of one directory. Only what takes names away from a directory
  keeps its order, as all changes of names do on these file systems: the retention of a log relies on that. A name that
  was durable does not go before what was done to the directory earlier, new names included: a log whose old segments go
  has the new ones.
- A killed process loses nothing that was written; only its last write may be torn.

Each choice at a cut has a name, so that a state can be made again from run, cut and choice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple, TypeAlias

from pykbroker.storage.files.disk import Disk
from tests.storage.recording_disk import (
    Directory,
    Inode,
    NameChange,
    Node,
    Operation,
    RecordingDisk,
    Resize,
    Sync,
    SyncNames,
    Write,
)

SECTOR_BYTES = 512

Kept: TypeAlias = frozenset[int]
"""Numbers of pending changes of names."""
Variant: TypeAlias = tuple[str, bytes]
"""What may have become of a file, in words, and its bytes then."""


@dataclass(frozen=True, slots=True)
class Base:
    """What was durable when the recording began."""

    root: Directory
    names: Mapping[Directory, Mapping[str, Node]]
    data: Mapping[Inode, bytes]


def empty_disk(root: Directory) -> Base:
    return Base(root, {root: {}}, {})


class Choice(NamedTuple):
    """What of the pending changes is there. `label` tells it from the others at the same cut.

    is_killed: the machine went on, only the process ended. is_torn: it ended in the middle of the last operation.
    """

    label: str
    names: Kept
    data: Mapping[Inode, Variant]
    is_killed: bool = False
    is_torn: bool = False


class CrashState(NamedTuple):
    """`key` is the same for states with the same names and bytes."""

    choice: Choice
    key: int
    files: Sequence[tuple[str, Node, bytes | None]]
    """Paths with what is there; None is a directory. Parents come first."""

    def disk(self, before: Disk) -> "tuple[RecordingDisk, Base]":
        """A disk of its own that holds the state, and what a journal of that disk begins with.

        before: the disk that the process or the machine had until then.
        """
        boot_id = before.boot_id() if self.choice.is_killed else f"one after {before.boot_id()}"
        root = Directory(0)
        directories = {"": root}
        data: dict[Inode, bytes] = {}
        for path, node, content in self.files:
            parent, _, name = path.rpartition("/")
            made: Node
            if content is None:
                made = directories[path] = Directory(node.number)
            else:
                made = Inode(node.number, content)
                data[made] = content
            directories[parent].entries[name] = made
        names = {directory: dict(directory.entries) for directory in directories.values()}
        return RecordingDisk(root, boot_id=boot_id), Base(root, names, data)


class Survivors:
    """What is certain to survive a crash, and what may or may not, as operation follows operation."""

    def __init__(self, base: Base) -> None:
        self._root = base.root
        self._names = {directory: dict(entries) for directory, entries in base.names.items()}
        self._data = dict(base.data)
        self._pending_names: list[NameChange] = []
        self._pending_data: dict[Inode, list[Write | Resize]] = {}
        self._variants: dict[Inode, list[Variant]] = {}
        self._last: Operation | None = None

    @classmethod
    def of_new_disk(cls, disk: RecordingDisk) -> "Survivors":
        return cls(empty_disk(disk.root))

    def apply(self, operation: Operation) -> None:
        self._last = operation
        match operation:
            case Write(inode) | Resize(inode):
                self._pending_data.setdefault(inode, []).append(operation)
                self._variants.pop(inode, None)
            case Sync(inode):
                pending = self._pending_data.pop(inode, [])
                self._data[inode] = _contents(self._data.get(inode, b""), pending)[-1]
                self._variants.pop(inode, None)
            case NameChange():
                self._pending_names.append(operation)
            case SyncNames(directory):
                for change in self._pending_names:
                    if _touches(change, directory):
                        _rename(self._names, change)
                self._pending_names = [each for each in self._pending_names if not _touches(each, directory)]

    # Choices

    def choices(self, seed: object, random_choices: int) -> "tuple[list[Choice], list[Choice]]":
        """Those of a crash right now: the plainest ones, and all others; the last of these are random."""
        everything = frozenset(range(len(self._pending_names)))
        nothing: Kept = frozenset()
        named = self._named()
        variants = {inode: self._variants_of(inode) for inode in self._pending_data if inode in named}
        all_data = {inode: each[-1] for inode, each in variants.items()}
        no_data = {inode: each[0] for inode, each in variants.items()}
        plain = [Choice("killed", everything, all_data, is_killed=True)]
        plain += self._killed_in_the_last_write(everything, all_data)
        others: list[Choice] = []
        # The latest name without what it stands on is what somebody has forgotten to sync.
        plainest = {"all", "none", f"only {len(self._pending_names) - 1}"}
        for label, kept in self._name_choices():
            found = plain if label in plainest else others
            found.append(Choice(f"names {label}, data all", kept, all_data))
            found.append(Choice(f"names {label}, data none", kept, no_data))
        for inode, each in variants.items():
            for variant in each:
                for names, kept in (("all", everything), ("none", nothing)):
                    for rest, data in (("all", all_data), ("none", no_data)):
                        label = f"names {names}, data {rest}, but file {inode.number} {variant[0]}"
                        others.append(Choice(label, kept, {**data, inode: variant}))
        for number in range(random_choices):
            rng = Random(f"{seed}/{number}")
            kept = self._random_names(rng)
            data = {inode: rng.choice(each) for inode, each in variants.items()}
            others.append(Choice(f"random {number}", kept, data))
        return plain, others

    def _killed_in_the_last_write(self, everything: Kept, all_data: Mapping[Inode, Variant]) -> Iterator[Choice]:
        if isinstance(self._last, Write) and self._last.inode in all_data:
            inode, position, data = self._last
            before = _contents(self._data.get(inode, b""), self._pending_data[inode][:-1])[-1]
            for size in (len(data) // 2, len(data) - 1):
                torn = (f"torn after {size} bytes", _over(before, position, data[:size]))
                label = f"killed, the last write {torn[0]}"
                yield Choice(label, everything, {**all_data, inode: torn}, is_killed=True, is_torn=True)

    def _named(self) -> set[Node]:
        """What has a name, or may have one after a crash."""
        named = {node for entries in self._names.values() for node in entries.values()}
        named.update(node for each in self._pending_names for _, _, node in each.changes if node is not None)
        return named

    def _variants_of(self, inode: Inode) -> list[Variant]:
        found = self._variants.get(inode)
        if found is None:
            found = self._variants[inode] = _variants(self._data.get(inode, b""), self._pending_data[inode])
        return found

    def _name_choices(self) -> Iterator[tuple[str, Kept]]:
        count = len(self._pending_names)
        before = self._dependencies()
        seen: set[Kept] = set()
        everything = frozenset(range(count))
        choices = [("all", everything), ("none", frozenset[int]())]
        choices += [(f"first {size}", frozenset(range(size))) for size in range(1, count)]
        choices += [(f"all but {number}", everything - _closed_above(number, before)) for number in range(count)]
        choices += [(f"only {number}", _closed_below(number, before)) for number in range(count)]
        for label, kept in choices:
            if kept not in seen:
                seen.add(kept)
                yield label, kept

    def _dependencies(self) -> list[Kept]:
        """For each pending change the earlier ones that it cannot be there without."""
        latest: dict[tuple[Directory, str | None], int] = {}
        before: list[Kept] = []
        for number, change in enumerate(self._pending_names):
            keys: list[tuple[Directory, str | None]] = [(directory, name) for directory, name, _ in change.changes]
            keys += [(directory, None) for directory, _, node in change.changes if node is None]
            needed = {latest[key] for key in keys if key in latest}
            for directory, name, node in change.changes:
                if node is None and name in self._names.get(directory, ()):
                    needed.update(each for each in range(number) if _touches(self._pending_names[each], directory))
            before.append(frozenset(needed))
            latest.update((key, number) for key in keys)
        return before

    def _random_names(self, rng: Random) -> Kept:
        count = len(self._pending_names)
        if rng.random() < 0.4:
            return frozenset(range(rng.randint(0, count)))
        before = self._dependencies()
        kept: set[int] = set()
        for number in range(count):
            if before[number] <= kept and rng.random() < 0.6:
                kept.add(number)
        return frozenset(kept)

    # A state

    def state(self, choice: Choice) -> CrashState:
        kept = choice.names
        names = self._names
        if kept:
            names = dict(names)
            copied: set[Directory] = set()
            for number in sorted(kept):
                change = self._pending_names[number]
                for directory, _, _ in change.changes:
                    if directory not in copied:
                        copied.add(directory)
                        names[directory] = dict(names.get(directory, {}))
                _rename(names, change)
        files: list[tuple[str, Node, bytes | None]] = []
        self._walk("", self._root, names, choice.data, files)
        key = hash(tuple((path, content) for path, _, content in files))
        return CrashState(choice, key, files)

    def _walk(
        self,
        path: str,
        directory: Directory,
        names: Mapping[Directory, Mapping[str, Node]],
        data: Mapping[Inode, Variant],
        files: list[tuple[str, Node, bytes | None]],
    ) -> None:
        entries = names.get(directory)
        if not entries:
            return
        for name in sorted(entries):
            node = entries[name]
            at = f"{path}/{name}"
            if isinstance(node, Directory):
                files.append((at, node, None))
                self._walk(at, node, names, data, files)
            else:
                variant = data.get(node)
                files.append((at, node, self._data.get(node, b"") if variant is None else variant[1]))


def _touches(change: NameChange, directory: Directory) -> bool:
    return any(each is directory for each, _, _ in change.changes)


def _rename(names: dict[Directory, dict[str, Node]], change: NameChange) -> None:
    for directory, name, node in change.changes:
        if node is None:
            names[directory].pop(name, None)
        else:
            names.setdefault(directory, {})[name] = node


def _closed_below(number: int, before: Sequence[Kept]) -> Kept:
    found = {number}
    for each in range(number, -1, -1):
        if each in found:
            found |= before[each]
    return frozenset(found)


def _closed_above(number: int, before: Sequence[Kept]) -> Kept:
    found = {number}
    for each in range(number + 1, len(before)):
        if before[each] & found:
            found.add(each)
    return frozenset(found)


# What may become of one file


def _contents(base: bytes, pending: Sequence[Write | Resize]) -> list[bytes]:
    """After none of the changes, after the first, …"""
    found = [base]
    for operation in pending:
        before = found[-1]
        if isinstance(operation, Write):
            found.append(_over(before, operation.position, operation.data))
        else:
            found.append(before[: operation.size].ljust(operation.size, b"\0"))
    return found


def _over(before: bytes, position: int, data: bytes) -> bytes:
    return before[:position] + data + before[position + len(data) :]


def _variants(base: bytes, pending: Sequence[Write | Resize]) -> list[Variant]:
    """Nothing of the changes first, all of them last."""
    contents = _contents(base, pending)
    whole = contents[-1]
    found: dict[bytes, str] = {base: "as synced"}
    for number, operation in enumerate(pending):
        before = contents[number]
        found.setdefault(before, f"with {number} changes")
        is_last = number + 1 == len(pending)
        if isinstance(operation, Write):
            for size in _torn_sizes(operation, is_last=is_last):
                torn = _over(before, operation.position, operation.data[:size])
                found.setdefault(torn, f"torn in change {number} after {size} bytes")
                zeros = operation.data[:size].ljust(len(operation.data), b"\0")
                with_zeros = _over(before, operation.position, zeros)
                found.setdefault(with_zeros, f"with zeros in change {number} after {size} bytes")
            if not is_last:
                end = operation.position + len(operation.data)
                if end <= len(whole) and whole[operation.position : end] == operation.data:
                    hole = _over(whole, operation.position, bytes(len(operation.data)))
                    found.setdefault(hole, f"without change {number}")
        elif operation.size < len(before) and len(whole) < len(before):
            found.setdefault(whole.ljust(len(before), b"\0"), f"with the size before change {number}")
    found.pop(whole, None)
    variants = [(label, content) for content, label in found.items()]
    if whole == base:
        return [("as synced", base), *variants, ("whole", whole)]
    return [*variants, ("whole", whole)]


def _torn_sizes(write: Write, *, is_last: bool) -> list[int]:
    """In bytes from its start: nothing, in the middle, at a sector's end, all but the last."""
    count = len(write.data)
    if not is_last:
        return [count // 2]
    sizes = {0, 1, count // 2, count - 1}
    to_sector = -write.position % SECTOR_BYTES
    sizes.update(range(to_sector, count, SECTOR_BYTES))
    return sorted(size for size in sizes if 0 <= size < count)
