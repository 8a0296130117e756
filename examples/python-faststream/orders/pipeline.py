"""The pipeline: two subscribers on a broker of FastStream, which acknowledge by hand what is done."""

from __future__ import annotations

import asyncio
from collections import Counter

from faststream import AckPolicy
from faststream.kafka import KafkaBroker
from faststream.kafka.annotations import KafkaMessage
from pydantic import ValidationError

from .catalogue import Catalogue, CatalogueDown, UnknownArticle
from .ledger import Ledger
from .models import Order, PricedLine, PricedOrder
from .settings import Settings


def make_broker(settings: Settings, catalogue: Catalogue, ledger: Ledger) -> KafkaBroker:
    broker = KafkaBroker(
        settings.bootstrap_servers,
        client_id=f"{settings.prefix}pipeline",
        allow_auto_create_topics=False,
        acks="all",
        enable_idempotence=True,
        graceful_timeout=5.0,
    )
    attempts: Counter[tuple[int, int]] = Counter()
    consumer = {
        "auto_offset_reset": "earliest",
        "ack_policy": AckPolicy.MANUAL,
        "session_timeout_ms": settings.session_timeout_ms,
        "heartbeat_interval_ms": settings.heartbeat_interval_ms,
        "no_reply": True,
    }

    @broker.subscriber(settings.orders, group_id=settings.pricing_group, **consumer)
    async def price(message: KafkaMessage) -> None:
        """Publish the order with its prices, or put it aside. A catalogue that is down is asked again, in order."""
        record = message.raw_message
        place = record.partition, record.offset
        try:
            order = Order.model_validate_json(message.body)
            priced = await _priced(order, catalogue)
        except CatalogueDown as error:
            attempts[place] += 1
            if attempts[place] < settings.max_attempts:
                await asyncio.sleep(settings.retry_delay_s)
                await message.nack()
                return
            await put_aside(message, f"catalogue down, {attempts[place]} attempts: {error}")
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "order"
            await put_aside(message, f"invalid {where}: {first['msg']}")
        except UnknownArticle as error:
            await put_aside(message, str(error))
        else:
            await broker.publish(
                priced, settings.priced, key=order.customer.encode(), correlation_id=message.correlation_id
            )
        attempts.pop(place, None)
        await message.ack()

    async def put_aside(message: KafkaMessage, reason: str) -> None:
        record = message.raw_message
        await broker.publish(
            message.body,
            settings.dead_letters,
            key=record.key,
            headers={"reason": reason, "origin": f"{record.topic}/{record.partition}/{record.offset}"},
            correlation_id=message.correlation_id,
        )

    @broker.subscriber(
        settings.priced,
        group_id=settings.ledger_group,
        batch=True,
        max_records=settings.batch_size,
        batch_timeout_ms=100,
        **consumer,
    )
    async def enter(orders: list[PricedOrder], message: KafkaMessage) -> None:
        """Enter a batch into the ledger, then acknowledge it."""
        ledger.record(orders)
        await message.ack()

    return broker


async def _priced(order: Order, catalogue: Catalogue) -> PricedOrder:
    lines = [PricedLine(**line.model_dump(), price=await catalogue.price(line.article)) for line in order.lines]
    total = sum(line.price * line.quantity for line in lines)
    return PricedOrder(id=order.id, customer=order.customer, lines=lines, total=total)
