"""All attacks, by the name that says what they send."""

from .attacks import ATTACKS as OF_REQUESTS
from .tls_attacks import TLS_ATTACKS

ATTACKS = OF_REQUESTS | TLS_ATTACKS
