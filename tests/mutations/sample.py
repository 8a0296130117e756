"""Bugs that nobody chose: a sample of what cosmic-ray can make of a package's source.

A file is drawn, a large one more often than a small one, then a place in it, and one of the changes that are possible
there: another comparison or arithmetic, another number, a loop that does not begin, another exception that is caught.
What changes nothing but annotations is drawn again. The same seed draws the same bugs of the same source.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from .mutant import PACKAGES, ROOT, Mutant, meaning

_DRAWS = 100
"""As often at most for each bug: there is something to change in nearly every file."""


class _Change(NamedTuple):
    operator: Any
    occurrence: int


def sample(package: str, count: int, seed: int, root: Path = ROOT) -> list[Mutant]:
    rng = Random(f"{seed} {package}")
    paths = sorted((root / PACKAGES[package]).rglob("*.py"))
    sizes = [path.stat().st_size for path in paths]
    found: dict[str, Mutant] = {}
    for _ in range(_DRAWS * count):
        if len(found) == count:
            break
        (path,) = rng.choices(paths, sizes)
        mutant = _draw(package, path, rng, root)
        if mutant is not None:
            found.setdefault(mutant.name, mutant)
    return list(found.values())


def _draw(package: str, path: Path, rng: Random, root: Path) -> Mutant | None:
    """Return None where nothing can be changed, or nothing that means anything."""
    text = path.read_text()
    places = _places(text)
    if not places:
        return None
    change = rng.choice(places[rng.choice(sorted(places))])
    changed = mutate_code(text, change.operator, change.occurrence)
    try:
        if not changed or meaning(changed) == meaning(text):
            return None
    except SyntaxError:
        return None
    name = str(path.relative_to(root))
    near = f"tests/{package}/test_{path.stem}.py"
    return Mutant(
        f"{name}, {_difference(text, changed)}",
        package,
        name,
        changed,
        (near,) if (root / near).exists() else (),
    )


def _places(text: str) -> dict[tuple[tuple[int, int], tuple[int, int]], list[_Change]]:
    """What can be changed, by where it begins and ends."""
    nodes = list(ast_nodes(get_ast(text)))
    places = defaultdict(list)
    for operator in _operators():
        positions = (each for node in nodes for each in operator.mutation_positions(node))
        for occurrence, place in enumerate(positions):
            places[place].append(_Change(operator, occurrence))
    return places


def _operators() -> Iterator[Any]:
    """Without those that have to be told a variable."""
    for name in operator_names():
        operator = get_operator(name)
        if not operator.arguments():
            yield operator()


def _difference(before: str, after: str) -> str:
    """The first line that differs, as it was and as it is."""
    old, new = before.splitlines(), after.splitlines()
    for kind, from_, to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            was, now = (" ".join(" ".join(each).split()) for each in (old[from_:to], new[new_from:new_to]))
            return f"line {from_ + 1}: `{was}` is `{now}`"
    return ""
