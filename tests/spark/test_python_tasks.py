"""What a task of Python need not do again, and what it must."""

from __future__ import annotations

import importlib
import subprocess
import sys
import zipfile
import zipimport
from pathlib import Path

import pytest

from pykbroker.spark.python_tasks import keep_archive_lists


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The archives whose lists are read."""
    read = zipimport._read_directory  # type: ignore[attr-defined]
    found: list[str] = []

    def noted(archive: str) -> object:
        found.append(archive)
        return read(archive)

    monkeypatch.setattr(zipimport, "_read_directory", noted)
    monkeypatch.setattr(zipimport.zipimporter, "invalidate_caches", zipimport.zipimporter.invalidate_caches)
    return found


def test_the_list_of_an_archive_is_read_again_where_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reads: list[str]
) -> None:
    archive = tmp_path / "modules.zip"

    def write(*modules: str) -> None:
        with zipfile.ZipFile(archive, "w") as file:
            for module in modules:
                file.writestr(f"{module}.py", f"NAME = {module!r}")

    write("first_of_archive")
    monkeypatch.syspath_prepend(archive)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    assert importlib.import_module("first_of_archive").NAME == "first_of_archive"
    keep_archive_lists()
    for _ in range(3):
        importlib.invalidate_caches()
        with pytest.raises(ImportError):  # Python 3.13 reads when it looks
            importlib.import_module("second_of_archive")
    before = len(reads)
    for _ in range(3):
        importlib.invalidate_caches()
        with pytest.raises(ImportError):
            importlib.import_module("second_of_archive")
    assert str(archive) not in reads[before:]
    write("first_of_archive", "second_of_archive")
    importlib.invalidate_caches()
    assert importlib.import_module("second_of_archive").NAME == "second_of_archive"
    archive.unlink()
    importlib.invalidate_caches()
    with pytest.raises(ImportError):
        importlib.import_module("third_of_archive")


def test_this_python_is_another_one_only_where_tasks_run() -> None:
    """Whoever imports the pipeline keeps Python's own import system."""
    program = (
        "import zipimport; before = zipimport.zipimporter.invalidate_caches; import pykbroker.spark.writing.task; "
    )
    check = "print(before is zipimport.zipimporter.invalidate_caches)"
    done = subprocess.run([sys.executable, "-c", program + check], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
