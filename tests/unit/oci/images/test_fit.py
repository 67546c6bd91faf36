"""Somebody's own image, made from ours, is judged by what it has of Hermit, bubblewrap and the interpreter."""

from __future__ import annotations

import os
import secrets

import pytest

import hermit
from hermit.oci import engine as engines
from hermit.oci.images.fit import Fitness, _findings, judged
from hermit.proc import capture

SAID = {
    "python": [3, 11, 2],
    "uid": 1000,
    "hermit": hermit.__version__,
    "bubblewrap": "bubblewrap 0.12.0",
    "starts": "",
}


def lacking(said):
    return {one.name: one for one in _findings(said, "mine") if not one.ok}


def test_an_image_with_everything_lacks_nothing():
    assert lacking(SAID) == {}


@pytest.mark.parametrize(
    ("change", "name", "found"),
    [
        ({"python": [3, 10, 9]}, "interpreter", "Python 3.10.9"),
        ({"hermit": "0.0.1"}, "hermit", "version 0.0.1"),
        ({"hermit": "", "broken": "ModuleNotFoundError: hermit"}, "hermit", "ModuleNotFoundError: hermit"),
        ({"bubblewrap": "bubblewrap 0.8.0"}, "bubblewrap", "bubblewrap 0.8.0"),
        ({"bubblewrap": ""}, "bubblewrap", "none"),
        ({"bubblewrap": "does not start: 1.2"}, "bubblewrap", "does not start: 1.2"),
        ({"starts": "Creating new namespace failed"}, "sandbox", "Creating new namespace failed"),
    ],
)
def test_each_thing_it_lacks_is_named_with_what_to_do(change, name, found):
    missing = lacking({**SAID, **change})
    assert set(missing) == {name}
    assert missing[name].found == found
    assert missing[name].cure


@pytest.fixture(scope="module")
def engine():
    return engines.find(os.environ)


@pytest.fixture
def own(engine, tmp_path):
    """Builds an image of one's own on ours, and takes it away afterwards."""
    made = []

    def build(*lines):
        name = f"hermit-test-own-{secrets.token_hex(4)}"
        (tmp_path / "Dockerfile").write_text("\n".join(["FROM hermit", *lines, ""]))
        (tmp_path / "mine.py").write_text("WORD = 'mine'\n")
        finished = capture([engine.program, "build", "--quiet", "--tag", name, str(tmp_path)], timeout_s=300)
        assert finished.code == 0, finished.stderr.decode()
        made.append(name)
        return name

    yield build
    for name in made:
        capture([engine.program, "rmi", name], timeout_s=300)


@pytest.mark.docker
@pytest.mark.image
class TestMade:
    """Images that are really built and asked."""

    def test_an_image_with_packages_of_its_own_is_fit(self, engine, own):
        name = own("COPY mine.py /opt/hermit/lib/python3.11/site-packages/mine.py")
        found = judged(engine, name)
        assert [one.name for one in found] == ["image", "interpreter", "hermit", "bubblewrap", "sandbox"]
        assert [one for one in found if not one.ok] == []

    def test_an_image_whose_bubblewrap_and_hermit_were_spoilt_is_not(self, engine, own):
        name = own(
            "USER 0",
            "RUN sed -i 's/__version__ = .*/__version__ = \"0.0.1\"/' /opt/hermit/lib/python3.11/site-packages/hermit/__init__.py"
            " && find /opt/hermit/lib/python3.11/site-packages/hermit/__pycache__ -name '__init__*' -delete"
            " && printf '#!/bin/sh\\necho bubblewrap 0.8.0\\nexit 1\\n' >/usr/bin/bwrap",
            "USER 1000:1000",
        )
        found = {one.name for one in judged(engine, name) if not one.ok}
        assert found == {"hermit", "bubblewrap", "sandbox"}

    def test_an_image_without_our_interpreter_first_on_the_path_is_not(self, engine, own):
        found = judged(engine, own("ENV PATH=/nowhere"))
        assert [one.name for one in found] == ["image", "interpreter"]
        assert not found[1].ok
        assert f"FROM hermit:{hermit.__version__}" in found[1].cure

    def test_an_image_that_is_not_here_is_one_finding(self, engine):
        (found,) = judged(engine, "hermit-absent")
        assert found == Fitness("image", False, "the image hermit-absent does not exist here", found.cure)
        assert "hermit image pull" in found.cure
