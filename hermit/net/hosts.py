"""Names of hosts: one form of each, and the patterns that allow them. Pure: nothing here looks a name up.

The form that is matched is the form that is dialled. Most ways around an allowlist begin with two readers of one text,
such as a matcher that sees ``good.com`` where the resolver sees ``bad``; so a spelling that two readers could take
differently is refused, not repaired.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_NAME = 253
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\Z")
# A resolver reads such a name as a number, in one of many spellings. No top-level domain begins with a digit.
NUMERIC = re.compile(r"(.*\.[0-9][^.]*|[0-9]+|0x[0-9a-f]*)\Z")
PORT = re.compile(r"[1-9][0-9]{0,4}\Z")
HTTP, HTTPS = 80, 443
HIGHEST_PORT = 65535

# Who may register a name below these is anybody, so a wildcard over one allows anybody's hosts. Both lists are short on
# purpose: they catch the plain mistake, and the whole list of public suffixes is longer than Hermit.
REGISTRY = re.compile(r"(ac|co|com|edu|gob|gov|gouv|go|gv|ne|net|or|org|sch)\.[a-z]{2}\Z")
OPEN_SUFFIXES = frozenset(
    {
        "appspot.com",
        "azurewebsites.net",
        "cloudfront.net",
        "firebaseapp.com",
        "github.io",
        "gitlab.io",
        "herokuapp.com",
        "netlify.app",
        "ngrok.app",
        "ngrok.io",
        "nip.io",
        "pages.dev",
        "sslip.io",
        "vercel.app",
        "web.app",
        "workers.dev",
    }
)


@dataclass(frozen=True)
class CanonicalHost:
    """The one form of a host: a name in lower case, or an address.

    Args:
        name: The name in A-labels, or the address as text; IPv6 without brackets.
        address: The address, ``None`` for a name.
    """

    name: str
    address: Address | None = None

    def __str__(self) -> str:
        return f"[{self.name}]" if isinstance(self.address, IPv6Address) else self.name

    def with_port(self, port: int) -> str:
        """The authority ``host:port`` as a request writes it."""
        return f"{self}:{port}"


def canonical(host: str) -> CanonicalHost:
    """The form of a host that is used for matching and dialling alike.

    Raises:
        ValueError: It is no host, or one whose spelling two readers could take differently.
    """
    if not host or len(host) > LONGEST_NAME + 1:
        raise ValueError(f"a host has 1 to {LONGEST_NAME} characters")
    if any(unicodedata.category(mark)[0] in "CZ" for mark in host):
        raise ValueError("a host holds no blank and no control character")
    if "%" in host:
        raise ValueError("a host is written without '%': neither percent-encoded nor with a zone")
    if ":" in host or "[" in host or "]" in host:
        return _ipv6(host)
    name = _a_labels(host).lower().removesuffix(".")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"a host has 1 to {LONGEST_NAME} characters")
    for label in name.split("."):
        if not LABEL.match(label):
            raise ValueError("each label of a host has 1 to 63 letters, digits, '-' or '_', and no '-' at an end")
    return _ipv4(name) if NUMERIC.match(name) else CanonicalHost(name)


def _a_labels(host: str) -> str:
    if host.isascii():
        return host
    try:
        encoded = host.encode("idna").decode("ascii")
        decoded = encoded.encode("ascii").decode("idna")
    except UnicodeError:
        raise ValueError("it is no internationalised name") from None
    # The codec folds letters that only look alike into others; such a name is one thing to read and another to dial.
    if decoded != unicodedata.normalize("NFC", host).lower():
        raise ValueError("it is an internationalised name that does not read back as it was written")
    return encoded


def _ipv4(name: str) -> CanonicalHost:
    try:
        address = IPv4Address(name)
    except ValueError:
        raise ValueError("an IPv4 address is written as four plain decimal numbers") from None
    return CanonicalHost(str(address), address)


def _ipv6(host: str) -> CanonicalHost:
    inner = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        address = IPv6Address(inner)
    except ValueError:
        raise ValueError("it is no IPv6 address") from None
    mapped = address.ipv4_mapped
    return CanonicalHost(str(mapped), mapped) if mapped is not None else CanonicalHost(str(address), address)


@dataclass(frozen=True)
class HostPattern:
    """Which hosts, and which of their ports, a line of an allowlist names.

    Args:
        host: The host, or what follows ``*.`` in a pattern of sub-domains.
        subdomains: Whether the pattern names every sub-domain of ``host``, at any depth, and not ``host`` itself.
        port: The one port it allows; ``None`` allows 443 for tunnels and 80 for plain HTTP.
    """

    host: CanonicalHost
    subdomains: bool = False
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> HostPattern:
        """The pattern of ``api.example.com``, ``*.example.com``, an address, or one of these with ``:port``.

        Raises:
            ValueError: It is none of these, or would allow hosts that anybody can register.
        """
        if "/" in text or "\\" in text:
            raise ValueError(f"{text!r} is no host pattern: write the host alone, without scheme, path or range")
        if "@" in text:
            raise ValueError(f"{text!r} is no host pattern: write the host alone, without a user")
        host, port = _split(text)
        subdomains = host.startswith("*.")
        try:
            found = canonical(host[2:] if subdomains else host)
        except ValueError as error:
            hint = "; '*' stands only at the front, as in *.example.com" if "*" in host else ""
            raise ValueError(f"{text!r} is no host pattern: {error}{hint}") from None
        if subdomains:
            _refuse_wide(found, text)
        return cls(found, subdomains, port)

    def matches(self, host: CanonicalHost) -> bool:
        """Whether it names this host."""
        if self.subdomains:
            return host.address is None and host.name.endswith(f".{self.host.name}")
        return host == self.host

    def allows(self, port: int, *, tunnel: bool) -> bool:
        """Whether it allows this port, for a tunnel (CONNECT) or for plain HTTP."""
        return port == (self.port or (HTTPS if tunnel else HTTP))

    def __str__(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"{'*.' if self.subdomains else ''}{self.host}{port}"


def _split(text: str) -> tuple[str, int | None]:
    """Host and port of a pattern; an IPv6 address with a port stands in brackets."""
    bare_ipv6 = text.count(":") > 1 and not text.startswith("[")
    if bare_ipv6 or ":" not in text or text.endswith("]"):
        return text, None
    host, _, port = text.rpartition(":")
    return host, port_number(port)


def port_number(digits: str) -> int:
    """The port that plain digits name.

    Raises:
        ValueError: They name none.
    """
    if not PORT.match(digits) or int(digits) > HIGHEST_PORT:
        raise ValueError(f"a port is a number from 1 to {HIGHEST_PORT}, not {digits!r:.20}")
    return int(digits)


def _refuse_wide(host: CanonicalHost, text: str) -> None:
    if host.address is not None:
        raise ValueError(f"{text!r} is no host pattern: an address has no sub-domains")
    registry = REGISTRY.match(host.name)
    if "." not in host.name or registry or host.name in OPEN_SUFFIXES:
        raise ValueError(f"{text!r} is too wide: anybody can register a host below {host}; name the hosts meant")


@dataclass(frozen=True)
class Rule:
    """One pattern, with the addresses beside the public ones that its hosts may have.

    Args:
        pattern: The hosts and ports.
        networks: Private, loopback or other special addresses that are allowed for this pattern alone.
    """

    pattern: HostPattern
    networks: tuple[Network, ...] = ()

    def permits(self, address: Address) -> bool:
        """Whether this very address is declared, by the pattern itself or beside it."""
        return self.pattern.host.address == address or any(address in network for network in self.networks)


@dataclass(frozen=True)
class Refusal:
    """Why a request goes nowhere: a fixed word for programs and a sentence for people."""

    rule: str
    reason: str


@dataclass(frozen=True)
class Rules:
    """An allowlist; an empty one allows nothing."""

    rules: tuple[Rule, ...] = ()

    @classmethod
    def parse(cls, patterns: tuple[str, ...] | list[str]) -> Rules:
        """The allowlist of these patterns.

        Raises:
            ValueError: One of them is no pattern.
        """
        return cls(tuple(Rule(HostPattern.parse(text)) for text in patterns))

    def allows(self, host: CanonicalHost, port: int, *, tunnel: bool) -> Rule | Refusal:
        """The first rule that allows this host and port, or why none does."""
        named = [rule for rule in self.rules if rule.pattern.matches(host)]
        for rule in named:
            if rule.pattern.allows(port, tunnel=tunnel):
                return rule
        if not named:
            return Refusal("host", f"{host} is not on the list")
        verb = "a TLS tunnel" if tunnel else "plain HTTP"
        listed = ", ".join(str(rule.pattern) for rule in named)
        return Refusal("port", f"{listed} does not allow {verb} to port {port}")
