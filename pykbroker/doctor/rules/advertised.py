"""Findings about the addresses that the brokers hand out. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..facts import AdvertisedAddress, Facts
from ..findings import Finding, error, warning
from ..knocks import Outcome, address_text
from .connecting import meaning


def of_addresses(facts: Facts, security_protocol: str) -> Iterator[Finding]:
    if facts.entry is None:
        return
    for address in facts.addresses:
        if not address.is_good:
            yield _bad(facts, address, security_protocol)
    yield from _shared(facts.addresses)
    if facts.entry.answer is not None and not facts.entry.answer.nodes:
        yield error(
            "no-brokers",
            facts.entry.address,
            "Metadata names no broker on this listener",
            "Brokers have to advertise a listener of this name (`advertised.listeners`), and to be registered.",
        )


def _bad(facts: Facts, address: AdvertisedAddress, security_protocol: str) -> Finding:
    assert facts.entry is not None
    where = address_text(address.host, address.port)
    key, name = _listener(facts, address)
    listener = f" ({key}, {name})" if key else ""
    handed_out = f"{facts.entry.address} tells clients that broker {address.node_id} is at {where}{listener}"
    if not address.knock.is_served:
        id_ = f"advertised-{address.knock.outcome}"
        found = meaning(address.knock, security_protocol)
        seen, advice = f"{handed_out}: {found.seen}", found.advice
    elif not address.is_same_cluster:
        answer = address.knock.answer
        id_, advice = "advertised-other-cluster", "Every broker needs an address of its own."
        seen = f"{handed_out}, where a broker of another cluster answers ({answer and answer.cluster_id})"
    else:
        id_, advice = "advertised-other-broker", "Every broker needs an address of its own."
        seen = f"{handed_out}, where another broker of the cluster answers"
    return error(id_, f"broker {address.node_id}", seen, _advice(facts, address, name, advice))


def _advice(facts: Facts, address: AdvertisedAddress, name: str, advice: str) -> str:
    """An address at which the broker answered is the best advice; else what was tried is told."""
    working = address.working
    if working is not None:
        found = address_text(*working)
        local = ", which is good for clients on this machine" if working[0] == "localhost" else ""
        return (
            f"It answered at {found}{local}: set advertised.listeners of broker {address.node_id} to "
            f"{name or 'NAME'}://{found}{_auto(facts)}."
        )
    tried = ", ".join(each.knock.address for each in address.candidates)
    tried_text = f" It was not found at {tried} either." if tried else ""
    is_down = address.knock.outcome in (Outcome.REFUSED, Outcome.TIMED_OUT)
    down = " The broker may have stopped a moment ago, too." if is_down and len(facts.addresses) > 1 else ""
    return f"Clients connect to what advertised.listeners of broker {address.node_id} says. {advice}{tried_text}{down}"


def _auto(facts: Facts) -> str:
    """`auto` exists here alone, and helps where the port is the broker's own."""
    if len(facts.addresses) != 1 or any(each.is_apache_kafka for each in facts.settings):
        return ""
    [only] = facts.addresses
    same_port = only.working is not None and only.working[1] == only.port
    return ", or to auto, where no port is mapped" if facts.settings and same_port else ""


def _listener(facts: Facts, address: AdvertisedAddress) -> tuple[str, str]:
    """The key and the listener's name, where the configuration of the broker has that address; else empty."""
    where = address_text(address.host, address.port)
    for settings in facts.settings:
        if settings.node_id != address.node_id:
            continue
        for key in ("advertised.listeners", "listeners"):
            for entry in settings.values.get(key, "").split(","):
                name, separator, endpoint = entry.strip().partition("://")
                if separator and endpoint.lower() == where.lower():
                    return key, name.upper()
    return "", ""


def _shared(addresses: Sequence[AdvertisedAddress]) -> Iterator[Finding]:
    """Two brokers with one address: clients ask the one for the partitions of the other."""
    by_address: dict[tuple[str, int], list[int]] = {}
    for each in addresses:
        by_address.setdefault((each.host, each.port), []).append(each.node_id)
    for (host, port), node_ids in by_address.items():
        if len(node_ids) > 1:
            yield error(
                "advertised-shared",
                address_text(host, port),
                f"brokers {', '.join(map(str, node_ids))} are all advertised there",
                "Give each broker an address, or a port, of its own in advertised.listeners.",
            )


def loopback(facts: Facts) -> Iterator[Finding]:
    """An address that every machine has for itself, told to clients who came by another one."""
    entry = facts.entry
    if entry is None or _is_loopback(entry.host) or any(map(_is_loopback, entry.resolved)):
        return
    for address in facts.addresses:
        if _is_loopback(address.host) and address.is_good:
            yield warning(
                "advertised-loopback",
                f"broker {address.node_id}",
                f"it is advertised as {address_text(address.host, address.port)}, which each machine takes for itself",
                "Clients on this machine work, others do not: name an address of the network in advertised.listeners.",
            )


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
