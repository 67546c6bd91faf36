"""One form of each host, and patterns that name no more than they seem to."""

from __future__ import annotations

import re
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.net.hosts import HostPattern, Refusal, Rule, Rules, canonical

LABELS = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABELS, min_size=2, max_size=5).map(".".join)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("API.Example.COM", "api.example.com"),
        ("api.example.com.", "api.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("93.184.216.34", "93.184.216.34"),
        ("[2606:4700:0:0::1]", "2606:4700::1"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("localhost.", "localhost"),
    ],
)
def test_a_host_has_one_form_whatever_its_spelling(written, read):
    assert canonical(written).name == read


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0177.0.0.1",
        "0x7f.1",
        "0x7f000001",
        "127.1",
        "127.0.0.01",
        "1.2.3.4.5",
        "256.1.1.1",
        "127.0.0.1-9",
    ],
)
def test_an_ipv4_address_in_another_spelling_is_refused(host):
    with pytest.raises(ValueError, match="four plain decimal numbers"):
        canonical(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        ".",
        "a..b",
        "a.b..",
        ".a.b",
        "bad\0.good.com",
        "good.com\r\nX: 1",
        "good.com ",
        "good\u200b.com",
        "good%2ecom",
        "[fe80::1%eth0]",
        "user@good.com",
        "good.com/x",
        "good.com\\x",
        "good.com#x",
        "good.com?x",
        "-good.com",
        "good-.com",
        "a" * 64 + ".com",
        "a." * 127 + "com",
        "straße.example",
        "\uff47ood.com",
        "good\u3002com",
        "\u2460.com",
        "[::1",
        "::1]",
        "[127.0.0.1]",
        "a:b",
    ],
)
def test_a_host_that_two_readers_could_take_differently_is_refused(host):
    with pytest.raises(ValueError, match=r"\w+"):
        canonical(host)


@given(st.text(max_size=60))
def test_the_form_of_a_host_is_its_own_form_and_plain_ascii(text):
    try:
        found = canonical(text)
    except ValueError:
        return
    assert canonical(str(found)) == found
    assert re.fullmatch(r"[a-z0-9_.:-]+", found.name)
    assert (found.address is not None) == (":" in found.name or bool(re.fullmatch(r"[0-9.]+", found.name)))


@pytest.mark.parametrize(
    "text",
    [
        "api.example.com",
        "*.example.com",
        "api.example.com:8443",
        "*.example.co.uk:8443",
        "1.1.1.1",
        "[::1]:80",
        "[2606::1]",
    ],
)
def test_a_pattern_reads_back_as_it_was_written(text):
    assert str(HostPattern.parse(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("*", "'\\*' stands only at the front"),
        ("*.com", "too wide"),
        ("*.localhost", "too wide"),
        ("*.co.uk", "too wide"),
        ("*.com.au", "too wide"),
        ("*.github.io", "too wide"),
        ("api.*.com", "'\\*' stands only at the front"),
        ("*example.com", "'\\*' stands only at the front"),
        ("*.*.example.com", "'\\*' stands only at the front"),
        ("*.1.2.3.4", "no sub-domains"),
        ("https://example.com", "without scheme"),
        ("example.com/path", "path"),
        ("10.0.0.0/8", "range"),
        ("10.0.0.1-9", "four plain decimal"),
        ("me@example.com", "without a user"),
        ("example.com:", "a port is"),
        ("example.com:0", "a port is"),
        ("example.com:65536", "a port is"),
        ("example.com:080", "a port is"),
        ("example.com:https", "a port is"),
        (" example.com", "no blank"),
        ("example..com", "each label"),
        ("example.com\n", "no control character"),
        ("", "characters"),
    ],
)
def test_a_pattern_that_names_more_or_less_than_it_seems_to_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        HostPattern.parse(text)


@given(st.text(max_size=40))
def test_any_text_is_a_pattern_or_refused_and_a_pattern_means_what_it_prints(text):
    try:
        pattern = HostPattern.parse(text)
    except ValueError:
        return
    assert HostPattern.parse(str(pattern)) == pattern


@given(NAMES, NAMES)
def test_a_wildcard_matches_sub_domains_at_any_depth_and_nothing_else(name, below):
    pattern = HostPattern(canonical(name), subdomains=True)
    assert pattern.matches(canonical(f"{below}.{name}"))
    assert not pattern.matches(canonical(name))
    assert not pattern.matches(canonical(f"x{name}"))
    assert not pattern.matches(canonical(f"{name}.{below}.evil"))


def test_a_wildcard_matches_no_address():
    assert not HostPattern(canonical("0.0.1.example"), subdomains=True).matches(canonical("127.0.0.1"))


def test_an_exact_pattern_matches_no_sub_domain():
    assert not HostPattern.parse("example.com").matches(canonical("www.example.com"))


@pytest.mark.parametrize(
    ("pattern", "port", "tunnel", "allowed"),
    [
        ("example.com", 443, True, True),
        ("example.com", 80, False, True),
        ("example.com", 80, True, False),
        ("example.com", 443, False, False),
        ("example.com", 22, True, False),
        ("example.com:8443", 8443, True, True),
        ("example.com:8443", 8443, False, True),
        ("example.com:8443", 443, True, False),
    ],
)
def test_a_pattern_allows_its_port_alone_or_443_for_tunnels_and_80_for_plain_http(pattern, port, tunnel, allowed):
    verdict = Rules.parse([pattern]).allows(canonical("example.com"), port, tunnel=tunnel)
    assert isinstance(verdict, Rule) == allowed
    assert allowed or verdict.rule == "port"


def test_an_empty_list_allows_nothing():
    assert Rules().allows(canonical("example.com"), 443, tunnel=True) == Refusal(
        "host", "example.com is not on the list"
    )


def test_a_second_pattern_of_the_same_host_adds_its_port():
    rules = Rules.parse(["example.com", "example.com:8443"])
    assert isinstance(rules.allows(canonical("example.com"), 8443, tunnel=True), Rule)


def test_a_rule_permits_its_own_address_and_those_declared_beside_it_only():
    assert Rule(HostPattern.parse("10.0.0.1")).permits(ip_address("10.0.0.1"))
    assert not Rule(HostPattern.parse("10.0.0.1")).permits(ip_address("10.0.0.2"))
    assert Rule(HostPattern.parse("a.example"), (ip_network("10.0.0.0/8"),)).permits(ip_address("10.9.9.9"))
    assert not Rule(HostPattern.parse("a.example")).permits(ip_address("10.9.9.9"))
