"""The answers to requests about the state of share partitions, whichever of the five it is.

A request that names no group, no topic, or a topic without partitions is answered with nothing, as in Kafka; one that
initializes state passes over topics without partitions. A share partition that is named twice is asked about twice, and
answered once, with the last answer.
"""

from __future__ import annotations

from typing import Any, Final

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.schema import Message
from pykbroker.server.coordinators.share_state_questions import AnswerT, AskedT, Question
from pykbroker.server.network.handlers import RequestContext
from pykbroker.server.node.broker import Broker

MOST_BATCHES: Final = 100_000
"""Batches in one answer; share partitions beyond them are to be asked for again."""
_STEPS_OF_ENTRY: Final = 3
_ROOM = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def answer_question(
    context: RequestContext[Broker], question: Question[AskedT, AnswerT], request: Any
) -> Message:
    """Return the response of this node's share coordinator to the request."""
    has_empty_topic = not all(topic.partitions for topic in request.topics)
    if not request.group_id or (has_empty_topic and not question.passes_empty_topics):
        return question.response({})
    asked: list[AskedT] = []
    for each in question.asked_in(request):
        asked.append(each)
        await context.turn.took(_STEPS_OF_ENTRY * question.weight(each))
    topics: dict[bytes, dict[int, Any]] = {}
    room = MOST_BATCHES
    for answer in await context.node.share_coordinator.answer(question, asked):
        batches = question.batches_of(answer)
        if batches > room:
            answer = question.failed(answer.key, _ROOM, "The response has no room for its state.")
        else:
            room -= batches
        topics.setdefault(answer.key.topic_id, {})[answer.key.partition] = question.result(answer)
        await context.turn.took(_STEPS_OF_ENTRY * (1 + batches))
    return question.response(topics)
