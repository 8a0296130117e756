"""The things that a start takes of the system first: descriptors, a port file, the directory that its flags name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .command import CommandFailed

if TYPE_CHECKING:
    from .port_file import PortFile


def allow_all_descriptors() -> None:
    """Raise the limit of open files to what the system allows, as the JVM does for Apache Kafka.

    Shells begin with 1,024, which segments and connections soon use up.
    """
    import resource

    _, allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # where the system says "unlimited" and does not mean it, as macOS does
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))


@contextmanager
def announced_in(path: Path | None) -> Iterator[PortFile | None]:
    if path is None:
        yield None
        return
    from .port_file import PortFile

    file = PortFile(path)
    file.prepare()
    try:
        yield file
    finally:
        file.remove()


@contextmanager
def directory_of_flags(data_dir: Path | None, ephemeral: bool) -> Iterator[Path | None]:
    if not ephemeral:
        yield data_dir
        return
    from pykbroker.server.runtime.ephemeral_directories import ephemeral_directory

    with ExitStack() as stack:
        try:
            path = stack.enter_context(ephemeral_directory())
        except OSError as error:
            raise CommandFailed(f"--ephemeral: no temporary directory can be made: {error.strerror or error}") from None
        yield path
