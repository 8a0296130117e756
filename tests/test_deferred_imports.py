from __future__ import annotations

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from compat_tests.waiting import until
from pykbroker.deferred_imports import deferred


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules: each is written by a test, and forgotten behind it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    importlib.invalidate_caches()
    return tmp_path


def test_a_module_is_executed_when_something_of_it_is_asked_for(modules: Path) -> None:
    told = modules / "told"
    (modules / "seldom_used.py").write_text(f"open({str(told)!r}, 'x').close()\nvalue = 7\n")
    (modules / "a_library.py").write_text("import seldom_used\ndef used(): return seldom_used.value\n")
    with deferred("seldom_used"):
        library = importlib.import_module("a_library")
    assert not told.exists()
    assert library.used() == library.used() == 7
    assert told.exists()


def test_another_import_executes_nothing(modules: Path) -> None:
    (modules / "seldom_used.py").write_text("raise RuntimeError('executed')\n")
    for name in ("first", "second"):
        (modules / f"{name}.py").write_text("import seldom_used\ndef used(): return seldom_used.value\n")
    with deferred("seldom_used"):
        first = importlib.import_module("first")
    second = importlib.import_module("second")
    for library in (first, second, first):
        with pytest.raises(RuntimeError, match="executed"):
            library.used()


def test_two_threads_get_the_whole_of_it(modules: Path) -> None:
    """The second asks while the first one executes it."""
    (modules / "seldom_used.py").write_text(
        "import gate, seldom_used\n"
        "assert not hasattr(seldom_used, 'value')\n"
        "gate.entered.set()\n"
        "gate.opened.wait(60)\n"
        "value = 7\n"
    )
    (modules / "gate.py").write_text("import threading\nentered, opened = threading.Event(), threading.Event()\n")
    (modules / "a_library.py").write_text("import seldom_used\ndef used(): return seldom_used.value\n")
    with deferred("seldom_used"):
        library = importlib.import_module("a_library")
    gate = importlib.import_module("gate")
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(library.used)
        assert gate.entered.wait(60)
        second = threads.submit(library.used)
        until(second.running, "the second thread asks")
        gate.opened.set()
        assert first.result() == second.result() == 7


def test_a_part_of_a_package_is_deferred_alone(modules: Path) -> None:
    (modules / "a_package").mkdir()
    (modules / "a_package" / "__init__.py").write_text("name = 'package'\n")
    (modules / "a_package" / "fails.py").write_text("raise RuntimeError('executed')\n")
    with deferred("a_package.fails"):
        importlib.import_module("a_package.fails")
    package = sys.modules["a_package"]
    assert package.name == "package"
    with pytest.raises(RuntimeError, match="executed"):
        assert package.fails.value


def test_a_module_that_is_not_there_is_missing_as_ever(modules: Path) -> None:
    with deferred("there_is_none"), pytest.raises(ModuleNotFoundError):
        importlib.import_module("there_is_none")


def test_later_imports_are_as_before(modules: Path) -> None:
    finders = list(sys.meta_path)
    (modules / "fails.py").write_text("raise RuntimeError('executed')\n")
    with pytest.raises(KeyError), deferred("fails"):
        raise KeyError
    assert sys.meta_path == finders
    with pytest.raises(RuntimeError, match="executed"):
        importlib.import_module("fails")
