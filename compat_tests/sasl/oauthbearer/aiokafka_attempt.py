"""One attempt of aiokafka to be served, in a process of its own: `python -m … BOOTSTRAP PROTOCOL TRUSTED TOKEN`.

Where it is refused, aiokafka leaves sockets and cancelled tasks behind. It does not see that a challenge is a refusal,
and goes on until the broker closes the connection.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from contextlib import suppress

from aiokafka import AIOKafkaConsumer
from aiokafka.abc import AbstractTokenProvider
from aiokafka.errors import KafkaError


class Token(AbstractTokenProvider):
    def __init__(self, text: str) -> None:
        self._text = text

    async def token(self) -> str:
        return self._text


async def attempt(bootstrap: str, protocol: str, trusted: str, text: str) -> str:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        security_protocol=protocol,
        sasl_mechanism="OAUTHBEARER",
        sasl_oauth_token_provider=Token(text),
        ssl_context=ssl.create_default_context(cafile=trusted) if protocol == "SASL_SSL" else None,
    )
    try:
        async with asyncio.timeout(20):
            await consumer.start()
            await consumer.topics()
    except (KafkaError, asyncio.CancelledError, TimeoutError) as error:
        return type(error).__name__
    finally:
        with suppress(KafkaError, asyncio.CancelledError, TimeoutError):
            async with asyncio.timeout(5):
                await consumer.stop()
    return "served"


if __name__ == "__main__":
    logging.disable()
    sys.stdout.write(asyncio.run(attempt(*sys.argv[1:])))
