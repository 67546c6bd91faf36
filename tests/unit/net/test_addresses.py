"""Which addresses a name may lead to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.net.addresses import look_up, special


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("10.1.2.3", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("100.64.0.1", "carrier"),
        ("169.254.169.254", "link-local"),
        ("168.63.129.16", "metadata"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "reserved"),
        ("198.18.0.1", "benchmarks"),
        ("::1", "loopback"),
        ("::", "unspecified"),
        ("fd00:ec2::254", "private"),
        ("fe80::1", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("fec0::1", "reserved"),
        ("ff02::1", "multicast"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::ffff:10.0.0.1", "private"),
        ("::127.0.0.1", "reserved"),
        ("2002:7f00:1::1", "6to4"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"),
        ("64:ff9b::7f00:1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("64:ff9b:1::a00:1", "reserved"),
        ("2001:db8::1", "documentation"),
        ("100::1", "reserved"),
    ],
)
def test_an_address_that_is_not_public_is_known_with_its_kind(address, kind):
    assert kind in special(ip_address(address))


@pytest.mark.parametrize("address", ["93.184.216.34", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "64:ff9b::101:101"])
def test_a_public_address_is_nothing_special(address):
    assert special(ip_address(address)) == ""


@given(st.ip_addresses())
def test_nothing_that_the_standard_library_calls_private_passes_as_public(address):
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        assert special(address)


def test_a_name_is_looked_up_as_bytes_so_that_nobody_encodes_it_again(monkeypatch):
    asked = []

    def getaddrinfo(name, port, **_):
        asked.append(name)
        return [(0, 0, 0, "", ("1.1.1.1", 0)), (0, 0, 0, "", ("1.1.1.1", 0)), (0, 0, 0, "", ("::1", 0, 0, 0))]

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    assert look_up("example.com") == ["1.1.1.1", "::1"]
    assert asked == [b"example.com"]
