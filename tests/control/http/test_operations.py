"""The table of operations: each can be done, has a path and a command of its own, and takes what its path names."""

from __future__ import annotations

import inspect
import re
from collections import Counter

import pytest
from starlette.routing import Match, Route

from pykbroker.control.http.operation import Operation
from pykbroker.control.http.operations import OPERATIONS, operation

EACH = pytest.mark.parametrize("each", OPERATIONS, ids=[each.command for each in OPERATIONS])


@EACH
def test_it_is_done_by_a_coroutine_of_a_control_and_arguments(each: Operation) -> None:
    work = each.work()
    assert inspect.iscoroutinefunction(work)
    assert list(inspect.signature(work).parameters) == ["control", "arguments"]


@EACH
def test_what_its_path_names_is_a_required_parameter(each: Operation) -> None:
    required = {parameter.name for parameter in each.parameters if parameter.is_required}
    assert set(re.findall(r"{(\w+)}", each.path)) <= required


@EACH
def test_its_summary_is_a_sentence(each: Operation) -> None:
    assert re.fullmatch(r"[A-Z].{5,70}\.", each.summary)


@EACH
def test_no_route_before_takes_its_path(each: Operation) -> None:
    path = re.sub(r"{\w+}", "name", each.path)
    scope = {"type": "http", "path": path, "method": each.method}
    taken = (
        one
        for one in OPERATIONS
        if Route(one.path.replace("}", ":path}"), lambda: None, methods=[one.method]).matches(scope)[0] is Match.FULL
    )
    assert next(taken) is each


def test_commands_and_routes_are_unique() -> None:
    assert max(Counter(each.command for each in OPERATIONS).values()) == 1
    assert max(Counter((each.method, each.path) for each in OPERATIONS).values()) == 1


def test_an_operation_is_found_by_its_command() -> None:
    assert operation("why group").path == "/why/group/{group}"
    with pytest.raises(LookupError):
        operation("why not")
