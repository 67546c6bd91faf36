"""Somebody's own image, named in a config: `hermit check --config` says whether it is fit, and what it lacks where not."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

import hermit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.image]

AGENT = """
from hermit import RunOutput
def run(task, adapter):
    import mine
    return RunOutput(mine.WORD)
"""
JUDGE = "def score(task, output): return float(output.output == 'mine')\n"
OWN = "COPY mine.py /opt/hermit/lib/python3.11/site-packages/mine.py"
PACKAGE = "/opt/hermit/lib/python3.11/site-packages/hermit"
OTHER_VERSION = (
    f"RUN sed -i 's/^__version__ = .*/__version__ = \"0.0.1\"/' {PACKAGE}/__init__.py"
    f" && rm -f {PACKAGE}/__pycache__/__init__.*"
)


@pytest.fixture
def own(engine: Any, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Builds an image on ours from the lines of a Dockerfile, and takes it away afterwards."""
    made = []
    (tmp_path / "context").mkdir()
    (tmp_path / "context" / "mine.py").write_text("WORD = 'mine'\n")

    def build(*lines: str) -> str:
        name = f"hermit-test-own-{secrets.token_hex(4)}"
        (tmp_path / "context" / "Dockerfile").write_text("\n".join(["FROM hermit", *lines, ""]))
        words = [engine.program, "build", "--quiet", "--tag", name, str(tmp_path / "context")]
        built = subprocess.run(words, capture_output=True, text=True, env=os.environ, check=False)
        assert built.returncode == 0, built.stderr
        made.append(name)
        return name

    yield build
    for name in made:
        subprocess.run([engine.program, "rmi", "--force", name], capture_output=True, check=False)


@pytest.fixture
def check(task_set: Callable[..., Any]) -> Callable[..., tuple[int, dict[str, dict[str, Any]]]]:
    """Checks a config with an image: the exit code, and the findings of it by their id."""
    made = task_set(AGENT, JUDGE, lines="agent: {name: 'agent.py:run'}\njudge: {path: judge.py}\n")

    def checked(image: str, *more: str) -> tuple[int, dict[str, dict[str, Any]]]:
        named = (f"container.image={image}", f"container.judge_image={image}")
        said = made.machine.run("-m", "hermit", "check", "--config", str(made.config), "--json", *named, *more)
        assert said.out.startswith("{"), said.err
        found = {each["id"]: each for each in json.loads(said.out)["findings"]}
        assert not made.results.exists()
        return said.code, found

    return checked


def test_an_image_with_packages_of_its_own_is_fit_and_the_attempt_is_made_in_it(
    own: Callable[..., str], check: Callable[..., Any]
) -> None:
    image = own(OWN)
    code, found = check(image, "container.runtime=image")
    assert code == 0, found
    assert f"in the image {image}, by " in found["place"]["found"]
    parts = ("image", "interpreter", "hermit", "bubblewrap", "sandbox")
    assert {found[f"task_image_{part}"]["level"] for part in parts} == {"fit"}
    # The package is in the image and not on this machine: nowhere else can this attempt have been made.
    assert (found["first_task"]["level"], found["first_task"]["found"][:8]) == ("fit", "score 1 ")


@pytest.mark.parametrize(
    ("line", "lacks", "words"),
    [
        ("RUN rm /usr/bin/bwrap", {"bubblewrap", "sandbox"}, "none"),
        (OTHER_VERSION, {"hermit"}, "version 0.0.1"),
        ("RUN rm /opt/hermit/bin/python*", {"interpreter"}, "python"),
        ("ENV PATH=/usr/bin", {"interpreter"}, "python"),
    ],
    ids=["bubblewrap is gone", "another version of Hermit", "the interpreter is gone", "another PATH"],
)
@pytest.mark.parametrize("runtime", ["image", "auto"])
def test_an_image_that_is_not_fit_is_told_by_what_it_lacks_and_nothing_is_tried_in_it(
    own: Callable[..., str], check: Callable[..., Any], *, line: str, lacks: set[str], words: str, runtime: str
) -> None:
    code, found = check(own("USER 0", line, "USER 1000:1000"), f"container.runtime={runtime}")
    unfit = {name.removeprefix("task_image_"): each for name, each in found.items() if each["level"] == "unfit"}
    assert (code, set(unfit)) == (3, lacks)
    assert any(words in each["found"] for each in unfit.values())
    assert any(f"FROM hermit:{hermit.__version__}" in each["cure"] for each in unfit.values())
    assert "first_task" not in found


def test_an_image_whose_label_names_another_version_is_refused_for_image_and_passed_by_for_auto(
    own: Callable[..., str], check: Callable[..., Any]
) -> None:
    image = own(
        OTHER_VERSION.replace("RUN", "USER 0\nRUN"), "LABEL org.opencontainers.image.version=0.0.1", "USER 1000"
    )
    code, found = check(image, "container.runtime=image")
    assert (code, found["place"]["level"], found["task_image_hermit"]["level"]) == (3, "unfit", "unfit")
    assert "holds Hermit 0.0.1" in found["place"]["found"]
    code, found = check(image, "container.runtime=auto", "sandbox.enforce=best_effort")
    assert "on this machine, because the image" in found["place"]["found"]
    assert found["task_image_hermit"]["level"] == "without"
    assert "first_task" in found


def test_an_image_that_a_run_would_fetch_first_is_no_fault_and_is_not_fetched(check: Callable[..., Any]) -> None:
    settings = ("container.runtime=image", "sandbox.enforce=best_effort")
    code, found = check("hermit-absent", *settings, "container.pull=missing")
    assert (found["place"]["level"], found["task_image_image"]["level"]) == ("without", "without")
    assert code in (0, 6)  # of this machine alone
    code, found = check("hermit-absent", *settings)
    assert (code, found["place"]["level"]) == (3, "unfit")
    assert "hermit image pull" in found["task_image_image"]["cure"]
