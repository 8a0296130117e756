"""Ranges of addresses as hosts of ACLs, as Kafka 4.4.0 takes and refuses them."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykbroker.security.acls.address_ranges import InvalidRange, address_of, parse_range, range_of
from pykbroker.security.acls.entry import AccessControlEntry
from pykbroker.security.acls.hosts import host_of
from pykbroker.security.acls.operations import Operation, Permission
from pykbroker.security.acls.pattern_entries import PatternEntries
from pykbroker.security.acls.resources import PatternType, ResourceType

BOB = "User:bob"
READ = 1 << Operation.READ


def entry(host: str, principal: str = BOB, permission: Permission = Permission.ALLOW) -> AccessControlEntry:
    return AccessControlEntry(
        ResourceType.TOPIC, "orders", PatternType.LITERAL, principal, host, Operation.READ, permission
    )


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.1.2.3/8", "10.0.0.0/8"),
        ("010.0.0.0/08", "10.0.0.0/8"),
        ("1.2.3.4/0", "0.0.0.0/0"),
        ("10.0.0.5/32", "10.0.0.5/32"),
        ("fe80::1/10", "fe80::/10"),
        ("FE80:0::/+10", "fe80::/10"),
        ("[fe80::]/010", "fe80::/10"),
        ("fe80::%eth0/10", "fe80::/10"),
        ("::/0", "::/0"),
        ("::10.0.0.1/120", "::a00:0/120"),
        ("1:2:3:4:5:6:7:8/00000000000128", "1:2:3:4:5:6:7:8/128"),
    ],
)
def test_the_bits_behind_the_length_say_nothing(text: str, network: str) -> None:
    expected = ipaddress.ip_network(network)
    assert parse_range(text) == (expected.max_prefixlen, expected.prefixlen, int(expected.network_address))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10.0.0.0/33", "Value [33] not in range [0,32]"),
        ("300.0.0.0/33", "Value [300] not in range [0,255]"),
        ("10.0.0.256/8", "Value [256] not in range [0,255]"),
        ("10.0.0.0/", "Could not parse [10.0.0.0/]"),
        ("10.0.0.0/100", "Could not parse [10.0.0.0/100]"),
        ("0010.0.0.0/8", "Could not parse [0010.0.0.0/8]"),
        ("10.0.0.0/8/8", "Could not parse [10.0.0.0/8/8]"),
        ("10.0.0.0/8\n", "Could not parse [10.0.0.0/8\n]"),
        ("10.0.0.0/\u0663", "Could not parse [10.0.0.0/\u0663]"),
        ("host/8", "Could not parse [host/8]"),
        ("/", "Could not parse [/]"),
        ("host:name/8", "Could not parse [host:name]"),
        (":/", "Could not parse [:/] - invalid prefix length"),
        ("fe80::/x", "Could not parse [fe80::/x] - invalid prefix length"),
        ("fe80::/10/10", "Could not parse [fe80::/10/10] - invalid prefix length"),
        ("fe80::/99999999999", "Could not parse [fe80::/99999999999] - invalid prefix length"),
        ("fe80::/9999999999", "Could not parse [fe80::/9999999999] - invalid prefix length"),
        ("fe80::/129", "Could not parse [fe80::/129] - prefix length must be between 0 and 128"),
        ("::1/-1", "Could not parse [::1/-1] - prefix length must be between 0 and 128"),
        ("::ffff:0:0/96", "Could not parse [::ffff:0:0] - not an IPv6 address"),
        ("1:2:3/64", "Could not parse [1:2:3]"),
    ],
)
def test_what_is_no_range_is_refused_in_kafkas_words(text: str, reason: str) -> None:
    with pytest.raises(InvalidRange) as raised:
        parse_range(text)
    assert str(raised.value) == reason
    assert range_of(text) is None


def test_a_text_of_a_megabyte_is_no_range() -> None:
    for text in ("1" * 2**20 + "/8", ":" * 2**20 + "/8", "::/" + "0" * 2**20):
        with pytest.raises(InvalidRange) as raised:
            parse_range(text)
        assert len(str(raised.value)) < 300


@pytest.mark.parametrize("host", ["client-1", "", "*", "10.0.0", "10.0.0.0/8"])
def test_what_is_no_address_is_in_no_range(host: str) -> None:
    assert address_of(host) is None
    entries = PatternEntries()
    entries.add(entry("0.0.0.0/0"))
    entries.add(entry("::/0"))
    assert entries.masks(BOB, host) == (0, 0)


def test_an_entry_with_what_was_no_range_means_the_very_text() -> None:
    entries = PatternEntries()
    entries.add(entry("rack/7"))
    assert entries.masks(BOB, "rack/7")[0] & READ
    assert entries.masks(BOB, "rack") == (0, 0)


ADDRESSES = st.one_of(
    st.integers(0x0A000000, 0x0A00000F).map(ipaddress.IPv4Address),
    st.integers(0xFE80 << 112, (0xFE80 << 112) + 15).map(ipaddress.IPv6Address),
)
ENTRIES = st.tuples(
    st.tuples(ADDRESSES, st.integers(0, 40)).map(
        lambda each: f"{each[0]}/{each[0].max_prefixlen - min(each[1], each[0].max_prefixlen)}"
    ),
    st.sampled_from([BOB, "User:*", "User:eve"]),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)


@given(st.lists(ENTRIES, max_size=8), st.lists(ENTRIES, max_size=5), ADDRESSES)
def test_the_entries_count_whose_ranges_have_the_address(
    kept: list[tuple[str, str, Permission]],
    removed: list[tuple[str, str, Permission]],
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    entries = PatternEntries()
    for host, principal, permission in (*removed, *kept):
        entries.add(entry(host, principal, permission))
    for host, principal, permission in removed:
        entries.remove(entry(host, principal, permission))
    assert bool(entries) == bool(kept)
    mine = [
        permission
        for host, principal, permission in kept
        if principal != "User:eve" and address in ipaddress.ip_network(host, strict=False)
    ]
    asked = host_of(str(address))
    allowed, denied = entries.masks(BOB, asked)
    assert bool(allowed & READ) == (Permission.ALLOW in mine)
    assert bool(denied & READ) == (Permission.DENY in mine)
    for permission in (Permission.ALLOW, Permission.DENY):
        assert entries.names(BOB, asked, Operation.READ, permission) == (permission in mine)
