"""Ask both brokers the same sequences.

python -m compat_tests.differential --sequences 100 --seed 7           asks both, and prints where they disagree
python -m compat_tests.differential --record plain-01 --sequences 500  asks Apache Kafka, and keeps its answers
python -m compat_tests.differential --replay plain-01                  asks pykbroker what is recorded
python -m compat_tests.differential --settle plain-01                  as --replay; notes which differences are meant
python -m compat_tests.differential --report                           writes docs/differential.md
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from compat_tests.brokers import BrokerProcess

from .asking import CANNOT_BE_ENCODED, NOT_ASKED, Asker
from .error_paths import directed_errors
from .making import drawn
from .nodes import PLAIN, PROPERTIES, asker, kafka_node, our_node
from .recordings import Chapter, RecordedSequence, chapter_names
from .replaying import Disagreement, verdicts
from .report import PAGE, page
from .sequences import Sequence
from .shrinking import complaints_of, shrunk
from .subjects import directed_of

_SECOND: Final = "s9"
"""How the names of the second asking begin: of the same length, and nobody else's."""

MOST_SHRUNK: Final = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m compat_tests.differential", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--sequences", type=int, default=100, metavar="N", help="how many are drawn (100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scene", choices=list(PROPERTIES), default=PLAIN)
    parser.add_argument("--directed", action="store_true", help="those that are written down, in place of drawn ones")
    parser.add_argument("--errors", action="store_true", help="those that are there for errors, in place of drawn ones")
    parser.add_argument("--record", metavar="CHAPTER")
    parser.add_argument("--replay", nargs="*", metavar="CHAPTER", help="all, where none is named")
    parser.add_argument("--settle", nargs="*", metavar="CHAPTER")
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    if asked.report:
        PAGE.write_text(page())
    elif asked.replay is not None or asked.settle is not None:
        names = (asked.replay if asked.replay is not None else asked.settle) or chapter_names()
        sys.exit(bool(sum(_replay(name, settles=asked.settle is not None) for name in names)))
    else:
        sequences = (
            directed_of(asked.scene)
            if asked.directed
            else directed_errors(asked.scene)
            if asked.errors
            else drawn(asked.sequences, asked.seed, asked.seed * 1000 % 90_000, asked.scene)
        )
        recorded = list(_asked_of_kafka(sequences, asked.scene))
        chapter = Chapter(asked.record or "drawn", asked.scene, recorded)
        if asked.record:
            chapter.write()
        else:
            found = _compared(chapter)
            _print_shrunk(chapter, found)
            sys.exit(bool(found))


@contextmanager
def _asking(made: Callable[[Path, str], BrokerProcess], scene: str) -> Iterator[Asker]:
    with tempfile.TemporaryDirectory() as directory:
        node = made(Path(directory, "node"), scene)
        node.start()
        try:
            asking = asker(node, scene)
            yield asking
            asking.close()
        finally:
            node.kill()


def _asked_of_kafka(sequences: list[Sequence], scene: str) -> Iterator[RecordedSequence]:
    """Twice, and up to the first answer that was another one the second time. That none came is believed of a broker
    that was given as much time again: a slow one has answered by then.
    """
    lost: Counter[int] = Counter()
    with _asking(kafka_node, scene) as asking:
        for sequence in sequences:
            first = asking.ask(sequence)
            second = asking.ask(Sequence(f"{_SECOND}{sequence.name[2:]}", sequence.steps))
            same = next((at for at, pair in enumerate(zip(first, second, strict=True)) if pair[0] != pair[1]), None)
            whole = RecordedSequence(sequence, first)
            if same is None and NOT_ASKED in first:
                same = first.index(NOT_ASKED)
            if same is not None:
                lost[sequence.steps[same].api_key] += 1
                whole = whole.cut(same)
            yield _without_unencodable(whole)
    if lost:
        print(f"answered in two ways, by API key: {dict(lost)}")  # noqa: T201


def _without_unencodable(whole: RecordedSequence) -> RecordedSequence:
    """Leave out the steps whose version has no room for what they say: nothing was asked there."""
    kept = [
        (step, answer)
        for step, answer in zip(whole.sequence.steps, whole.theirs, strict=True)
        if answer != CANNOT_BE_ENCODED
    ]
    steps = tuple(step for step, _ in kept)
    return RecordedSequence(Sequence(whole.sequence.name, steps), [answer for _, answer in kept])


def _replay(name: str, *, settles: bool) -> bool:
    """Return whether there are disagreements. settles: cut sequences behind their last case, and note what is meant."""
    chapter = Chapter.read(name)
    found = _compared(chapter, settles=settles)
    if settles:
        chapter.write()
    return bool(found)


def _compared(chapter: Chapter, *, settles: bool = False) -> list[Disagreement]:
    disagreements: list[Disagreement] = []
    cases = 0
    meant: Counter[str] = Counter()
    with _asking(our_node, chapter.scene) as asking:
        for at, each in enumerate(chapter.sequences):
            reasons: dict[int, str] = {}
            last = -1
            for number, verdict in verdicts(asking, each):
                last = number
                cases += 1
                meant.update(one.name for one in verdict.meant)
                if verdict.meant:
                    reasons[number] = ", ".join(one.name for one in verdict.meant)
                step = each.sequence.steps[number]
                disagreements += [Disagreement(each.sequence.name, number, step, one) for one in verdict.open]
            if settles:
                kept = each.cut(last + 1)
                kept.meant = reasons
                chapter.sequences[at] = kept
    for one in disagreements:
        print(one)  # noqa: T201
    print(f"{chapter.name}: {cases} cases, {len(disagreements)} disagreements, meant: {dict(meant)}")  # noqa: T201
    return disagreements


def _print_shrunk(chapter: Chapter, found: list[Disagreement]) -> None:
    """Print for each kind of disagreement the shortest sequence that was found to show it."""
    if not found:
        return
    sequences = {each.sequence.name: each.sequence for each in chapter.sequences}
    kinds = {(each.step.api_key, each.found.path): each for each in reversed(found)}
    with _asking(kafka_node, chapter.scene) as theirs, _asking(our_node, chapter.scene) as ours:
        for kind, each in list(kinds.items())[:MOST_SHRUNK]:
            whole = sequences[each.sequence]
            start = Sequence(whole.name, whole.steps[: each.number + 1])
            short = shrunk(start, kind, complaints_of(theirs, ours))
            print(f"\n{each}\nshrunk to {len(short.steps)} steps:")  # noqa: T201
            for step in short.steps:
                print(f"  {json.dumps(step.to_json())}")  # noqa: T201


if __name__ == "__main__":
    main()
