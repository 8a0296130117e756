"""Every command and program in the README and in docs/ is run, as a reader would, in an empty directory.

A page has a network and mounts of its own, so that a broker on port 9092 and a disk that fills are in nobody's way.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from compat_tests.apache_kafka import find_java
from compat_tests.apache_kafka.jars import cache_directory
from compat_tests.installed import PYTHONPATH

from .blocks import BadPage, Block, blocks_of
from .page_script import PRELUDE, differs, script_of, write_programs

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("contributing.md", "index.md")
"""The worked examples of the former are carried out by tests/test_contributing.py; the latter is the README again."""
WITH_SPARK = ("README", "spark")
PAGES = [
    pytest.param(page, marks=[pytest.mark.spark] if page.stem in WITH_SPARK else [], id=page.stem)
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if page.name not in LEFT_OUT
]
PAGES += [pytest.param(page, id=f"api-{page.stem}") for page in sorted((ROOT / "docs" / "api").glob("*.md"))]
TIMEOUT_S = 800
_OWN_NETWORK = ["unshare", "--net", "--mount", "bash", "-c", 'ip link set lo up && exec "$@"', "bash"]


def run_page(page: Path, directory: Path, timeout_s: float = TIMEOUT_S) -> None:
    """Run a page's blocks in an empty directory, and compare what they print."""
    outputs, work = directory / "outputs", directory / "work"
    outputs.mkdir()
    work.mkdir()
    blocks = blocks_of(page)
    write_programs(blocks, outputs)
    script = directory / page.name.replace(".md", ".sh")
    script.write_text(script_of(blocks, outputs))
    spark = spark_environment(directory) if any("spark" in block.text for block in blocks if block.is_run) else {}
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": PYTHONPATH,
        "OUTPUTS": str(outputs),
        **spark,
    }
    failure = failure_of(script, work, environment, timeout_s)
    assert failure is None, f"{page.name}: {failure}"
    for block, shown in pairwise(blocks):
        if shown.is_output_of(block):
            printed = (outputs / str(block.line)).read_text()
            assert not differs(shown.text, printed), f"{page.name}:{shown.line}: it prints\n{printed}"


def failure_of(script: Path, directory: Path, environment: dict[str, str], timeout_s: float) -> str | None:
    """Return why a script did not come to its end, if so. Whatever it started is gone then."""
    with subprocess.Popen(
        [*_OWN_NETWORK, "env", f"BASH_ENV={PRELUDE}", "bash", str(script)],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            _, errors = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            line = int(Path(environment["OUTPUTS"], "running").read_text())
            return f"after {timeout_s:g} s still at line {line}: {script.read_text().splitlines()[line - 1]}"
    return errors[-4000:] if process.returncode else None


def spark_environment(directory: Path) -> dict[str, str]:
    """Return what makes Spark find its connector where the tests keep it: the page's network leads nowhere."""
    ivy = cache_directory() / "ivy"
    if not list(ivy.glob("jars/*spark-sql-kafka*.jar")):
        code = "import sys; from pathlib import Path; from spark_compat.session import open_session; "
        code += "open_session(Path(sys.argv[1])).stop()"
        subprocess.run(
            [sys.executable, "-c", code, str(directory / "resolving")], cwd=ROOT, check=True, timeout=TIMEOUT_S
        )
    settings = directory / "spark"
    settings.mkdir()
    (settings / "spark-defaults.conf").write_text(
        f"spark.jars.ivy {ivy}\nspark.master local[2]\nspark.sql.shuffle.partitions 2\nspark.ui.enabled false\n"
    )
    java = Path(find_java()).resolve().parent.parent
    return {"SPARK_CONF_DIR": str(settings), "PYKBROKER_SPARK_IVY": str(ivy), "JAVA_HOME": str(java)}


@pytest.mark.netns
@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_works(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES)
def test_each_block_says_what_it_is_and_why_it_is_not_run(page: Path) -> None:
    blocks_of(page)


def page_of(directory: Path, text: str) -> Path:
    page = directory / "page.md"
    page.write_text(text)
    return page


@pytest.mark.netns
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# A\n\n```console\ntrue\nfalse\ntrue\n```\n", "line 5: false"),
        ("```console\nfalse | true\n```\n", "line 2: "),
        ("```console\necho a b c\n```\n\n```text\na … d\n```\n", "page.md:5: it prints"),
        ("```python\nraise SystemExit('broken')\n```\n", "broken"),
        ("```console\npykbroker start --port 1000000\n```\n", "does not serve"),
        ("```console\ntrue\npykbroker topics list\n```\n", "line 3: pykbroker topics list"),
    ],
)
def test_a_page_that_does_not_work_is_found(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(AssertionError) as raised:
        run_page(page_of(tmp_path, text), tmp_path)
    assert complaint in str(raised.value)


@pytest.mark.netns
def test_a_line_that_hangs_is_named(tmp_path: Path) -> None:
    page = page_of(tmp_path, "```console\npykbroker --version\nsleep 1000 | cat\n```\n")
    with pytest.raises(AssertionError, match="still at line 3: sleep 1000"):
        run_page(page, tmp_path, timeout_s=5)


@pytest.mark.parametrize(
    "text", ["```\nx\n```\n", "```console\nx\n", "```bash\nx\n```\n", "```text\n```console\nx\n```\n"]
)
def test_a_block_that_nobody_can_try_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadPage):
        blocks_of(page_of(tmp_path, text))


def test_a_block_with_a_reason_is_not_run(tmp_path: Path) -> None:
    page = page_of(tmp_path, "<!-- not run: it never ends -->\n\n```console\nfalse\n```\n")
    assert blocks_of(page) == [Block(3, "console", None, "false\n", "it never ends")]
