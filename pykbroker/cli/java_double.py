"""A number as Java's `Double.toString` writes it, which is how Kafka's tools show quotas."""

from __future__ import annotations

import math
from decimal import Decimal


def java_double(value: float) -> str:
    """Return `1024.0`, and with an exponent what is below a thousandth or at least ten millions: `1.0E7`."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return f"{Decimal(repr(value)):f}"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    assert isinstance(exponent, int)
    return f"{'-' if sign else ''}{first}.{''.join(rest) or '0'}E{exponent + len(rest)}"
