"""`python -m tests.history FILE...`: the verdict. Several files are those of processes that worked at once."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from .check import check_lines
from .operations import MalformedHistory
from .recorder import merge


def main(paths: list[str]) -> int:
    if not paths:
        sys.stderr.write("usage: python -m tests.history FILE...\n")
        return 2
    with ExitStack() as files:
        try:
            histories = [files.enter_context(open(path, encoding="utf-8")) for path in paths]
            report = check_lines(histories[0] if len(histories) == 1 else merge(histories))
        except (OSError, MalformedHistory) as error:
            sys.stderr.write(f"{error}\n")
            return 2
    sys.stdout.write(f"{report}\n")
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
