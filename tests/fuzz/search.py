"""The search with one target, in a process that libFuzzer ends: `python -m tests.fuzz.search TARGET FOLDER OPTION …`.

FOLDER has an input in each file. The options are libFuzzer's. Without a fault the exit code is 0; else libFuzzer leaves
the input beside the folder. `check` in place of options looks at memory and steps of all inputs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykbroker.protocol.schema import Message

MEMORY_OF_EVERY: int = 200
"""Memory is looked at in one run of so many: tracing it makes a run ten times slower."""


def main(name: str, folder: str, options: list[str]) -> None:
    if options == ["check"]:
        _check(name, folder)
        return
    import atheris

    with atheris.instrument_imports(include=["pykbroker"]):
        from . import targets
    from .judge import check_memory, check_quickly

    if name == "messages":
        _instrument_codecs(targets.MESSAGES)
    runs = 0

    def run(data: bytes) -> None:
        nonlocal runs
        runs += 1
        check_quickly(name, data)
        if not runs % MEMORY_OF_EVERY:
            check_memory(name, data)

    atheris.Setup([sys.argv[0], *options, folder], run)
    atheris.Fuzz()


def _instrument_codecs(messages: Iterable[type[Message]]) -> None:
    """They are generated, so that no import of them can be instrumented."""
    import atheris

    from pykbroker.protocol.compile import prepare

    for cls in messages:
        schema = cls.__schema__
        for version in range(schema.versions.low, schema.versions.high + 1):
            prepare(cls, version)
            schema.decoders[version] = atheris.instrument_func(schema.decoders[version])


def _check(name: str, folder: str) -> None:
    from .judge import check_memory, check_steps

    for path in sorted(Path(folder).iterdir()):
        check_memory(name, path.read_bytes())
        check_steps(name, path.read_bytes())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
