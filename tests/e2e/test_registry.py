"""Images to and from a real registry: by digest, over a connection that breaks, and while it is asked too often."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.image import DockerImage

from hermit.errors import PlaceError
from hermit.oci import engine as engines
from hermit.oci.images import archive, registry, store
from hermit.oci.images.layer import canonical
from tests.conftest import registry_program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.image, pytest.mark.registry, pytest.mark.serial]
CONFIG = """version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: /tmp/registry}}, cache: {{blobdescriptor: inmemory}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""
# Debian's registry on ours: there is no other image here, and no registry to get one from.
DOCKERFILE = """FROM hermit
COPY docker-registry /usr/local/bin/docker-registry
COPY config.yml /config.yml
ENTRYPOINT ["docker-registry"]
CMD ["serve", "/config.yml"]
"""
BLOB_BYTES = 4_000_000


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a registry of Debian's on loopback, in a container."""
    testcontainers_config.ryuk_disabled = (
        True  # its image would have to be fetched; what is left behind, the session tells
    )
    context, port, program = tmp_path_factory.mktemp("registry"), free_port(), registry_program()
    assert program is not None
    shutil.copy(program, context / "docker-registry")
    (context / "config.yml").write_text(CONFIG.format(port=port), encoding="utf-8")
    (context / "Dockerfile").write_text(DOCKERFILE, encoding="utf-8")
    # On the machine's own network: the engine may make none, and the engine itself has to reach it.
    with (
        DockerImage(str(context), tag=f"hermit-test-registry-{secrets.token_hex(4)}", clean_up=True) as image,
        DockerContainer(str(image), network_mode="host") as running,
    ):
        wait_for(port, running)
        yield port


def wait_for(port: int, running: DockerContainer) -> None:
    """Waits until the registry answers."""
    for _ in range(600):
        running.get_wrapped_container().reload()
        assert running.get_wrapped_container().status == "running", running.get_logs()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/", timeout=60):
                return
        except (urllib.error.URLError, ConnectionError):
            threading.Event().wait(0.1)
    raise AssertionError("the registry never answered")


class Between(BaseHTTPRequestHandler):
    """Stands before the registry and, as often as it is told to, answers in its place or breaks a layer off."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append(self.path)
        if "/manifests/" in self.path and server.busy > 0:
            server.busy -= 1
            self.answer(429, b'{"errors":[{"code":"TOOMANYREQUESTS","message":"slow down"}]}', {})
            return
        request = urllib.request.Request(f"http://127.0.0.1:{server.behind}{self.path}", method=self.command)
        for name in ("Accept", "Range"):
            if self.headers.get(name):
                request.add_header(name, ", ".join(self.headers.get_all(name) or []))
        try:
            with urllib.request.urlopen(request, timeout=60) as answered:  # noqa: S310
                body, code, headers = answered.read(), answered.status, dict(answered.headers)
        except urllib.error.HTTPError as error:
            body, code, headers = error.read(), error.code, dict(error.headers)
        if "/blobs/" in self.path and server.breaks > 0 and len(body) > 100_000:
            server.breaks -= 1
            self.answer(code, body, headers, cut=len(body) // 2)
            return
        self.answer(code, body, headers)

    do_HEAD = do_GET  # noqa: N815 - the name that the server asks for

    def answer(self, code: int, body: bytes, headers: dict[str, str], cut: int = 0) -> None:
        """Sends an answer, or only its first bytes before the connection breaks."""
        self.send_response(code)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        length = headers.get("Content-Length", str(len(body))) if self.command == "HEAD" else str(len(body))
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body[:cut] if cut else body)
        if cut:
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def between(behind: int) -> Iterator[Any]:
    """What stands before the registry."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    server.behind, server.busy, server.breaks, server.asked = behind, 0, 0, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def images() -> Iterator[store.Store]:
    """The images of the engine."""
    with store.connect(engines.find(os.environ), environ=os.environ) as opened:
        yield opened


@pytest.fixture
def image(images: store.Store, tmp_path: Path) -> Iterator[str]:
    """A small image of our own that nobody has seen before."""
    import io
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as opened:
        info = tarfile.TarInfo("random")
        info.size = BLOB_BYTES
        opened.addfile(info, io.BytesIO(os.urandom(BLOB_BYTES)))
    packed.seek(0)
    layer = canonical(packed, str(tmp_path / "layer.tar"), epoch=0)
    system, _, architecture = images.engine.platform.partition("/")
    made = archive.stacked(
        (), (layer,), platform=archive.Platform(system, architecture), settings={"Cmd": ["x"]}, names=("one",), epoch=0
    )
    images.load(made)
    try:
        yield made.id
    finally:
        images.remove(made.id)


def sent_and_gone(images: store.Store, image: str, port: int) -> registry.Reference:
    """Sends an image, removes it here, and gives its name by digest."""
    sent = registry.send(images, image, f"127.0.0.1:{port}/test/{secrets.token_hex(4)}:1", say=print)
    images.remove(image)
    assert images.attributes(image) is None
    return sent


def through(sent: registry.Reference, between: Any) -> str:
    """The same name at what stands before the registry."""
    return str(sent).replace(sent.repository.partition("/")[0], f"127.0.0.1:{between.server_port}")


def forget(images: store.Store, *names: str) -> None:
    """Takes names away."""
    for name in names:
        images.remove(name)


def test_an_image_comes_back_by_its_digest_as_the_same_image(images: store.Store, image: str, behind: int) -> None:
    sent = sent_and_gone(images, image, behind)
    try:
        assert registry.fetch(images, str(sent), say=print) == image
    finally:
        forget(images, str(sent))


def test_a_pull_that_breaks_in_the_middle_of_a_layer_ends_with_the_whole_image(
    images: store.Store, image: str, behind: int, between: Any
) -> None:
    name = through(sent_and_gone(images, image, behind), between)
    between.breaks = 2
    try:
        assert registry.fetch(images, name, say=print) == image
        assert between.breaks == 0
    finally:
        forget(images, name)


def test_a_registry_that_is_asked_too_often_is_asked_again(
    images: store.Store, image: str, behind: int, between: Any
) -> None:
    name = through(sent_and_gone(images, image, behind), between)
    between.busy, said = 2, []
    try:
        assert registry.fetch(images, name, say=said.append) == image
        assert between.busy == 0
        assert said
    finally:
        forget(images, name)


def test_a_registry_that_goes_on_refusing_is_given_up(images: store.Store, between: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)
    between.busy = 10_000
    with pytest.raises(PlaceError, match=f"went on refusing after {registry.ATTEMPTS} attempts"):
        registry.fetch(images, f"127.0.0.1:{between.server_port}/test/absent:1", say=print)
    assert between.busy > 0


def test_a_digest_that_the_registry_does_not_have_is_one_refusal(images: store.Store, behind: int) -> None:
    with pytest.raises(PlaceError, match="no such image"):
        registry.fetch(images, f"127.0.0.1:{behind}/test/a@sha256:{'0' * 64}", say=print)


def test_where_nothing_answers_there_is_one_clear_refusal(images: store.Store) -> None:
    with pytest.raises(PlaceError, match="the registry does not answer") as refused:
        registry.fetch(images, f"127.0.0.1:{free_port()}/test/a:1", say=print)
    assert "make image" in refused.value.cure
