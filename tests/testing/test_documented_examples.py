"""The tests that `docs/testing.md` and `docs/control.md` show are run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

from .test_pytest_plugin import RunPytest, outcomes, run_pytest  # noqa: F401 - a fixture

DOCS = Path(__file__).parents[2] / "docs"
_EXAMPLE = re.compile(r"```python\n# (test_\w+\.py)\n(.*?)```", re.DOTALL)


def test_every_example_passes(run_pytest: RunPytest) -> None:  # noqa: F811
    text = "".join((DOCS / page).read_text() for page in ("testing.md", "control.md"))
    examples = dict(_EXAMPLE.findall(text))
    assert len(examples) == len(_EXAMPLE.findall(text)) >= 15
    (ini,) = re.findall(r"```ini\n(.*?)```", text, re.DOTALL)
    tests = sum(example.count("def test_") for example in examples.values())
    done = run_pytest("", *examples, files={**examples, "pytest.ini": ini})
    assert outcomes(done) == {"passed": tests}, done.stdout
