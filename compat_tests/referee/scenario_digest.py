"""The digest of a scenario: of its test module, of every module of this repository that it imports, and of its
conftest files.

A digest is over syntax trees. Comments, docstrings, annotations of functions and formatting do not count, and every
supported version of Python gives the same digest.

Two kinds of modules are outside of it:

- The package `pykbroker`. Apache Kafka's answer does not depend on it, except through the bytes of the requests that
  its codecs make; and these are held against Kafka's own schemas and classes by the tests of `tests/protocol`.
- INFRASTRUCTURE, which decides where a broker runs and what becomes of its answers, and not what it is asked. What of
  it reaches a broker, its properties, stands in PROPERTIES, which is part of every digest.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("compat_tests", "spark_compat", "tests")
"""The packages whose modules count."""
OUTSIDE = ("pykbroker",)

_DOTTED_NAME = re.compile(r"\w+(\.\w+)+")

PROPERTIES = "compat_tests/broker_properties.py"
INFRASTRUCTURE = {
    "conftest.py": "skips what cannot run here",
    "compat_tests/conftest.py": "chooses and starts brokers, and names topics",
    "compat_tests/brokers.py": "starts and stops processes, and takes ports",
    "compat_tests/ports.py": "takes ports",
    "compat_tests/waiting.py": "waits for what a scenario says, and knows how long",
    "compat_tests/answers.py": "compares answers",
    "compat_tests/loop_holds.py": "looks into the logs of pykbroker",
    "compat_tests/apache_kafka/__init__.py": "finds Java and the jars",
    "compat_tests/apache_kafka/jars.py": "fetches the jars; KAFKA_VERSION is in every stamp",
    "compat_tests/apache_kafka/java.py": "finds Java",
    "compat_tests/apache_kafka/class_archive.py": "makes JVMs start faster",
    "compat_tests/apache_kafka/broker.py": "starts Apache Kafka",
    "compat_tests/apache_kafka/tools.py": "runs the tools with the arguments that a scenario gives",
    "tests/conftest.py": "watches over the event loops of unit tests",
}


@functools.cache
def digest(module: Path) -> str:
    """Of a test module: 16 hexadecimal digits."""
    whole = hashlib.sha256()
    for path in sorted({*scenario_files(module), ROOT / PROPERTIES}):
        whole.update(f"{path.relative_to(ROOT)} {_file_digest(path)}\n".encode())
    return whole.hexdigest()[:16]


def scenario_files(module: Path) -> set[Path]:
    """The files that count for a test module, itself among them."""
    found: set[Path] = set()
    due = [module, *_conftests(module)]
    while due:
        path = due.pop()
        if path not in found and str(path.relative_to(ROOT)) not in INFRASTRUCTURE:
            found.add(path)
            due += _imported_files(path)
    return found


def _conftests(module: Path) -> list[Path]:
    return [path for folder in module.parents if (path := folder / "conftest.py").exists() and ROOT in path.parents]


@functools.cache
def _imported_files(path: Path) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(file for node in ast.walk(_tree(path)) for file in _named_files(node, path)))


def _named_files(node: ast.AST, path: Path) -> Iterator[Path]:
    """Imported, or named in a text, as programs are that a scenario starts: `python -m compat_tests.program`."""
    match node:
        case ast.Import() | ast.ImportFrom():
            for name in _names(node, path):
                yield from _files(name)
        case ast.Constant(value=str(text)) if _DOTTED_NAME.fullmatch(text):
            yield from _files(text)
            if text.endswith(".py") and (program := path.with_name(text)).exists():
                yield program


def _names(node: ast.Import | ast.ImportFrom, path: Path) -> Iterator[str]:
    """Every module that the statement may import, by its whole name."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    base = _base(node, path)
    yield base
    yield from (f"{base}.{alias.name}" for alias in node.names)


def _base(node: ast.ImportFrom, path: Path) -> str:
    folders = list(path.relative_to(ROOT).parent.parts)
    start = folders[: len(folders) - node.level + 1] if node.level else []
    return ".".join([*start, *([node.module] if node.module else [])])


def _files(name: str) -> Iterator[Path]:
    """The module's file, and those of the packages around it: to import it runs them."""
    parts = name.split(".")
    if parts[0] not in PACKAGES:
        return
    for length in range(1, len(parts) + 1):
        place = ROOT.joinpath(*parts[:length])
        yield from (file for file in (place.with_suffix(".py"), place / "__init__.py") if file.exists())


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


@functools.cache
def _file_digest(path: Path) -> str:
    return source_digest(_tree(path), path)


def source_digest(tree: ast.Module, path: Path) -> str:
    """Of a module at this path."""
    words: list[str] = []
    _write_shape(tree, path, words)
    return hashlib.sha256("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()


def _write_shape(node: object, path: Path, words: list[str]) -> None:
    """The syntax tree as words. Fields that are empty are left out: which ones a node has depends on the version."""
    if isinstance(node, list):
        for each in node:
            _write_shape(each, path, words)
        words.append("]")
    elif not isinstance(node, ast.AST):
        words.append(repr(node))
    elif not _is_docstring(node) and not _is_counted_elsewhere(node, path):
        words.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(node, ast.JoinedStr):
                value = _without_empty_texts(node.values)
            if _counts(node, name, value):
                words.append(name)
                _write_shape(value, path, words)
        words.append(")")


def _counts(node: ast.AST, name: str, value: object) -> bool:
    if isinstance(node, ast.Constant):
        return name == "value"
    is_annotation = name in ("annotation", "returns") and not isinstance(node, ast.AnnAssign)
    return value is not None and value != [] and not is_annotation


def _without_empty_texts(parts: list[ast.expr]) -> list[ast.expr]:
    """Python 3.12.1 has one at the end of a format that ends with a field."""
    return [each for each in parts if not (isinstance(each, ast.Constant) and each.value == "")]


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_counted_elsewhere(node: ast.AST, path: Path) -> bool:
    """An import of a file of the scenario itself, or of what is outside."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return False
    return all(name.split(".")[0] in (*PACKAGES, *OUTSIDE) for name in _names(node, path))
