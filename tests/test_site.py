"""The site of the documentation: every page has its place, and every link to a page or a heading leads there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.sphinx
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(tmp_path), str(DOCS), str(site)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert 'id="pykbroker.testing.Broker.wait_for"' in (site / "api" / "testing.html").read_text()
    assert 'id="pykbroker.spark.archive"' in (site / "api" / "spark.html").read_text()
    assert 'id="pykbroker.protocol.compile.decode"' in (site / "api" / "protocol.html").read_text()
    assert 'id="pykbroker.storage.log.log.Log.open"' in (site / "api" / "storage.html").read_text()
    assert 'id="numpartitions"' in (site / "reference" / "broker.html").read_text()
