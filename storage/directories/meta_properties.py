"""`meta.properties`: whose log directory this is (`MetaProperties`, version 1), in Java's properties format."""

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass

from ..files.disk import Disk
from ..files.errors import InconsistentDirectory

FILE_NAME = "meta.properties"
VERSION = 1


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """`directory_id` is a UUID in Kafka's base64 text; None in a directory that an old Kafka formatted."""

    cluster_id: str
    node_id: int
    directory_id: str | None = None


def read_meta_properties(disk: Disk, directory: str) -> MetaProperties | None:
    """Return None where the directory is not formatted. Raises `InconsistentDirectory` for a damaged file."""
    path = posixpath.join(directory, FILE_NAME)
    if not disk.exists(path):
        return None
    properties = parse_properties(disk.read_file(path).decode("utf-8", "replace"))
    version = properties.get("version")
    if version != str(VERSION):
        raise InconsistentDirectory(f"{path} has version {version!r}; only {VERSION} can be used")
    try:
        node_id = int(properties["node.id"])
        cluster_id = properties["cluster.id"]
    except (KeyError, ValueError):
        raise InconsistentDirectory(f"{path} lacks a sound node.id or cluster.id") from None
    if not cluster_id:
        raise InconsistentDirectory(f"{path} lacks a cluster.id")
    return MetaProperties(cluster_id, node_id, properties.get("directory.id"))


def write_meta_properties(disk: Disk, directory: str, meta: MetaProperties) -> None:
    """Durable when it returns."""
    lines = ["#"]
    if meta.directory_id is not None:
        lines.append(f"directory.id={meta.directory_id}")
    lines += [f"cluster.id={meta.cluster_id}", f"version={VERSION}", f"node.id={meta.node_id}", ""]
    disk.replace_file(posixpath.join(directory, FILE_NAME), "\n".join(lines).encode())


def parse_properties(text: str) -> Mapping[str, str]:
    """Keys and values without the escapes and continued lines that no writer of these files uses."""
    properties: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, _, value = stripped.partition("=")
            properties[key.strip()] = value.strip().replace("\\:", ":").replace("\\=", "=")
    return properties
