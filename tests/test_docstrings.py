"""Docstrings open with their subject: a noun, or for a function the imperative of a verb.

A reader of one docstring does not know what "it" is, to whom "of" belongs, or who "takes". Words that open such a
sentence are refused here, as is a docstring that explains parameters and does not say what the thing is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("protocol", "storage", "raft", "pykbroker")

PRONOUNS = (
    "it its they their them he she we you i who whoever what whatever which whichever others everybody nobody "
    "somebody nothing everything something anything none"
)
PREPOSITIONS_AND_CONJUNCTIONS = (
    "of in on at by for from to with without within below above behind before after between among through over under "
    "until till since during beside besides against into onto out off up down as than per via because where when while "
    "if so unless although though how why whether inside outside except instead not only even just and or but"
)
AUXILIARIES = "is are was were be been has had may might must can could shall should will would does did"
VERBS_WITHOUT_SUBJECT = (
    "adds applies asks begins builds carries chooses closes commits computes creates cuts decides decodes deletes "
    "drops encodes fails fences finds follows gives goes holds keeps leaves lets loads makes opens prints puts "
    "reads removes replaces returns runs says sets sorts stands takes tells tries waits writes yields"
)
OPENS_WITHOUT_SUBJECT = frozenset(
    f"{PRONOUNS} {PREPOSITIONS_AND_CONJUNCTIONS} {AUXILIARIES} {VERBS_WITHOUT_SUBJECT}".split()
)

_FIRST_WORD = re.compile(r"[`'\"(*]*([A-Za-z]+)")
_PARAMETER = re.compile(r"[a-z_]+(, [a-z_]+| and [a-z_]+)*: ")


def lacks_subject(docstring: str) -> bool:
    first = _FIRST_WORD.match(docstring)
    is_word = first is not None and first[1].lower() in OPENS_WITHOUT_SUBJECT
    return is_word or _PARAMETER.match(docstring) is not None


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """The docstrings of a file's module, classes and functions, with their lines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def files(layer: str) -> Iterator[Path]:
    for path in sorted((ROOT / layer).rglob("*.py")):
        if not any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(ROOT)):
            yield path


@pytest.mark.parametrize("layer", LAYERS)
def test_docstrings_open_with_their_subject(layer: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text.splitlines()[0]}"
        for path in files(layer)
        for line, text in docstrings(path)
        if lacks_subject(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "Until it is cancelled.",
        "What was done.",
        "Whether there is more.",
        "Takes the next record.",
        "`of` a thing.",
        "epoch: 0 before the first election.",
        "May run in a thread.",
    ],
)
def test_a_docstring_without_a_subject_is_found(text: str) -> None:
    assert lacks_subject(text)


@pytest.mark.parametrize(
    "text",
    [
        "Run the fetchers until they are cancelled.",
        "The progress of one replica. epoch: its own.",
        "Tell whether there is more.",
        "Offsets of deleted topics.",
    ],
)
def test_a_docstring_with_a_subject_is_not(text: str) -> None:
    assert not lacks_subject(text)
