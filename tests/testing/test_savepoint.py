"""Savepoints: a broker's state as one file, and files that are none."""

from __future__ import annotations

import asyncio
import io
import json
import os
import random
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import trio
from confluent_kafka import Producer
from crc32c import crc32c

from pykbroker.control.control import Control
from pykbroker.control.savepoints import archive
from pykbroker.control.savepoints.archive import HEAD, MANIFEST, read_manifest
from pykbroker.control.savepoints.saving import save_node
from pykbroker.testing import Broker, Cluster, InvalidSavepoint, SavepointRefused

from .test_broker import ephemeral_directories


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary directories that nobody else has: what is left there is left by the test."""
    path = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A savepoint with records, offsets, a configuration and an open transaction."""
    path = tmp_path_factory.mktemp("savepoint") / "seeded.savepoint"
    with Broker() as broker:
        topic = broker.create_topic("t", partitions=2, configs={"retention.ms": 98765432})
        topic.produce("one", "two", partition=0)
        broker.group("g").commit({("t", 0): 1})
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx"})
        producer.init_transactions(20)
        producer.begin_transaction()
        producer.produce(topic, b"open", partition=1)
        assert producer.flush(20) == 0
        broker.save(path)
        topic.produce("later")
        producer.abort_transaction(20)
    return path


def check_seeded(broker: Broker) -> None:
    topic = broker.topic("t")
    assert topic.values(partition=0) == [b"one", b"two"]
    assert topic.values(partition=1) == []
    assert topic.values(partition=1, read_uncommitted=True) == [b"open"]
    assert topic.configs()["retention.ms"] == "98765432"
    assert list(broker.group("g").offsets().values()) == [1]


def test_a_broker_begins_where_another_one_was_saved(seeded: Path) -> None:
    for _ in range(2):
        with Broker(savepoint=seeded) as broker:
            check_seeded(broker)
            broker.topic("t").produce("new", partition=0)
            broker.kill()
            broker.start()
            assert b"new" in broker.topic("t").values()
            with broker.fork() as fork:
                assert b"new" in fork.topic("t").values()


def test_a_directory_that_stays_begins_with_it_once(seeded: Path, tmp_path: Path) -> None:
    with Broker(savepoint=seeded, data_dir=tmp_path) as broker:
        check_seeded(broker)
        broker.topic("t").produce("new", partition=0)
    with Broker(data_dir=tmp_path) as broker:
        assert broker.topic("t").values(partition=0) == [b"one", b"two", b"new"]
    with pytest.raises(SavepointRefused, match="is not empty"):
        Broker(savepoint=seeded, data_dir=tmp_path).open()
    with Broker(data_dir=tmp_path) as broker:
        assert broker.topic("t").values(partition=0) == [b"one", b"two", b"new"]


def test_a_file_is_for_its_owner_and_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.savepoint"
    before = ephemeral_directories()
    with Broker() as broker:
        broker.save(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        first = path.read_bytes()
        real = archive._write

        def fail(*arguments: object) -> None:
            real(*arguments)  # type: ignore[arg-type]
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(archive, "_write", fail)
            with pytest.raises(SavepointRefused, match=r"cannot be written.*No space left"):
                broker.save(path)
        with pytest.raises(SavepointRefused, match=r"cannot be written.*No such file"):
            broker.save(tmp_path / "none" / "a.savepoint")
        os.mkfifo(tmp_path / "fifo")  # as a device is: another one would not take its place
        with pytest.raises(SavepointRefused, match="something else than a file"):
            broker.save(tmp_path / "fifo")
        (tmp_path / "fifo").unlink()
        long = tmp_path / ("漢" * 85)
        broker.save(long)
        long.unlink()
        broker.stop()
        with pytest.raises(SavepointRefused, match="does not serve"):
            broker.save(path)
    assert path.read_bytes() == first
    assert os.listdir(tmp_path) == ["a.savepoint"]
    assert ephemeral_directories() == before


def test_clocks_go_on_from_where_they_were(tmp_path: Path) -> None:
    path, earlier = tmp_path / "a.savepoint", tmp_path / "b.savepoint"
    with Broker() as broker:
        broker.create_topic("t").produce("old")
        produced = broker.requests("Produce")[-1]
        broker.clock.advance("6d", scope="retention")
        broker.save(path)
        broker.save(earlier, at=produced)
    with Broker(savepoint=path) as broker:
        assert broker.clock.advanced("retention") == timedelta(days=6)
        broker.clock.advance("1d", scope="retention")
        assert broker.topic("t").start_offsets() == {0: 1}
        assert broker.clock.advanced("offsets") == timedelta()
    with Broker(savepoint=earlier) as broker:
        assert broker.clock.advanced("retention") == timedelta()


@pytest.mark.parametrize(
    "clocks",
    [
        7,
        {"retention": 7},
        {"retention": [[1]]},
        {"retention": [[1, 0]]},
        {"retention": [[1, -1]]},
        {"retention": [[1.5, 1]]},
        {"retention": [[True, 1]]},
        {"retention": [[1, 2**63]]},
        {"retention": [[1, 1]] * 1001},
        {"retenton": [[1, 1]]},
    ],
)
def test_clocks_that_make_no_sense_are_refused(clocks: object, tmp_path: Path) -> None:
    assert "its manifest" in refusal_of(make(tmp_path / "evil.savepoint", [], clocks=clocks), tmp_path)


def test_coroutines_save(tmp_path: Path) -> None:
    async def main() -> None:
        async with Broker() as broker:
            await (await broker.create_topic("t")).produce("x")
            await broker.save(tmp_path / "a.savepoint")
        async with Broker(savepoint=tmp_path / "a.savepoint") as broker:
            assert await broker.topic("t").values() == [b"x"]

    asyncio.run(main())


def test_the_node_is_that_of_the_savepoint(tmp_path: Path, seeded: Path) -> None:
    path = tmp_path / "a.savepoint"
    with Broker({"node.id": 7}) as broker:
        broker.save(path)
    with Broker(savepoint=path) as broker:
        assert broker.node_id == 7
    with pytest.raises(SavepointRefused, match=r"is of node 7, and node.id is 1"):
        Broker({"node.id": 1}, savepoint=path).open()
    with pytest.raises(SavepointRefused, match="has 1 log directories"):
        Broker({"log.dirs": [tmp_path / "a", tmp_path / "b"]}, savepoint=seeded).open()
    assert not (tmp_path / "a").exists()
    with Cluster(2) as cluster, pytest.raises(SavepointRefused, match="alone in its cluster"):
        cluster.running_loop().call(save_node, cluster.nodes[0].node, path)


def test_it_is_sent_to_who_asks_over_http(tmp_path: Path) -> None:
    before = ephemeral_directories()
    path = tmp_path / "received"
    with Broker() as broker:
        broker.create_topic("t").produce("x")
        control = Control()
        control.node = broker.nodes[0].node

        async def receive() -> None:
            async with control.savepoints.download() as download:
                assert json.dumps(download.summary)
                with pytest.raises(SavepointRefused, match="is being sent"):
                    async with control.savepoints.download():
                        pass
                with path.open("wb") as file:
                    async for portion in download.portions():
                        file.write(portion)
                assert path.stat().st_size == download.size_bytes

        for _ in range(2):
            broker.running_loop().call(receive)
        with pytest.raises(SavepointRefused, match="does not serve"):
            trio.run(_download_of_nothing)
    with Broker(savepoint=path) as broker:
        assert broker.topic("t").values() == [b"x"]
    assert ephemeral_directories() == before


async def _download_of_nothing() -> None:
    async with Control().savepoints.download():
        pass


# Files that are none


def refusal_of(path: Path, tmp_path: Path) -> str:
    """Begin with a file that must be refused, and check that nothing is left of it. Returns the line."""
    place = tmp_path / "place"
    place.mkdir(exist_ok=True)
    before = ephemeral_directories()
    with pytest.raises((InvalidSavepoint, SavepointRefused)) as refused:
        Broker({"log.dirs": place / "data"}, savepoint=path).open()
    assert not list(place.iterdir())
    assert ephemeral_directories() == before
    assert str(path) in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    return str(refused.value)


Files = list[tuple[str, bytes]]


def make(
    path: Path,
    contents: Files,
    *,
    version: object = 1,
    named: list[list[object]] | None = None,
    members: list[tarfile.TarInfo] | None = None,
    **changed: object,
) -> Path:
    """Write a savepoint as somebody else might. named: the manifest's files; members: in the place of the files."""
    rows = [[name, len(data), crc32c(data), 0] for name, data in contents] if named is None else named
    value = {
        "node_id": 1,
        "cluster_id": "abc",
        "directories": 1,
        "created_ms": 0,
        "clocks": {},
        "files": rows,
        **changed,
    }
    manifest = json.dumps(value).encode()
    head = json.dumps({"version": version, "manifest_bytes": len(manifest), "manifest_crc": crc32c(manifest)}).encode()
    with tarfile.open(path, "w:") as tar:
        for name, data in ((HEAD, head), (MANIFEST, manifest), *(() if members is not None else contents)):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
        for each in members or []:
            tar.addfile(each, io.BytesIO(bytes(each.size)) if each.isreg() else None)
    return path


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../evil",
            "0/../../evil",
            "/etc/evil",
            "0//evil",
            "0/t-0/../evil",
            "0/t-0/a/evil",
            "0",
            "0/",
            "1/evil",
            "-1/a",
        ),
        *("00/evil", "0/..", "0/.", "0/t-0/..", "0/not a partition/evil", "0/nopartition/evil", "0\\evil", "0/\0evil"),
        *("²/evil", "0/" + "a" * 300),
    ],
)
def test_a_path_that_leads_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    path = make(tmp_path / "evil.savepoint", [], named=[[name, 0, 0, 0]], members=[])
    assert "not one of a log directory" in refusal_of(path, tmp_path)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_a_member_that_is_no_plain_file_is_refused(kind: bytes, tmp_path: Path) -> None:
    member = tarfile.TarInfo("0/link")
    member.type, member.linkname = kind, "/etc/passwd"
    path = make(tmp_path / "evil.savepoint", [], named=[["0/link", 0, 0, 0]], members=[member])
    assert "in the place of 0/link" in refusal_of(path, tmp_path)


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (["0/a", 10**15, 0, 0], "cut off or damaged"),
        (["0/a", 10**400, 0, 0], "cut off or damaged|cannot be read"),
        (["0/a", -1, 0, 0], "numbers that no file has"),
        (["0/a", 1, 2**32, 0], "numbers that no file has"),
        (["0/a", 1, 0, 2**60], "numbers that no file has"),
        (["0/a", 1.5, 0, 0], "not described"),
        (["0/a", True, 0, 0], "not described"),
        ([7, 1, 0, 0], "not described"),
        (["0/a", 1], "cannot be read"),
        (7, "cannot be read"),
    ],
)
def test_absurd_numbers_are_refused(row: object, line: str, tmp_path: Path) -> None:
    path = make(tmp_path / "evil.savepoint", [], named=[row], members=[])  # type: ignore[list-item]
    message = refusal_of(path, tmp_path)
    assert any(each in message for each in line.split("|")), message


def test_other_contents_than_named_are_refused(tmp_path: Path) -> None:
    path, data = tmp_path / "evil.savepoint", b"data"
    row = ["0/a", 4, crc32c(data), 0]
    assert "checksum" in refusal_of(make(path, [("0/a", b"dada")], named=[row]), tmp_path)
    assert "5 bytes there, and 4" in refusal_of(make(path, [("0/a", b"data!")], named=[row]), tmp_path)
    assert "in the place of 0/a" in refusal_of(make(path, [("0/b", data)], named=[row]), tmp_path)
    assert "more than its manifest" in refusal_of(make(path, [("0/a", data), ("0/b", data)], named=[row]), tmp_path)
    assert "0/a is missing" in refusal_of(make(path, [], named=[row]), tmp_path)
    assert "not one of a log directory" in refusal_of(make(path, [("0/a", data)] * 2), tmp_path)
    assert "version 2" in refusal_of(make(path, [], version=2), tmp_path)
    assert "does not begin as one" in refusal_of(make(path, [], version="1"), tmp_path)
    for changed in ({"node_id": "1"}, {"cluster_id": "a/b"}, {"directories": 10**9}, {"directories": 0}, {"files": 7}):
        assert "manifest" in refusal_of(make(path, [], **changed), tmp_path)  # type: ignore[arg-type]


def test_a_header_that_wants_memory_gets_none(tmp_path: Path) -> None:
    path = tmp_path / "evil.savepoint"
    for kind in (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.XGLTYPE):
        member = tarfile.TarInfo("x")
        member.type, member.size = kind, 1 << 32
        with path.open("wb") as file:
            file.write(member.tobuf(tarfile.GNU_FORMAT))
            file.truncate(1 << 33)  # as a hole
        assert "larger than any" in refusal_of(path, tmp_path)
    with path.open("wb") as file:
        member.type, member.size = tarfile.GNUTYPE_LONGNAME, 1
        for _ in range(5000):
            file.write(member.tobuf(tarfile.GNU_FORMAT) + b"x".ljust(512, b"\0"))
    assert "is damaged" in refusal_of(path, tmp_path)


@pytest.mark.parametrize("data", [b"", b"hello", bytes(10240), b"\x1f\x8b\x08\0hello", b"\xff" * 5000])
def test_what_is_no_savepoint_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "no.savepoint"
    path.write_bytes(data)
    refusal_of(path, tmp_path)
    path.unlink()
    assert "No such file" in refusal_of(path, tmp_path)
    path.mkdir()
    assert "directory" in refusal_of(path, tmp_path)


def damages(data: bytes) -> Iterator[tuple[str, bytes]]:
    rng = random.Random(16)
    for _ in range(40):
        size = rng.randrange(len(data) - 10240)
        yield f"cut off at {size}", data[:size]
    for _ in range(150):
        at = rng.randrange(len(data))
        damaged = bytearray(data)
        damaged[at] ^= 1 << rng.randrange(8)
        yield f"bit flipped at {at}", bytes(damaged)


def refusal(path: Path, place: Path) -> str:
    """Unpack what may be damaged; return why it is refused, if it is."""
    try:
        manifest = read_manifest(path)
        archive.unpack_archive(path, [place] * manifest.directories, durably=False)
    except InvalidSavepoint as error:
        return str(error)
    return ""


def contents_of(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_whatever_is_damaged_is_refused_or_does_not_matter(
    seeded: Path, tmp_path: Path, remove: Callable[[Path], None]
) -> None:
    """Of the padding, and of fields that nobody reads, nothing matters."""
    data, path, place = seeded.read_bytes(), tmp_path / "damaged", tmp_path / "place"
    archive.unpack_archive(seeded, [place], durably=True)
    sound = contents_of(place)
    remove(place)
    refused = 0
    for what, damaged in damages(data):
        path.write_bytes(damaged)
        line = refusal(path, place)
        assert contents_of(place) == ({} if line else sound), what
        assert len(line.splitlines()) <= 1, what
        refused += bool(line)
        remove(place)
    assert refused >= 80


@pytest.fixture
def remove() -> Callable[[Path], None]:
    import shutil

    return lambda path: shutil.rmtree(path, ignore_errors=True)
