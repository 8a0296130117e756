"""Questions about delegation tokens. One is there from the beginning; it is described before there are others."""

from __future__ import annotations

from pykbroker.protocol.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
)

from .scene import OWNER, Catalogue, Scene

catalogue = Catalogue()
asks = catalogue.asks


@asks("describe all tokens")
def describe_all(scene: Scene) -> DescribeDelegationTokenRequest:
    return DescribeDelegationTokenRequest(owners=None)


@asks("describe tokens of another")
def describe_of_another(scene: Scene) -> DescribeDelegationTokenRequest:
    owner = DescribeDelegationTokenOwner(principal_type="User", principal_name=OWNER)
    return DescribeDelegationTokenRequest(owners=[owner])


@asks("renew a token")
def renew(scene: Scene) -> RenewDelegationTokenRequest:
    return RenewDelegationTokenRequest(hmac=scene.token_hmac, renew_period_ms=-1)


@asks("expire a token")
def expire(scene: Scene) -> ExpireDelegationTokenRequest:
    return ExpireDelegationTokenRequest(hmac=scene.token_hmac, expiry_time_period_ms=3_600_000)


@asks("create a token")
def create(scene: Scene) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(max_lifetime_ms=-1)


@asks("create a token for another", 3)
def create_for_another(scene: Scene) -> CreateDelegationTokenRequest:
    return CreateDelegationTokenRequest(owner_principal_type="User", owner_principal_name=OWNER, max_lifetime_ms=-1)
