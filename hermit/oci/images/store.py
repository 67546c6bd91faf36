"""The images that an engine keeps: asked for, taken out, put in, named and removed through the engine's own interface."""

from __future__ import annotations

import contextlib
import json
import tarfile
import tempfile
from typing import IO, TYPE_CHECKING, Any, Self

from hermit.errors import PlaceError
from hermit.oci import failure
from hermit.oci.images.archive import stream
from hermit.oci.images.layer import regular
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from hermit.oci.engine import Engine
    from hermit.oci.images.archive import Image

# One block of a layer may take an engine a while to write to a slow disk.
ANSWER_S = 600
ASKED_S = 10.0
INTERMEDIATE = "hermit.intermediate"


class Store:
    """The images of one engine.

    Args:
        engine: The engine.
        client: A client of its interface.
    """

    def __init__(self, engine: Engine, client: Any) -> None:
        self.engine = engine
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def attributes(self, reference: str) -> dict[str, Any] | None:
        """What the engine says of an image; ``None`` where it has none of this name."""
        import docker.errors

        with self._refusals(reference):
            try:
                found: dict[str, Any] = self._client.api.inspect_image(reference)
            except docker.errors.ImageNotFound:
                return None
            return found

    def label(self, reference: str, name: str) -> str:
        """One label of an image; empty where the image or the label does not exist."""
        found = self.attributes(reference)
        return str(((found or {}).get("Config", {}).get("Labels") or {}).get(name, ""))

    def listed(self, reference: str = "") -> list[dict[str, Any]]:
        """All images, or those of one repository, as the engine lists them."""
        with self._refusals(reference):
            found: list[dict[str, Any]] = self._client.api.images(name=reference or None)
            return found

    def history(self, reference: str) -> list[dict[str, Any]]:
        """How an image says that each of its layers was made."""
        with self._refusals(reference):
            found: list[dict[str, Any]] = self._client.api.history(reference)
            return found

    @contextlib.contextmanager
    def layers(self, reference: str, directory: str) -> Iterator[list[IO[bytes]]]:
        """The archives of an image's layers, lowest first; they are gone at the end.

        Args:
            reference: The image.
            directory: Where there is room for it.
        """
        with tempfile.TemporaryFile(dir=directory) as spool:
            with self._refusals(reference):
                for block in self._client.api.get_image(reference):
                    spool.write(block)
            spool.seek(0)
            with tarfile.open(fileobj=spool) as saved:
                names = json.load(regular(saved, "manifest.json"))[0]["Layers"]
                yield [regular(saved, name) for name in names]

    def load(self, image: Image) -> str:
        """Puts an image in, with its own layers alone: those below are there already. Returns its id.

        Raises:
            PlaceError: The engine does not take it.
        """
        with self._refusals(image.id):
            for answer in self._client.api.load_image(stream(image), quiet=True):
                if "error" in answer:
                    raise failure.refusal(str(answer["error"]), program=self.engine.program)
        if self.attributes(image.id) is None:
            cure = "hermit image build needs an engine that keeps its images by their layers, as Docker's default store does"
            raise PlaceError(
                "the engine gave the image another id than its content has", where=self.engine.program, cure=cure
            )
        return image.id

    def pulling(self, repository: str, version: str) -> Iterator[dict[str, Any]]:
        """Fetches from a registry by a tag or a digest, and gives the engine's answers as they come.

        What the engine refuses at once is an answer too: its key is ``error``.
        """
        yield from self._answers(lambda: self._client.api.pull(repository, tag=version, stream=True, decode=True))

    def pushing(self, repository: str, tag: str) -> Iterator[dict[str, Any]]:
        """Sends a tagged image to its registry, and gives the engine's answers as :meth:`pulling` does."""
        yield from self._answers(lambda: self._client.api.push(repository, tag=tag, stream=True, decode=True))

    def _answers(self, ask: Callable[[], Iterator[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
        import docker.errors

        with self._refusals(""):
            try:
                yield from ask()
            except docker.errors.APIError as error:
                status = error.response.status_code if error.response is not None else ""
                yield {"error": f"{status} {error.explanation or error}".strip()}

    def tag(self, image: str, name: str) -> None:
        """Gives an image a name, which another one loses."""
        repository, colon, tag = name.rpartition(":")
        if not colon or "/" in tag:  # a colon before a slash names a port
            repository, tag = name, "latest"
        with self._refusals(image):
            self._client.api.tag(image, repository, tag=tag)

    def remove(self, reference: str) -> bool:
        """Takes a name from an image, and removes it where that was the last one; whether that could be done."""
        import docker.errors

        try:
            self._client.api.remove_image(reference)
        except docker.errors.APIError:  # something still uses it, or it has gone already
            return False
        return True

    def prune(self) -> int:
        """Removes unnamed images of interrupted builds; returns the bytes that were freed."""
        with self._refusals(""):
            answer = self._client.api.prune_images({"dangling": True, "label": [f"{INTERMEDIATE}=1"]})
            return int(answer.get("SpaceReclaimed") or 0)

    def file(self, reference: str, path: str) -> bytes | None:
        """One file of an image, read without starting anything of it; ``None`` where it has no such file."""
        import docker.errors

        with self._refusals(reference):
            made = self._client.api.create_container(reference, command=["-"], entrypoint=["-"])
            try:
                blocks, _ = self._client.api.get_archive(made["Id"], path)
                with tempfile.SpooledTemporaryFile(1 << 24) as spool:
                    for block in blocks:
                        spool.write(block)
                    spool.seek(0)
                    with tarfile.open(fileobj=spool) as archive:
                        return regular(archive, archive.getnames()[0]).read()
            except docker.errors.NotFound:
                return None
            finally:
                self._client.api.remove_container(made["Id"], force=True)

    @contextlib.contextmanager
    def _refusals(self, reference: str) -> Iterator[None]:
        import docker.errors

        try:
            yield
        except docker.errors.APIError as error:
            raise failure.refusal(
                str(error.explanation or error), program=self.engine.program, image=reference
            ) from error
        except (OSError, docker.errors.DockerException) as error:
            cure = "restart it: make engine"
            raise PlaceError(
                f"the container engine does not answer any more: {error}", where=self.engine.program, cure=cure
            ) from error


def connect(engine: Engine, *, environ: Mapping[str, str]) -> Store:
    """The images of this engine, the one that its command line would ask.

    Raises:
        PlaceError: It has no address, or does not answer there.
    """
    import docker
    import docker.errors

    settings = dict(environ)
    if not settings.get("DOCKER_HOST"):
        asked = [engine.program, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}"]
        answered = capture(asked, timeout_s=ASKED_S, env=environ)
        if answered.code == 0 and (host := answered.stdout.decode().strip()):
            settings["DOCKER_HOST"] = host
    try:
        client = docker.DockerClient.from_env(version="auto", timeout=ANSWER_S, environment=settings)
    except docker.errors.DockerException as error:
        raise failure.refusal(str(error), program=engine.program) from error
    return Store(engine, client)
