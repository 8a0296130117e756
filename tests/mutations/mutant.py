"""A mutant is the product with one bug in it: what is changed in which file, and which tests are asked about it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PACKAGES = {
    "storage": "storage",
    "raft": "raft",
    "replication": "pykbroker/replication",
    "transactions": "pykbroker/transactions",
    "groups": "pykbroker/groups",
    "metadata": "pykbroker/metadata",
    "server": "pykbroker/server",
    "security": "pykbroker/security",
    "control": "pykbroker/control",
}
"""The folders of the packages whose tests are examined. Each has a folder of its name under `tests/`."""


@dataclass(frozen=True)
class Mutant:
    """One changed file.

    path: of the file, from the root of the tree. text: the changed one. first: the tests that are asked first.
    survives: why no test can find it, or None where one must.
    """

    name: str
    package: str
    path: str
    text: str
    first: tuple[str, ...]
    survives: str | None = None


def meaning(text: str) -> str:
    """Return what a module does, whatever its comments, docstrings and annotations are. Raises SyntaxError."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.returns = None
            case ast.arg():
                node.annotation = None
            case ast.AnnAssign():
                node.annotation = ast.Constant(None)
        if hasattr(node, "body") and isinstance(node.body, list):
            node.body = [each for each in node.body if not _is_text(each)]
    return ast.dump(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
