"""The tests that `docs/testing.md` shows are run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

from .test_pytest_plugin import RunPytest, outcomes, run_pytest  # noqa: F401 - a fixture

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
_EXAMPLE = re.compile(r"```python\n# (test_\w+\.py)\n(.*?)```", re.DOTALL)


def test_every_example_passes(run_pytest: RunPytest) -> None:  # noqa: F811
    examples = dict(_EXAMPLE.findall(PAGE.read_text()))
    assert len(examples) >= 5
    (ini,) = re.findall(r"```ini\n(.*?)```", PAGE.read_text(), re.DOTALL)
    tests = sum(text.count("def test_") for text in examples.values())
    done = run_pytest("", *examples, files={**examples, "pytest.ini": ini})
    assert outcomes(done) == {"passed": tests}, done.stdout
