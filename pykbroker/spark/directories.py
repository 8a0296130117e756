"""Directories on whatever file system Hadoop has for their paths (`file:`, `hdfs:`, `s3a:` …).

`create_text` is exclusive: of two runs that write the same name, one gets False. A local file is linked to its name,
which the kernel does for one of them; elsewhere `FileContext.rename` does it without overwriting, which HDFS does in
one step. Object stores without such a step need a lock around the runs (`docs/spark.md`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadOptions, JobFailed, NoRoom
from .jvm import hadoop_configuration, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopDirectory:
    """Paths are below `root`, with `/` between their parts. Errors of the file system are NoRoom or JobFailed."""

    def __init__(self, spark: SparkSession, root: str) -> None:
        jvm = jvm_of(spark)
        self._jvm = jvm
        self._configuration = hadoop_configuration(spark)
        with _file_errors(root):
            path = jvm.org.apache.hadoop.fs.Path(root)
            self._system = path.getFileSystem(self._configuration)
            self._root = self._system.makeQualified(path)
        self.root: str = self._root.toString()
        self._root_uri: str = jvm.org.apache.hadoop.fs.Path(self.root).toUri().toString()
        self._local = Path(self._root.toUri().getPath()) if self._root.toUri().getScheme() == "file" else None

    def uri(self, path: str) -> str:
        return f"{self.root}/{path}"

    def file_path(self, path: str) -> str:
        """The path as Spark's `_metadata.file_path` has it: what URIs cannot have in the root's path is escaped."""
        return f"{self._root_uri}/{path}"

    def exists(self, path: str = "") -> bool:
        with _file_errors(path or self.root):
            return bool(self._system.exists(self._path(path)))

    def names(self, path: str = "") -> list[str]:
        """The names in a directory, sorted; none where it does not exist."""
        with _file_errors(path or self.root):
            if not self._system.exists(self._path(path)):
                return []
            return sorted(status.getPath().getName() for status in self._system.listStatus(self._path(path)))

    def files(self, path: str) -> list[tuple[str, int]]:
        """All files below a directory, without hidden ones, as path and size in bytes."""
        found = []
        with _file_errors(path or self.root):
            statuses = self._system.listFiles(self._path(path), True)
            while statuses.hasNext():
                status = statuses.next()
                at = status.getPath().toString().removeprefix(f"{self.root}/")
                if not at.rpartition("/")[2].startswith(("_", ".")):
                    found.append((at, status.getLen()))
        return sorted(found)

    def read_text(self, path: str) -> str:
        with _file_errors(path or self.root):
            stream = self._system.open(self._path(path))
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def create_text(self, path: str, text: str) -> bool:
        """Write a file that is there whole or not at all; False, and nothing changes, where the name is taken."""
        from py4j.protocol import Py4JJavaError

        if self._local is not None:
            return _create_local(self._local / path, text.encode())
        with _file_errors(path or self.root):
            target = self._path(path)
            partial = self._jvm.org.apache.hadoop.fs.Path(target.getParent(), _beside(target.getName()))
            try:
                self._write(partial, text)
                return self._take_name(partial, target)
            finally:
                with contextlib.suppress(Py4JJavaError):
                    self._system.delete(partial, False)

    def _write(self, path: Any, text: str) -> None:
        stream = self._system.create(path, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _take_name(self, source: Any, target: Any) -> bool:
        """Rename a file; False where the name is taken."""
        from py4j.protocol import Py4JJavaError

        context = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(self._root.toUri(), self._configuration)
        none = self._jvm.org.apache.hadoop.fs.Options.Rename.valueOf("NONE")
        array = self._jvm.java.lang.reflect.Array.newInstance(none.getDeclaringClass(), 1)
        array[0] = none
        try:
            context.rename(source, target, array)
        except Py4JJavaError as error:
            if "FileAlreadyExists" not in str(error):
                raise
            return False
        return True

    def move(self, source: str, target: str) -> bool:
        """False where `source` is not there; the directory of `target` is made."""
        with _file_errors(target):
            at = self._path(target)
            if not self._system.exists(self._path(source)):
                return False
            self._system.mkdirs(at.getParent())
            return bool(self._system.rename(self._path(source), at))

    def delete(self, path: str) -> None:
        """A file, or a directory with all that is in it; nothing happens where it is not there."""
        with _file_errors(path or self.root):
            self._system.delete(self._path(path), True)

    def sync(self, paths: list[str]) -> None:
        """Make local files durable, with their names. Other file systems do it when a file is closed, or never."""
        if self._local is None:
            return
        directories = {str(parent) for path in paths for parent in Path(path).parents}
        for path in (*paths, *sorted(directories)):
            with _file_errors(path or self.root):
                _fsync(self._local / path)

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, path) if path else self._root


def _beside(name: str) -> str:
    """The name of what becomes the file of that name, and nobody else's: runs may be threads of one process, and
    processes of two containers have the same id.
    """
    return f".{name}.{uuid.uuid4().hex}"


def _create_local(path: Path, content: bytes) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(_beside(path.name))
    try:
        partial.write_bytes(content)
        _fsync(partial)
        os.link(partial, path)
    except FileExistsError:
        return False
    except OSError as error:
        raise _of_file(error, str(path)) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
    _fsync(path.parent)
    return True


def _fsync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextlib.contextmanager
def _file_errors(path: str) -> Iterator[None]:
    from py4j.protocol import Py4JJavaError

    try:
        yield
    except Py4JJavaError as error:
        text = str(error.java_exception.getMessage() or error.java_exception)
        if "No space left on device" in text or "quota" in text.lower():
            raise NoRoom(f"No room for {path}: {text}") from None
        if "No FileSystem for scheme" in text or "ClassNotFoundException" in text:
            raise BadOptions(f"{text} ({path}): Spark needs the jars of that file system") from None
        raise JobFailed(f"{path}: {text}") from None
    except OSError as error:
        raise _of_file(error, path) from None


def _of_file(error: OSError, path: str) -> NoRoom | JobFailed:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NoRoom(f"No room for {path}: {error.strerror}")
    return JobFailed(f"{path}: {error.strerror}")
