"""Whatever is asked of delegation tokens, in any order and at any time: a model of Kafka's rules answers alike."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from pykbroker.protocol.errors import ErrorCode
from pykbroker.protocol.messages.delegation_tokens import CreateDelegationTokenResponse
from tests.examples import examples

from .test_delegation_tokens import EXPIRY_TIME_MS, HOUR_MS, LONGEST, MAX_LIFETIME_MS, Tokens

USERS = ("User:alice", "User:bob", "User:carol")
users = st.sampled_from(USERS)
periods = st.one_of(
    st.sampled_from((-LONGEST - 1, -1, 0, 1, LONGEST)), st.integers(min_value=1, max_value=60 * HOUR_MS)
)


@dataclass
class Expected:
    """A token as it should be."""

    answer: CreateDelegationTokenResponse
    owner: str
    renewers: tuple[str, ...]
    latest_ms: int
    expiry_ms: int

    def is_expired(self, now_ms: int) -> bool:
        return now_ms > self.expiry_ms or now_ms > self.latest_ms


class TokenMachine(RuleBasedStateMachine):
    """Three users, one controller, and time that passes."""

    @initialize()
    def begin(self) -> None:
        self.tokens = Tokens()
        self.expected: list[Expected] = []
        self.gone: list[Expected] = []
        self.unswept_ms = HOUR_MS
        """How long an expired token may be there at most: the interval, once more for each new controller."""

    @property
    def now_ms(self) -> int:
        return self.tokens.cluster.wall_ms

    @rule(user=users, owner=users, renewers=st.lists(users, max_size=2), period=periods)
    def create(self, user: str, owner: str, renewers: list[str], period: int) -> None:
        answer = self.tokens.create(user, *renewers, owner=("User", owner.partition(":")[2]), max_lifetime_ms=period)
        latest = self.now_ms + (min(period, MAX_LIFETIME_MS) if period > 0 else MAX_LIFETIME_MS)
        expiry = min(latest, self.now_ms + EXPIRY_TIME_MS)
        assert (answer.max_timestamp_ms, answer.expiry_timestamp_ms) == (latest, expiry)
        self.expected.append(Expected(answer, owner, tuple(renewers), latest, expiry))

    def _error(self, token: Expected, user: str, *, is_removal: bool, is_expiry: bool) -> ErrorCode:
        may = user == token.owner or user in token.renewers
        errors = {
            ErrorCode.DELEGATION_TOKEN_NOT_FOUND: token not in self.expected,
            ErrorCode.DELEGATION_TOKEN_EXPIRED: token.is_expired(self.now_ms) and not is_removal,
            ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: not may,
        }
        order = list(errors)
        if is_expiry:
            order = [order[0], order[2], order[1]]
        return next((each for each in order if errors[each]), ErrorCode.NONE)

    @rule(number=st.integers(min_value=0), user=users, period=periods)
    def renew(self, number: int, user: str, period: int) -> None:
        token = self._any(number)
        if token is None:
            return
        error = self._error(token, user, is_removal=False, is_expiry=False)
        code, expiry = self.tokens.renew(user, token.answer, period)
        assert code == error
        if not error:
            token.expiry_ms = min(
                token.latest_ms, self.now_ms + (min(period, EXPIRY_TIME_MS) if period > 0 else EXPIRY_TIME_MS)
            )
            assert expiry == token.expiry_ms

    @rule(number=st.integers(min_value=0), user=users, period=periods)
    def expire(self, number: int, user: str, period: int) -> None:
        token = self._any(number)
        if token is None:
            return
        error = self._error(token, user, is_removal=period < 0, is_expiry=True)
        code, expiry = self.tokens.expire(user, token.answer, period)
        assert code == error
        if error:
            return
        if period < 0:
            self.expected.remove(token)
            self.gone.append(token)
        else:
            token.expiry_ms = min(token.latest_ms, self.now_ms + period)
            assert expiry == token.expiry_ms

    def _any(self, number: int) -> Expected | None:
        every = self.expected + self.gone
        return every[number % len(every)] if every else None

    @rule(ms=st.integers(min_value=0, max_value=20 * HOUR_MS))
    def wait(self, ms: int) -> None:
        """Sweeps on the way remove tokens that have expired, and no others."""
        self.tokens.cluster.advance(ms)
        known = self.tokens.known
        swept = [each for each in self.expected if each.answer.token_id not in known]
        assert all(each.is_expired(self.now_ms) for each in swept)
        self.gone += swept
        self.expected = [each for each in self.expected if each not in swept]

    @rule()
    def change_controller(self) -> None:
        """Another process draws other ids."""
        self.tokens.cluster._seed += 1
        self.tokens.cluster.restart_controller()
        self.unswept_ms += HOUR_MS

    @invariant()
    def the_image_has_what_is_expected(self) -> None:
        found = {
            each.token_id: (each.owner, each.renewers, each.max_timestamp, each.expiry_timestamp)
            for each in self.tokens.cluster.image.delegation_tokens.values()
        }
        assert found == {
            each.answer.token_id: (each.owner, each.renewers, each.latest_ms, each.expiry_ms) for each in self.expected
        }

    @invariant()
    def no_token_stays_long_after_its_end(self) -> None:
        """A step of time may be longer than the interval of the sweeps, and a new controller begins its own."""
        assert not [each for each in self.expected if each.is_expired(self.now_ms - self.unswept_ms)]


TestTokens = TokenMachine.TestCase
TestTokens.settings = examples(60)
