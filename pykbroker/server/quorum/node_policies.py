"""The policies of a controller: classes of somebody's own that say what may be created and altered (KIP-108, KIP-133).

They are called in one thread, one call at a time, and never on the event loop. A policy that takes too long gets no
say: what it was asked about is refused, since nobody has allowed it. A call cannot be ended from outside, so others
wait for it, and are refused as well until it is over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

import trio

from pykbroker.config import BrokerConfig, ConfigurationError, InvalidValue
from pykbroker.metadata.policy_check import PolicyCheck, Question
from pykbroker.policies import AlterConfigRequest, PolicyViolation
from pykbroker.protocol.errors import ApiError, ErrorCode
from pykbroker.protocol.messages.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest
from pykbroker.protocol.messages.topics import CreateTopicsRequest
from pykbroker.protocol.schema import Message

_log = logging.getLogger(__name__)

CREATE_TOPIC_POLICY: Final = "create.topic.policy.class.name"
ALTER_CONFIG_POLICY: Final = "alter.config.policy.class.name"
ENTRY_POINTS: Final = "pykbroker.policies"
"""The group of entry points that name policies."""
_TIMEOUT_S: Final = 15.0
"""For all questions of one request together."""
_LONGEST_REASON: Final = 10_000


class NodePolicies:
    """The policies of one controller. timeout_s: how long they may take for one request."""

    def __init__(self, creating: Any, altering: Any, *, timeout_s: float = _TIMEOUT_S) -> None:
        self._creating = creating
        self._altering = altering
        self._timeout_s = timeout_s
        self._one = trio.CapacityLimiter(1)

    @classmethod
    def load(cls, config: BrokerConfig) -> NodePolicies | None:
        """Make and configure the policies that the properties name; None where they name none.

        Code of somebody's own runs. Raises ConfigurationError.
        """
        creating, altering = _made(config, CREATE_TOPIC_POLICY), _made(config, ALTER_CONFIG_POLICY)
        return None if creating is None and altering is None else cls(creating, altering)

    def check_for(self, request: Message) -> PolicyCheck | None:
        """Return an empty check of a request that a policy has a say in; None of any other."""
        creates = self._creating is not None and isinstance(request, CreateTopicsRequest)
        alters = self._altering is not None and isinstance(
            request, AlterConfigsRequest | IncrementalAlterConfigsRequest
        )
        return PolicyCheck(creates=creates, alters=alters) if creates or alters else None

    async def judge(self, check: PolicyCheck) -> None:
        """Ask the policies what the rules have noted, and keep their verdicts in `check`."""
        check.is_asking = False
        if not check.questions:
            return
        verdicts: dict[Any, ApiError | None] = {}
        with trio.move_on_after(self._timeout_s):
            await trio.to_thread.run_sync(
                self._judge_all, check.questions, verdicts, abandon_on_cancel=True, limiter=self._one
            )
        # Asked key by key: a thread that nobody waits for any more may still add a verdict.
        missing = [key for key in check.questions if key not in verdicts]
        if missing:
            _log.error("a policy has not answered within %g s; %d things are refused", self._timeout_s, len(missing))
        late = ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The policy has not answered within {self._timeout_s:g} s.")
        check.verdicts = {key: verdicts.get(key, late) for key in check.questions}

    async def close(self) -> None:
        """Close the policies that have such a method, in a thread that is left alone where it takes too long."""
        with trio.move_on_after(self._timeout_s):
            await trio.to_thread.run_sync(self._close, abandon_on_cancel=True, limiter=self._one)

    def _close(self) -> None:
        for policy in (self._creating, self._altering):
            close = getattr(policy, "close", None)
            if callable(close):
                try:
                    close()
                except Exception:
                    _log.exception("the policy %s cannot be closed", type(policy).__qualname__)

    def _judge_all(self, questions: dict[Any, Question], verdicts: dict[Any, ApiError | None]) -> None:
        """Ask in a thread, where this goes on also when nobody waits any more."""
        for key, question in list(questions.items()):
            policy = self._altering if isinstance(question, AlterConfigRequest) else self._creating
            verdicts[key] = _verdict(policy.validate, question)


def _verdict(validate: Callable[[Any], object], question: Question) -> ApiError | None:
    try:
        validate(question)
    except PolicyViolation as violation:
        return ApiError(ErrorCode.POLICY_VIOLATION, str(violation)[:_LONGEST_REASON])
    except Exception:
        _log.exception("a policy failed")
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The policy failed; the log of the controller says how.")
    return None


def _made(config: BrokerConfig, key: str) -> Any:
    name = config.optional_str(key)
    if not name:
        return None
    try:
        policy = _class_of(key, name)()
        configure = getattr(policy, "configure", None)
        if callable(configure):
            configure(dict(config.given))
    except ConfigurationError:
        raise
    except Exception as error:
        raise InvalidValue(key, name, f"the policy cannot be made: {type(error).__name__}: {error}") from error
    if not callable(getattr(policy, "validate", None)):
        raise InvalidValue(key, name, "a policy has a method validate(request)")
    return policy


def _class_of(key: str, name: str) -> Callable[[], Any]:
    from importlib import import_module, metadata

    module, colon, attribute = name.partition(":")
    if not colon:
        for entry_point in metadata.entry_points(group=ENTRY_POINTS, name=name):
            loaded: Callable[[], Any] = entry_point.load()
            return loaded
        reason = (
            f"a Python class written module:Class, or an entry point of the group {ENTRY_POINTS}; classes of Java "
            "cannot be loaded"
        )
        raise InvalidValue(key, name, reason)
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise InvalidValue(key, name, f"there is no such class: {error}") from error
    if not callable(found):
        raise InvalidValue(key, name, "a class, or a function that makes a policy")
    made: Callable[[], Any] = found
    return made
