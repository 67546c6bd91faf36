"""The proxy that the host itself goes out through, where it has one. Pure."""

from __future__ import annotations

import base64
import functools
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from hermit.net.hosts import HTTP, HTTPS, CanonicalHost, canonical, port_number

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

# The first that is set counts. Programs differ in which of the two spellings wins; lower case is the older one.
VARIABLES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
EXCEPT = ("no_proxy", "NO_PROXY")


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """An HTTP proxy that connections go out through.

    It looks names up itself, so an address of a name is not judged on the way through it.

    Args:
        host: Its host.
        port: Its port.
        tls: Whether it is spoken to over TLS.
        user: Its user, empty where it asks for none.
        password: The user's password.
        no_proxy: Hosts that are reached without it: names (with all their sub-domains), addresses, address ranges in
            CIDR form, each with an optional port, or ``*`` for all.
    """

    host: CanonicalHost
    port: int
    tls: bool = False
    user: str = ""
    password: str = field(default="", repr=False)
    no_proxy: tuple[str, ...] = ()

    @property
    def authorization(self) -> tuple[tuple[bytes, bytes], ...]:
        """The header that shows who we are; none without a user."""
        if not self.user:
            return ()
        words = base64.b64encode(f"{self.user}:{self.password}".encode())
        return ((b"Proxy-Authorization", b"Basic " + words),)

    @functools.cached_property
    def trust(self) -> ssl.SSLContext:
        """Whose certificates this host takes: its store's, or those that ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name.

        Raises:
            OSError: They cannot be read.
        """
        import ssl  # noqa: PLC0415 - few hosts need it, and it takes longer to import than a sandbox to start

        return ssl.create_default_context()

    def leads_to(self, host: CanonicalHost, port: int) -> bool:
        """Whether this host is reached through the proxy, and not directly."""
        return not any(_excepts(entry, host, port=port) for entry in self.no_proxy)


def _excepts(entry: str, host: CanonicalHost, *, port: int) -> bool:
    if entry == "*":
        return True
    if host.address is not None and "/" in entry:
        try:
            return host.address in ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, digits = entry.rpartition(":")
    if colon and digits.isdecimal() and (":" not in name or name.endswith("]")):
        if int(digits) != port:
            return False
        entry = name
    try:
        excepted = canonical(entry.removeprefix("*").removeprefix("."))
    except ValueError:
        return False
    below = host.address is None and host.name.endswith(f".{excepted.name}")
    return below or host == excepted


def upstream_from_environ(environ: Mapping[str, str]) -> Upstream | None:
    """The proxy that the usual variables name; ``None`` where none does.

    Raises:
        ValueError: A variable names something else than an HTTP proxy; the message leaves its password out.
    """
    variable = next((name for name in VARIABLES if environ.get(name, "").strip()), None)
    if variable is None:
        return None
    value = environ[variable].strip()
    value = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(value)
        tls = parts.scheme == "https"
        host, port = canonical(parts.hostname or ""), parts.port or (HTTPS if tls else HTTP)
    except ValueError:
        raise ValueError(f"{variable} is not the URL of a proxy, as http://host:port is") from None
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{variable} names a proxy of the kind {parts.scheme!r}; it has to be http:// or https://")
    listed = next((environ[name] for name in EXCEPT if environ.get(name)), "")
    return Upstream(
        host=host,
        port=port_number(str(port)),
        tls=tls,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        no_proxy=tuple(entry.strip() for entry in listed.split(",") if entry.strip()),
    )
