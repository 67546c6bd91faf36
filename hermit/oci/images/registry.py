"""Images from and to a registry: by digest, again after what passes, and with one clear refusal where nothing answers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from hermit.errors import PlaceError
from hermit.oci import failure
from hermit.oci.images import store as stores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from hermit.oci.engine import Engine
    from hermit.oci.images.store import Store

ATTEMPTS = 5
LONGEST_WAIT_S = 20.0
# What a registry or the way to it says when the same request may be answered a moment later.
PASSING = re.compile(
    r"toomanyrequests|too many requests|\b429\b|unexpected EOF|connection reset|\b50[0234]\b|"
    r"service unavailable|bad gateway|unexpected end|short read|filesystem layer verification failed",
    re.IGNORECASE,
)
BUSY = re.compile(r"toomanyrequests|too many requests|\b429\b", re.IGNORECASE)
UNREACHABLE = re.compile(
    r"no such host|connection refused|network is unreachable|no route to host|i/o timeout|Client\.Timeout|"
    r"TLS handshake timeout|server misbehaving|context deadline|proxyconnect|Read timed out",
    re.IGNORECASE,
)
DENIED = re.compile(r"unauthorized|authentication required|denied: ", re.IGNORECASE)
ABSENT = re.compile(r"manifest unknown|not found|name unknown|does not exist", re.IGNORECASE)
DIGEST = re.compile(r"digest: (sha256:[0-9a-f]{64})")
REFERENCE = re.compile(r"(?P<repository>[^@]+?)(?::(?P<tag>[\w][\w.-]*))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?\Z")


class Pull(StrEnum):
    """When an image is fetched from its registry."""

    NEVER = "never"
    MISSING = "missing"
    ALWAYS = "always"


@dataclass(frozen=True)
class Reference:
    """The name of an image in a registry.

    Args:
        repository: Registry and repository.
        tag: Its tag, empty where a digest alone names it.
        digest: ``sha256:...``, empty where a tag alone names it.
    """

    repository: str
    tag: str
    digest: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.digest}" if self.digest else f"{self.repository}:{self.tag}"


class _Passing(Exception):
    """A refusal that may pass."""


def reference(text: str) -> Reference:
    """The parts of an image's name.

    Raises:
        PlaceError: It is no name of an image.
    """
    found = REFERENCE.match(text)
    if found is None or text.startswith("-"):
        raise PlaceError(
            f"{text!r} is not the name of an image", where="image", cure="name it as REGISTRY/NAME:TAG or @sha256:..."
        )
    digest = found["digest"] or ""
    return Reference(found["repository"], found["tag"] or ("" if digest else "latest"), digest)


def ensure(store: Store, image: str, *, pull: Pull, say: Callable[[str], None]) -> str:
    """The id of an image, fetched first where the policy asks for that.

    Raises:
        PlaceError: It is not here and may not be fetched, or it cannot be fetched.
    """
    here = store.attributes(image)
    if here is not None and pull is not Pull.ALWAYS:
        return str(here["Id"])
    if pull is Pull.NEVER:
        cure = "make image, or container.pull=missing to fetch it"
        raise PlaceError(
            f"the image {image} is not here, and container.pull is never", where=store.engine.program, cure=cure
        )
    return fetch(store, image, say=say)


def provide(engine: Engine, image: str, *, pull: Pull, environ: Mapping[str, str]) -> None:
    """Fetches an image where the policy asks for that; what is here and may stay is not even asked for.

    Raises:
        PlaceError: It may be fetched, and cannot be.
    """
    if pull is not Pull.NEVER:
        with stores.connect(engine, environ=environ) as store:
            ensure(store, image, pull=pull, say=lambda _: None)


def fetch(store: Store, image: str, *, say: Callable[[str], None]) -> str:
    """Fetches an image and returns its id; a digest in its name is what it has to be.

    Raises:
        PlaceError: The registry does not answer, refuses, or goes on refusing.
    """
    wanted = reference(image)
    _again(lambda: _talk(store, wanted, store.pulling(wanted.repository, wanted.digest or wanted.tag)), wanted, say=say)
    found = store.attributes(str(wanted))
    if found is None:
        raise PlaceError(f"{wanted} was fetched and is not here", where=store.engine.program)
    return str(found["Id"])


def send(store: Store, image: str, target: str, *, say: Callable[[str], None]) -> Reference:
    """Puts an image into a registry and returns the name with the digest that brings back exactly this one.

    Args:
        store: The engine's images.
        image: The image here.
        target: Its name in the registry; a tag, because a digest is the answer.
        say: Takes one line for whoever waits.

    Raises:
        PlaceError: The image is not here, or the registry does not answer, refuses, or goes on refusing.
    """
    wanted = reference(target)
    if wanted.digest:
        raise PlaceError(
            f"{target} names a digest, which only follows from what is sent", where="image", cure="name a tag"
        )
    if store.attributes(image) is None:
        raise PlaceError(f"the image {image} does not exist here", where=store.engine.program, cure="make image")
    before = store.attributes(str(wanted))
    store.tag(image, str(wanted))
    try:
        said = _again(lambda: _talk(store, wanted, store.pushing(wanted.repository, wanted.tag)), wanted, say=say)
    finally:
        if before is None:
            store.remove(str(wanted))
    digest = DIGEST.search("\n".join(said))
    if digest is None:
        raise PlaceError(f"{wanted} was sent, and the registry gave it no digest", where=wanted.repository)
    return Reference(wanted.repository, "", digest[1])


def _again(once: Callable[[], list[str]], wanted: Reference, *, say: Callable[[str], None]) -> list[str]:
    from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

    def told(state: RetryCallState) -> None:
        words = state.outcome.exception() if state.outcome is not None else ""
        say(f"{wanted}: {words}; trying again")

    retrying = Retrying(
        retry=retry_if_exception_type(_Passing),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_random_exponential(multiplier=0.5, max=LONGEST_WAIT_S),
        before_sleep=told,
        reraise=True,
    )
    try:
        return retrying(once)
    except _Passing as error:
        busy = BUSY.search(str(error))
        cure = "wait, or log in to the registry: it lets known users ask more often" if busy else "try again later"
        raise PlaceError(
            f"the registry went on refusing after {ATTEMPTS} attempts: {error}", where=str(wanted), cure=cure
        ) from None


def _talk(store: Store, wanted: Reference, answers: Iterable[dict[str, Any]]) -> list[str]:
    said = []
    for answer in answers:
        if "error" in answer:
            raise _refusal(store, wanted, str(answer["error"]))
        said.append(str(answer.get("status", "")))
    return said


def _refusal(store: Store, wanted: Reference, words: str) -> Exception:
    """What becomes of a refusal: an error for a person, or one that another attempt may answer."""
    if UNREACHABLE.search(words):
        cure = "build the image here (make image), load it with `docker load`, or set container.pull: never"
        return PlaceError(f"the registry does not answer: {words}", where=str(wanted), cure=cure)
    if DENIED.search(words) and not BUSY.search(words):
        cure = (
            f"check the name, or {store.engine.program.rsplit('/', 1)[-1]} login {wanted.repository.partition('/')[0]}"
        )
        return PlaceError(f"the registry refuses: {words}", where=str(wanted), cure=cure)
    if PASSING.search(words):
        return _Passing(words)
    if ABSENT.search(words):
        cure = "check its name, or build it here: make image"
        return PlaceError(f"the registry has no such image: {words}", where=str(wanted), cure=cure)
    refused = failure.refusal(words, program=store.engine.program, image=str(wanted))
    return PlaceError(refused.what, where=str(wanted), cure=refused.cure)
