"""No credential, proxy or certificate authority of the host is in any layer, or in what an image says of itself."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import subprocess
import tarfile
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hermit.environ import snapshot
from hermit.oci import engine as engines
from hermit.oci.images import checkout, host, site, store

pytestmark = [pytest.mark.docker, pytest.mark.image]
SECRET = "planted-credential-7d1f"  # noqa: S105 - a needle, and nobody's
CREDENTIALS = base64.b64encode(f"builder:{SECRET}".encode()).decode()
CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")


def found(layers, needles):
    """The files of these layers that hold one of the needles, each with the needle's name."""
    hits = []
    for layer in layers:
        with tarfile.open(fileobj=layer) as archive:
            for member in archive:
                content = archive.extractfile(member).read() if member.isreg() else b""
                whole = content + member.name.encode() + member.linkname.encode()
                # A bundle may break its lines anywhere else.
                joined = whole.replace(b"\n", b"") if b"BEGIN CERT" in whole else whole
                hits += [(member.name, name) for name, needle in needles.items() if needle in whole or needle in joined]
    return hits


def certificates(text):
    """The bodies of the certificates in a bundle, without line breaks."""
    return {b"".join(body.split()) for body in CERTIFICATE.findall(text)}


def packaged_certificates(layer):
    """The certificates that Debian's package of them put into a layer."""
    with tarfile.open(fileobj=layer) as archive:
        files = [one for one in archive if one.isreg() and one.name.startswith("usr/share/ca-certificates/")]
        return set().union(*(certificates(archive.extractfile(one).read()) for one in files))


@pytest.fixture(scope="module")
def images():
    with store.connect(engines.find(snapshot()), environ=snapshot()) as opened:
        yield opened


def test_a_needle_in_a_layer_is_found():
    layer = io.BytesIO()
    body = b"MIIabc" * 20
    bundle = b"-----BEGIN CERTIFICATE-----\n" + body[:64] + b"\n" + body[64:] + b"\n-----END CERTIFICATE-----\n"
    with tarfile.open(fileobj=layer, mode="w") as archive:
        for name, content in (
            ("etc/conf", b"http://u:" + SECRET.encode() + b"@h"),
            ("etc/ca.pem", bundle),
            ("fine", b""),
        ):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    layer.seek(0)
    needles = {"secret": SECRET.encode(), "ca": body}
    assert found([layer], needles) == [("etc/conf", "secret"), ("etc/ca.pem", "ca")]


def beyond_debian(packaged):
    """What this machine fetches with: the authorities it trusts beside Debian's, its proxies and its indexes."""
    here = set().union(*(certificates(path.read_bytes()) for path in Path("/usr/share/ca-certificates").rglob("*.crt")))
    authorities = certificates(BUNDLE.read_bytes()) - packaged - here
    needles = {f"authority {number}": body for number, body in enumerate(authorities)}
    for variable, value in snapshot().items():
        if re.search(r"proxy$|^PIP_.*INDEX", variable, re.IGNORECASE) and len(value) > 8:
            needles[variable] = value.encode()
    return {**needles, "a pip.conf": b"extra-index-url"}


def test_no_layer_of_an_image_holds_what_this_machine_trusts_beyond_debian_or_fetches_with(images, tmp_path):
    seen, needles = set(), {}
    for name in ("hermit-judge", "hermit"):
        digests = images.attributes(name)["RootFS"]["Layers"]
        with images.layers(name, str(tmp_path)) as layers:
            if not needles:
                # What the image trusts came with Debian's package.
                own, packaged = certificates(images.file(name, str(BUNDLE))), packaged_certificates(layers[0])
                assert len(own) > 50
                assert own <= packaged
                needles = beyond_debian(packaged)
            new = [layer for layer, digest in zip(layers, digests, strict=True) if digest not in seen]
            assert new
            assert [hit for hit in found(new, needles) if "site-packages" not in hit[0]] == []
        seen |= set(digests)
        about = json.dumps(images.attributes(name)) + json.dumps(images.history(name))
        assert [key for key, needle in needles.items() if needle.decode() in about] == []
        assert not re.search(r"https?://\w", about)


class Mirror(BaseHTTPRequestHandler):
    """A proxy that asks for credentials, and is the mirror of a Debian archive with one package too."""

    archive: Path

    def do_GET(self):
        if self.headers.get("Proxy-Authorization") != f"Basic {CREDENTIALS}":
            self._answer(407, b"", {"Proxy-Authenticate": "Basic"})
            return
        place = self.archive / self.path.rpartition("/debian/")[2].lstrip("./")
        self._answer(*((200, place.read_bytes()) if place.is_file() else (404, b"")), {})
        self.server.served.append(place.name)

    def _answer(self, code, body, headers):
        self.send_response(code)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def mirror(archive):
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Here", (Mirror,), {"archive": archive}))
    server.served = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def one_package(directory):
    """A Debian archive with the package `planted` alone, unsigned."""
    tree = directory / "tree" / "DEBIAN"
    tree.mkdir(parents=True)
    fields = "Package: planted\nVersion: 1\nArchitecture: all\nMaintainer: a <a@b.invalid>\nDescription: planted\n"
    (tree / "control").write_text(fields)
    archive = directory / "archive"
    archive.mkdir()
    built = archive / "planted_1_all.deb"
    subprocess.run(["dpkg-deb", "--build", str(tree.parent), str(built)], check=True, capture_output=True)
    digest = hashlib.sha256(built.read_bytes()).hexdigest()
    entry = f"{fields}Filename: ./{built.name}\nSize: {built.stat().st_size}\nSHA256: {digest}\n"
    (archive / "Packages").write_text(entry)
    return archive


def test_a_base_completed_behind_a_proxy_with_credentials_and_an_authority_keeps_neither(images, tmp_path):
    here = checkout.here()
    rootfs = checkout.inputs(here).names["rootfs"]
    context, name = tmp_path / "base", f"hermit-test-base:{tmp_path.name[-8:]}".lower()
    context.mkdir()
    (context / "list").write_text("deb [trusted=yes] http://mirror.invalid/debian ./\n")
    (context / "Dockerfile").write_text(f"FROM {rootfs}\nCOPY list /etc/apt/sources.list\n")
    authority = tmp_path / "authority.pem"
    body = base64.b64encode(b"the authority of an intercepting proxy" * 10)
    authority.write_bytes(b"-----BEGIN CERTIFICATE-----\n" + body + b"\n-----END CERTIFICATE-----\n")
    subprocess.run(["docker", "build", "--quiet", "--tag", name, str(context)], check=True, capture_output=True)
    try:
        with (
            mirror(one_package(tmp_path)) as server,
            site.opened(here, images, environ=snapshot(), say=print) as opened,
        ):
            proxy = f"http://builder:{SECRET}@127.0.0.1:{server.server_port}"
            environ = {**opened.environ, "http_proxy": proxy, "https_proxy": proxy, "SSL_CERT_FILE": str(authority)}
            behind = replace(opened, environ=environ, cached=False)
            made = host.debian(behind, ["planted"], base=name)
            assert "planted_1_all.deb" in server.served
            with open(made.layer.file, "rb") as layer:
                needles = {"secret": SECRET.encode(), "encoded": CREDENTIALS.encode(), "authority": body}
                assert found([layer], needles) == []
                layer.seek(0)
                assert host.debian_versions(made.layer)["planted"] == "1"
            assert SECRET not in json.dumps(made.settings)
    finally:
        images.remove(name)
