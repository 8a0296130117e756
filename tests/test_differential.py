"""What is recorded for `compat_tests/differential`, the page that is made of it, and the comparison itself."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pytest

from compat_tests.differential.asking import CANNOT_BE_ENCODED, NOT_ASKED
from compat_tests.differential.building import Builder
from compat_tests.differential.comparison import differences
from compat_tests.differential.error_paths import ERRORS, EXPECTED, NOT_REACHED, directed_errors
from compat_tests.differential.intended import INTENDED, judged
from compat_tests.differential.making import drawn
from compat_tests.differential.nodes import GROUPS
from compat_tests.differential.normal_answers import Learned, NormalAnswers
from compat_tests.differential.recordings import DIRECTORY, Chapter, RecordedSequence, chapters
from compat_tests.differential.report import PAGE, Counts, missing_codes, page
from compat_tests.differential.sequences import Sequence, Step, ref
from compat_tests.differential.shrinking import shrunk
from compat_tests.differential.subjects import SUBJECTS, directed_of
from pykbroker.protocol.api_keys import ApiKey
from pykbroker.protocol.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from pykbroker.protocol.messages.produce import ProduceRequest

FEWEST_CASES = 20_000
MOST_BYTES = 3 * 1024 * 1024
METADATA = int(ApiKey.METADATA)


def test_the_page_is_in_step_with_what_is_recorded() -> None:
    assert PAGE.read_text() == page(), "python -m compat_tests.differential --report"


def test_there_are_many_cases_in_small_files() -> None:
    assert sum(len(each.sequence.steps) for chapter in chapters() for each in chapter.sequences) >= FEWEST_CASES
    assert sum(path.stat().st_size for path in DIRECTORY.iterdir()) <= MOST_BYTES


def test_every_step_that_is_recorded_has_an_answer() -> None:
    for chapter in chapters():
        for each in chapter.sequences:
            assert len(each.theirs) == len(each.sequence.steps)
            assert CANNOT_BE_ENCODED not in each.theirs
            assert NOT_ASKED not in each.theirs


def test_an_error_that_no_case_has_has_a_reason() -> None:
    missing = missing_codes(Counts(chapters()))
    assert {code for codes in missing.values() for code in codes} <= NOT_REACHED.keys()


def test_every_api_of_the_table_is_asked() -> None:
    asked = {step.api_key for chapter in chapters() for each in chapter.sequences for step in each.sequence.steps}
    assert EXPECTED.keys() <= asked


def test_differences_that_are_meant_have_names_of_their_own() -> None:
    names = [each.name for each in INTENDED]
    assert len(set(names)) == len(names)
    assert not any("," in name for name in names), "a recording joins them by commas"


@pytest.mark.parametrize(
    "sequence", [*chain(*map(directed_of, SUBJECTS)), *chain(*map(directed_errors, ERRORS))], ids=lambda each: each.name
)
def test_every_story_can_be_built_in_every_version(sequence: Sequence) -> None:
    builder = Builder("x-", Learned())
    for step in sequence.steps:
        builder.request(step)


@pytest.mark.parametrize("scene", SUBJECTS)
def test_what_is_drawn_can_be_built_and_comes_back_from_json(scene: str) -> None:
    for sequence in drawn(8, seed_number=3, first_number=1, scene=scene):
        assert Sequence.from_json(sequence.to_json()) == sequence
        for step in sequence.steps:
            Builder("x-", Learned()).request(step)


def test_the_same_seed_draws_the_same_sequences() -> None:
    assert drawn(3, 5, 1, GROUPS) == drawn(3, 5, 1, GROUPS)


def test_a_reference_is_what_an_answer_told_and_otherwise_what_nobody_has() -> None:
    learned = Learned()
    builder = Builder("x-", learned)
    step = Step(METADATA, 12, {"topics": [{"name": "~t", "topic_id": ref("topic id")}]})
    unknown = builder.request(step)
    told = MetadataResponse(topics=[MetadataResponseTopic(name="x-t", topic_id=b"i" * 16)])
    shown = NormalAnswers("x-", learned).of(told, 12)
    assert shown["topics"] == [{"error_code": "NONE", "name": "~t", "topic_id": "<topic id 1>"}]
    known = builder.request(step)
    assert isinstance(known, MetadataRequest)
    assert isinstance(unknown, MetadataRequest)
    assert known.topics is not None
    assert unknown.topics is not None
    assert known.topics[0].name == "x-t"
    assert known.topics[0].topic_id == b"i" * 16 != unknown.topics[0].topic_id


def test_rows_of_other_sequences_are_left_out() -> None:
    told = MetadataResponse(topics=[MetadataResponseTopic(name=name) for name in ("s00001-t", "s00002-t", "barrier")])
    shown = NormalAnswers("s00001-", Learned()).of(told, 12)
    assert [each["name"] for each in shown["topics"]] == ["~t"]


def test_the_order_of_rows_does_not_count() -> None:
    def shown(*names: str) -> Any:
        told = MetadataResponse(topics=[MetadataResponseTopic(name=f"x-{name}") for name in names])
        return NormalAnswers("x-", Learned()).of(told, 12)

    assert not list(differences(shown("a", "b"), shown("b", "a")))
    assert list(differences(shown("a", "b"), shown("a")))


@pytest.mark.parametrize(
    ("theirs", "ours", "path"),
    [
        ({"error_code": "NONE"}, {"error_code": "INVALID_REQUEST"}, "error_code"),
        ({"rows": [{"offset": 1}]}, {"rows": [{"offset": 2}]}, "rows.offset"),
        ({"rows": []}, {}, "rows"),
        ({"flag": True}, {"flag": 1}, "flag"),
        ("closed", "waits", ""),
    ],
)
def test_a_difference_is_found_and_is_not_meant(theirs: Any, ours: Any, path: str) -> None:
    found = list(differences(theirs, ours))
    assert [each.path for each in found] == [path]
    verdict = judged(Step(METADATA, 12, {}), found)
    assert verdict.open == found
    assert verdict.ends


def test_wording_is_meant_and_the_lack_of_a_text_is_not() -> None:
    step = Step(METADATA, 12, {})
    assert not judged(step, list(differences({"error_message": "so"}, {"error_message": "thus"}))).open
    assert judged(step, list(differences({"error_message": "so"}, {"error_message": None}))).open
    assert judged(step, list(differences({}, {"error_message": "so"}))).open


def test_batches_are_built_with_the_producer_that_an_answer_told() -> None:
    learned = Learned()
    tree = {
        "topic_data": [
            {
                "name": "~t",
                "partition_data": [{"index": 0, "records": {"batches": [{"producer": ref("producer"), "epoch": 0}]}}],
            }
        ]
    }
    built = Builder("x-", learned).request(Step(int(ApiKey.PRODUCE), 9, tree))
    assert isinstance(built, ProduceRequest)
    records = built.topic_data[0].partition_data[0].records
    assert records is not None
    assert int.from_bytes(records[43:51], "big") == 987654, "nobody was told of"


def test_a_sequence_is_shrunk_to_what_the_disagreement_needs() -> None:
    steps = tuple(Step(METADATA, version, {}) for version in range(8))
    needed = {2, 5}

    def complaints(sequence: Sequence) -> set[tuple[int, str]]:
        versions = {step.version for step in sequence.steps}
        return {(METADATA, "topics")} if needed <= versions else set()

    short = shrunk(Sequence("s00001", steps), (METADATA, "topics"), complaints)
    assert [step.version for step in short.steps] == [2, 5]


def test_a_chapter_comes_back_from_its_file(tmp_path: Any) -> None:
    sequence = Sequence("s00001", (Step(METADATA, 12, {"topics": None}), Step(METADATA, 0, {}, "controller", 1)))
    chapter = Chapter("one", "plain", [RecordedSequence(sequence, [{"topics": []}, "closed"], {1: "wording"})])
    chapter.write(tmp_path)
    assert Chapter.read("one", tmp_path) == chapter
    assert chapter.sequences[0].cut(1).meant == {}
