"""The two runs of `pykbroker diff`, and its output."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import trio

from pykbroker.comparing.answers import AnswerDifference, answer_differences
from pykbroker.comparing.field_differences import FieldDifference
from pykbroker.comparing.final_state import state_differences
from pykbroker.comparing.script import CouldNotRun, Run, fresh_broker, run_script
from pykbroker.error_groups import first_of
from pykbroker.protocol.api_keys import api_name

from .command import CommandFailed, run
from .diff_failure import Failed
from .printable import printable
from .progress import Stages, stages

_STAGES_OF_SIDE = 4


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two brokers.

    address: of a running cluster. start: the personality of a broker to be started, empty for none. properties: of
    Java's clients, how it is reached.
    """

    name: str
    address: str | None
    start: str | None
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DiffOptions:
    """The flags. properties: of brokers that are started."""

    left: Side
    right: Side
    properties: Mapping[str, str]
    script: Sequence[str]
    timeout_s: int


@dataclass(slots=True)
class Found:
    """The differences of the script's end, of answers, and of the final state. remarks: what could not be compared."""

    script: list[FieldDifference] = field(default_factory=list)
    answers: list[AnswerDifference] = field(default_factory=list)
    state: list[FieldDifference] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def differences(self) -> int:
        return len(self.script) + len(self.answers) + len(self.state)

    def lines(self) -> Iterator[str]:
        """The differences under the name of what they are of."""
        for each in self.script:
            yield f"{each.path}: {_shown(each.left)} | {_shown(each.right)}"
        heading = ""
        for answer in self.answers:
            title = f"{answer.api} of client {answer.client_id or '(none)'}"
            if title != heading:
                yield title
                heading = title
            yield f"  {answer.field.path}: {_shown(answer.field.left)} | {_shown(answer.field.right)}"
        for each in self.state:
            yield f"{each.path}: {_shown(each.left)} | {_shown(each.right)}"


def find_differences(options: DiffOptions) -> Found:
    """Raises Failed."""

    async def work() -> tuple[Run, Run]:
        with trio.move_on_after(options.timeout_s):
            left = await _run_side(options, options.left, under_way)
            return left, await _run_side(options, options.right, under_way)
        raise Failed(f"the script did not end on both brokers within {options.timeout_s} s")

    try:
        with stages(2 * _STAGES_OF_SIDE) as under_way:
            left, right = run(work)
    except CommandFailed as failure:
        raise Failed(failure.format_message()) from None
    return _compared(left, right)


async def _run_side(options: DiffOptions, side: Side, under_way: Stages) -> Run:
    try:
        async with AsyncExitStack() as stack:
            address = side.address
            under_way.begin(f"{side.name}: starting a broker" if address is None else f"{side.name}: connecting")
            if address is None:
                address = await stack.enter_async_context(fresh_broker(side.start, options.properties))
            under_way.begin(f"{side.name}: reading what is there")
            script = printable(f"{side.name}: {shlex.join(options.script)}")
            meanwhile = under_way.others_write(script, f"{side.name}: reading what is there now")
            return await run_script(address, side.properties, options.script, meanwhile)
    except* CouldNotRun as group:
        reason = f"{side.name}: {first_of(group)}"
    raise Failed(reason)


def _compared(left: Run, right: Run) -> Found:
    found = Found()
    if left.exit_code != right.exit_code:
        found.script.append(FieldDifference("exit code of the script", left.exit_code, right.exit_code))
    elif left.exit_code:
        found.remarks.append(f"the script ended with {left.exit_code} on both brokers")
    found.answers += answer_differences(left.recording, right.recording)
    found.state += state_differences(left.state, right.state)
    for name, side in (("left", left), ("right", right)):
        for (api_key, version), count in sorted(side.recording.unread.items()):
            found.remarks.append(f"{name}: {count} answers to {api_name(api_key)} {version} are not known here")
        if side.recording.left_out:
            found.remarks.append(f"{name}: {side.recording.left_out} answers were too many to be compared")
        if not side.recording.exchanges:
            found.remarks.append(f"{name}: the script asked nothing of the broker that it was given")
    return found


def report(found: Found) -> dict[str, Any]:
    """The object that `--json` prints."""
    return {
        "differences": found.differences,
        "script": [each._asdict() for each in found.script],
        "answers": [{"client_id": each.client_id, "api": each.api, **each.field._asdict()} for each in found.answers],
        "state": [each._asdict() for each in found.state],
        "remarks": found.remarks,
    }


def _shown(value: Any) -> str:
    """One value on one line, cut where it is long."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
