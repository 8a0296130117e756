"""The files of the console's pages: part of the package, read when they are asked for first, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from zlib import crc32

from starlette.requests import Request
from starlette.responses import Response

from .checks import HEADERS

_CONTENT_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
SHELL: Final = "index.html"
_DIRECTORY: Final = Path(__file__).parent / "static"


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    content_type: str
    tag: str


class StaticFiles:
    """All files below `static/`, by their paths in it."""

    def __init__(self) -> None:
        self._files: dict[str, _File] | None = None

    def answer(self, request: Request, path: str, status: int = 200) -> Response | None:
        """Return the file, or 304 where the browser has it already; None where there is no such file."""
        if self._files is None:
            self._files = dict(_read())
        file = self._files.get(path)
        if file is None:
            return None
        headers = {"etag": file.tag, "cache-control": "no-cache", **HEADERS}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, status, headers, file.content_type)


def _read() -> Iterator[tuple[str, _File]]:
    for path in _DIRECTORY.rglob("*"):
        if path.suffix in _CONTENT_TYPES:
            content = path.read_bytes()
            tag = f'"{len(content):x}-{crc32(content):x}"'
            yield path.relative_to(_DIRECTORY).as_posix(), _File(content, _CONTENT_TYPES[path.suffix], tag)
