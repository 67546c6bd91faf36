"""A registry's answers: what passes is asked for again, a bounded number of times; the rest is one clear refusal."""

from __future__ import annotations

import pytest

from hermit.errors import PlaceError
from hermit.oci.images import registry
from hermit.oci.images.registry import ATTEMPTS, Pull, ensure, fetch, reference, send

DIGEST = "sha256:" + "a" * 64


class Engine:
    program = "/usr/bin/docker"


class Answers:
    """An engine whose registry answers with these, one list for each attempt."""

    engine = Engine()

    def __init__(self, *answers, here=None):
        self.answers, self.asked, self.here, self.names = list(answers), 0, here, []

    def attributes(self, _):
        return self.here

    def _next(self):
        self.asked += 1
        answer = self.answers[min(self.asked, len(self.answers)) - 1]
        if answer == "fetched":
            self.here = {"Id": "sha256:1"}
            return [{"status": "Pulling"}, {"status": f"Digest: {DIGEST}"}]
        return [{"error": answer}] if isinstance(answer, str) else answer

    def pulling(self, *_):
        return self._next()

    def pushing(self, *_):
        return self._next()

    def tag(self, _, name):
        self.names.append(name)

    def remove(self, name):
        self.names.remove(name)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch):
    monkeypatch.setattr("tenacity.nap.time.sleep", lambda _: None)


def quiet(_):
    pass


@pytest.mark.parametrize(
    "words",
    [
        "toomanyrequests: You have reached your pull rate limit",
        "429 Too Many Requests",
        "unexpected EOF",
        "read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer",
        "received unexpected HTTP status: 503 Service Unavailable",
    ],
)
def test_what_passes_is_asked_for_again_and_said(words):
    store, said = Answers(words, words, "fetched"), []
    assert fetch(store, "r/a:1", say=said.append) == "sha256:1"
    assert store.asked == 3
    assert len(said) == 2
    assert words in said[0]


def test_the_attempts_are_bounded_and_the_refusal_says_how_many():
    store = Answers("429 Too Many Requests")
    with pytest.raises(PlaceError, match=f"went on refusing after {ATTEMPTS} attempts") as refused:
        fetch(store, "r/a:1", say=quiet)
    assert store.asked == ATTEMPTS
    assert "log in" in refused.value.cure


@pytest.mark.parametrize(
    ("words", "named", "cure"),
    [
        ("Get http://r/v2/: dial tcp: lookup r: no such host", "does not answer", "make image"),
        ("dial tcp 127.0.0.1:1: connect: connection refused", "does not answer", "container.pull: never"),
        ("net/http: TLS handshake timeout", "does not answer", "docker load"),
        ("unauthorized: authentication required", "refuses", "login r"),
        ("manifest unknown: manifest unknown", "no such image", "name"),
    ],
)
def test_what_does_not_pass_is_one_refusal_at_once(words, named, cure):
    store = Answers(words)
    with pytest.raises(PlaceError, match=named) as refused:
        fetch(store, "r/a:1", say=quiet)
    assert store.asked == 1
    assert cure in refused.value.cure
    assert refused.value.where == "r/a:1"


def test_an_image_that_is_here_is_fetched_only_where_it_always_is():
    for pull, asked in ((Pull.NEVER, 0), (Pull.MISSING, 0), (Pull.ALWAYS, 1)):
        store = Answers("fetched", here={"Id": "sha256:0"})
        ensure(store, "a", pull=pull, say=quiet)
        assert store.asked == asked


def test_an_image_that_is_not_here_is_fetched_unless_it_never_is():
    assert ensure(Answers("fetched"), "a", pull=Pull.MISSING, say=quiet) == "sha256:1"
    store = Answers("fetched")
    with pytest.raises(PlaceError, match=r"a is not here, and container\.pull is never") as refused:
        ensure(store, "a", pull=Pull.NEVER, say=quiet)
    assert store.asked == 0
    assert "make image" in refused.value.cure


def test_a_run_asks_no_registry_where_it_never_fetches(monkeypatch):
    def connect(*_, **__):
        raise AssertionError("connected")

    monkeypatch.setattr(registry.stores, "connect", connect)
    registry.provide(Engine(), "a", pull=Pull.NEVER, environ={})
    for pull in (Pull.MISSING, Pull.ALWAYS):
        with pytest.raises(AssertionError, match="connected"):
            registry.provide(Engine(), "a", pull=pull, environ={})


def test_what_is_sent_is_named_by_its_digest_and_leaves_no_name_here():
    store = Answers([{"status": f"1: digest: {DIGEST} size: 1"}])
    store.attributes = lambda name: {"Id": "1"} if name == "hermit" else None
    assert str(send(store, "hermit", "r:5000/a:1", say=quiet)) == f"r:5000/a@{DIGEST}"
    assert store.names == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a", "latest", "")),
        ("r:5000/a/b", ("r:5000/a/b", "latest", "")),
        ("r:5000/a:1.0", ("r:5000/a", "1.0", "")),
        (f"r/a@{DIGEST}", ("r/a", "", DIGEST)),
    ],
)
def test_a_name_is_read_in_its_parts(text, parts):
    found = reference(text)
    assert (found.repository, found.tag, found.digest) == parts


@pytest.mark.parametrize("text", ["", "-v", "a@sha256:short"])
def test_what_is_no_name_is_refused(text):
    with pytest.raises(PlaceError, match="is not the name of an image"):
        reference(text)


def test_a_digest_is_nothing_to_send_to():
    with pytest.raises(PlaceError, match="names a digest"):
        send(Answers(here={"Id": "1"}), "hermit", f"r/a@{DIGEST}", say=quiet)
    assert registry.ATTEMPTS > 1
