"""What names of topics and groups have in them so that no two runs meet on one broker."""

from __future__ import annotations

import os

EXTERNAL = os.environ.get("PYKBROKER_TEST_BOOTSTRAP")
"""host:port of a broker that others run; the scenarios then run on it alone."""

RUN = f"{os.getpid():08d}" if EXTERNAL else "run"
"""Brokers that the tests start meet one run. Their names are the same in every run, as recorded answers need it."""
