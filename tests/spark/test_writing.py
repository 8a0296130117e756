"""Tasks that write: what is refused before it is sent."""

from __future__ import annotations

from pykbroker.spark.writing import Route, WriteJob, Written
from pykbroker.spark.writing.task import write_rows

NOWHERE = "127.0.0.1:1"
QUIET = {"log_level": "0"}


def test_a_header_that_librdkafka_would_cut_off_is_refused() -> None:
    job = WriteJob(NOWHERE, {3: Route("orders-3", "copies", 3)}, QUIET)
    rows = [(3, 4, 1, b"key", b"value", [("a", b"1")]), (3, 5, 1, None, b"value", [("b", None), ("a\0b", b"1")])]
    (written,) = write_rows(job, rows)
    assert written == Written(
        -1, 0, 0, 0, "offset 5 of orders-3 has a header whose key has a NUL, where librdkafka ends it"
    )
