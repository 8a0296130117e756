"""How many sequences are tried: PYKBROKER_HYPOTHESIS, as in `tests/examples.py`."""

from tests.examples import load_profile

load_profile()
