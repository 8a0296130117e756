"""Sequences as Hypothesis draws them: from the schemas of the requests, and from stories whose steps it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from pykbroker.protocol.api_keys import ApiKey, request_type
from pykbroker.protocol.schema import Field, StructType

from .field_values import values_of
from .sequences import Sequence, Step, Tree, versions_of
from .stories import TOPICS_STORY
from .subjects import SUBJECTS, Subject

MOST_STEPS: Final = 40
EXAMPLES_A_SEED: Final = 6
"""Hypothesis varies what it drew before: few of one seed are more different."""
_NODES_ONLY: Final = frozenset(
    {
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.UPDATE_FEATURES,
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
    }
)
"""They can change the node for sequences that follow: they are asked in stories alone, with values that do not."""

FREE: Final = tuple(
    ApiKey(key)
    for key in (
        *range(4),
        *range(8, 36),
        37,
        38,
        39,
        40,
        41,
        42,
        43,
        45,
        46,
        47,
        48,
        50,
        51,
        55,
        60,
        61,
        65,
        66,
        68,
        69,
        74,
        75,
    )
    if key not in _NODES_ONLY
)
"""APIs of which any request may be drawn."""


@st.composite
def trees(draw: st.DrawFn, api_key: int, version: int) -> Tree:
    of = request_type(api_key)
    return _tree(draw, of.__name__, of, version)


def _tree(draw: st.DrawFn, request: str, of: StructType, version: int) -> Tree:
    tree: Tree = {}
    for field in of.__schema__.fields:
        if field.versions.includes(version):
            tree[field.name] = _field(draw, request, of, field, version)
    return tree


def _field(draw: st.DrawFn, request: str, of: StructType, field: Field, version: int) -> Any:
    if field.nullable.includes(version) and draw(st.integers(0, 9)) == 0:
        return None
    if not field.is_array:
        return _element(draw, request, of, field, version)
    size = draw(st.sampled_from((1, 1, 1, 1, 2, 2, 0)))
    return [_element(draw, request, of, field, version) for _ in range(size)]


def _element(draw: st.DrawFn, request: str, of: StructType, field: Field, version: int) -> Any:
    if field.element == "struct":
        return _tree(draw, request, field.struct, version)
    values = values_of(request, of.__name__, field)
    if not field.nullable.includes(version):
        values = [each for each in values if each is not None] or [""]
    return draw(st.sampled_from(values))


@st.composite
def free_steps(draw: st.DrawFn, subject: Subject) -> Step:
    api_key = draw(st.sampled_from((*FREE, *subject.apis)))
    version = draw(st.sampled_from(versions_of(api_key)))
    return Step(int(api_key), version, draw(trees(api_key, version)))


@st.composite
def changed(draw: st.DrawFn, step: Step) -> Step:
    """A step of a story, now and then in another version or with another value somewhere."""
    version = step.version
    if draw(st.integers(0, 2)) == 0:
        version = draw(st.sampled_from(versions_of(step.api_key)))
    tree = step.tree
    if draw(st.integers(0, 5)) == 0 and step.api_key not in _NODES_ONLY:
        of = request_type(step.api_key)
        tree = _with_another_value(draw, of.__name__, of, tree, version)
    return Step(step.api_key, version, tree, step.listener, step.connection)


def _with_another_value(draw: st.DrawFn, request: str, of: StructType, tree: Tree, version: int) -> Tree:
    fields = [each for each in of.__schema__.fields if each.versions.includes(version)]
    if not fields:
        return tree
    field = draw(st.sampled_from(fields))
    rows = tree.get(field.name)
    if field.element == "struct" and field.is_array and rows and draw(st.integers(0, 4)):
        at = draw(st.integers(0, len(rows) - 1))
        inner = _with_another_value(draw, request, field.struct, rows[at], version)
        return tree | {field.name: [*rows[:at], inner, *rows[at + 1 :]]}
    return tree | {field.name: _field(draw, request, of, field, version)}


@st.composite
def step_lists(draw: st.DrawFn, subject: Subject) -> list[Step]:
    """Topics, then stories whose steps may be left out, come twice or be changed, with other requests between."""
    steps = [*TOPICS_STORY]
    if draw(st.integers(0, 3)) == 0:
        return [*steps, *draw(st.lists(free_steps(subject), min_size=8, max_size=30))]
    for _ in range(draw(st.integers(1, 3))):
        for step in draw(st.sampled_from(subject.stories)):
            fate = draw(st.integers(0, 19))
            if fate == 0:
                continue
            steps.append(draw(changed(step)))
            if fate == 1:
                steps.append(steps[-1])
            elif fate in (2, 3, 4):
                steps.append(draw(free_steps(subject)))
    steps += draw(st.lists(free_steps(subject), max_size=6))
    return steps[:MOST_STEPS]


def drawn(count: int, seed_number: int, first_number: int, scene: str) -> list[Sequence]:
    """That many different sequences, named by numbers from the first on."""
    found: dict[str, list[Step]] = {}

    def keep(steps: list[Step]) -> None:
        found.setdefault(repr(steps), steps)

    number = 0
    while len(found) < count:
        test: Callable[[], None] = seed(seed_number * 1_000_000 + number)(
            settings(
                max_examples=EXAMPLES_A_SEED,
                phases=(Phase.generate,),
                database=None,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
            )(given(step_lists(SUBJECTS[scene]))(keep))
        )
        test()
        number += 1
    kept = list(found.values())[:count]
    return [Sequence(f"s{first_number + number:05d}", tuple(steps)) for number, steps in enumerate(kept)]
