"""What each preset shows and hides: as a value, in a sandbox, and in a sandbox inside the learner's."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain.bind import Bind
from hermit.domain.command import Command
from hermit.domain.limits import Limits
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Sandbox
from hermit.evolver import views

if TYPE_CHECKING:
    from pathlib import Path

PARTS = (
    "adapter",
    "adapter/skills",
    "material",
    "books",
    "patterns",
    "world",
    "state/one",
    "state/two",
    "sessions/1",
    "sessions/2",
)
RUN = Sandbox(
    role="evolver",
    read=("/run/material",),
    write=("/run/adapter",),
    cwd="/run/adapter",
    allowed_hosts=("api.example.org",),
    env=(("HERMIT_TOOL_URL", "http://127.0.0.1:7321"),),
    env_allow=("MODEL_KEY",),
    probes=("/data/tasks.jsonl",),
    limits=Limits(wall_s=60, pids=64),
)
LOOK = """
import json, os, sys
def write(path):
    try:
        open(os.path.join(path, "planted"), "w").close()
        return True
    except OSError:
        return False
places = sys.argv[1].split(":")
print(json.dumps({
    "root": sorted(os.listdir("/")),
    "read": {place: sorted(os.listdir(place)) for place in places if os.path.isdir(place)},
    "wrote": [place for place in places if os.path.isdir(place) and write(place)],
    "absent": [path for path in sys.argv[2].split(":") if not os.path.lexists(path)],
    "cwd": os.getcwd(),
}))
"""


def presets(root: str) -> dict[str, views.View]:
    """Each preset with things that lie below a directory."""
    return {
        "mwm": views.mwm(
            f"{root}/adapter",
            evidence=f"{root}/material",
            environment={"books": f"{root}/books"},
            skills=f"{root}/adapter/skills",
            patterns=f"{root}/patterns",
            world_model=f"{root}/world",
        ),
        "rrsi": views.rrsi(f"{root}/state/one", adapter=f"{root}/adapter", material=f"{root}/material"),
        "harness2": views.harness2(f"{root}/sessions/1", material=f"{root}/material"),
    }


SHOWN = {
    "mwm": {
        "/w": True,
        "/evidence": False,
        "/environment/books": False,
        "/skills": False,
        "/patterns": False,
        "/world-model": False,
    },
    "rrsi": {"/w": True, "/adapter": False, "/material": False},
    "harness2": {"/w": True, "/material": False},
}
# What of the others a role must not see: by the names on the host.
HIDDEN = {
    "mwm": ("state/one", "sessions/1"),
    "rrsi": ("state/two", "sessions/1", "books"),
    "harness2": ("sessions/2", "state/one", "adapter", "books"),
}


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_a_preset_is_a_value_with_these_names_of_which_one_is_writable(name: str) -> None:
    view = presets("/run")[name]
    assert {bind.target: bind.writable for bind in view.binds} == SHOWN[name]
    assert view.layout.inside == "/w"
    sources = {bind.source for bind in view.binds}
    assert not [path for path in HIDDEN[name] if any(f"/run/{path}".startswith(source) for source in sources)]


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_a_view_keeps_all_of_the_run_but_what_it_shows(name: str) -> None:
    made = presets("/run")[name].of(RUN)
    assert (made.read, made.write, made.cwd) == ((), (), "/w")
    for part in (
        "role",
        "network",
        "allowed_hosts",
        "env",
        "env_allow",
        "probes",
        "limits",
        "enforce",
        "hide",
        "framework",
    ):
        assert getattr(made, part) == getattr(RUN, part), part


def test_mwm_tells_paths_by_its_own_names() -> None:
    made = presets("/run")["mwm"].of(RUN)
    assert made.relative("/run/adapter/x/y.md") == "x/y.md"
    assert made.relative("/run/material/step_1") == "/evidence/step_1"
    assert made.outside("skills/a.md") == "/run/adapter/skills/a.md"
    assert made.outside("/skills/a.md") == "/run/adapter/skills/a.md"
    assert made.outside("/state/one") is None
    assert made.paths.relative_text("see /run/adapter/a and /run/world/b") == "see a and /world-model/b"


def test_what_is_not_given_is_not_shown() -> None:
    view = views.mwm("/run/adapter", evidence="/run/material")
    assert view == views.View(
        (Bind("/run/adapter", "/w", writable=True), Bind("/run/material", "/evidence")), Layout("/run/adapter", "/w")
    )


@pytest.fixture
def laid(tmp_path: Path) -> Path:
    for part in PARTS:
        (tmp_path / part).mkdir(parents=True, exist_ok=True)
        (tmp_path / part / f"of-{os.path.basename(part)}").touch()
    return tmp_path


@pytest.mark.bwrap
@pytest.mark.parametrize("name", sorted(SHOWN))
def test_a_view_shows_its_own_names_and_nothing_of_the_others(name: str, laid: Path, place: Any) -> None:
    base = Sandbox(role="evolver", limits=Limits(wall_s=60), probes=tuple(f"{laid}/{path}" for path in HIDDEN[name]))
    hidden = ":".join(f"{laid}/{path}" for path in PARTS)
    places = ":".join(SHOWN[name])
    # The words are translated, so what is looked for comes by standard input's neighbour: a file of the view itself.
    own = next(bind.source for bind in presets(str(laid))[name].binds if bind.writable)
    with open(f"{own}/look.py", "w", encoding="utf-8") as file:
        file.write(LOOK.replace("sys.argv[2]", repr(hidden)))
    command = Command(argv=("python", "/w/look.py", places))
    outcome = place.run(presets(str(laid))[name].of(base), command, keep=lambda _: None)
    assert outcome.code == 0, outcome.stderr.kept
    seen = json.loads(outcome.stdout.kept)
    assert set(seen["read"]) == set(SHOWN[name])
    assert seen["wrote"] == [target for target, writable in SHOWN[name].items() if writable]
    assert seen["absent"] == hidden.split(":")
    assert seen["cwd"] == "/w"
    assert {target.split("/")[1] for target in SHOWN[name]} <= set(seen["root"])
    assert not {"state", "sessions", "books"} & set(seen["root"])


CHANNEL = """
import json, os, subprocess, sys
words = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--die-with-parent",
         "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
         "--dev", "/dev", "--tmpfs", "/tmp", "--ro-bind", sys.argv[1], "/code", "--chdir", "/code"]
program = "ls /; cat /code/hello; touch /code/x 2>/dev/null && echo written; cat /proc/net/dev 2>/dev/null | wc -l; test -e /w && echo seen; true"
ran = subprocess.run([*words, "--", "sh", "-c", program], capture_output=True, text=True)
print(json.dumps([ran.returncode, ran.stdout.split(), ran.stderr]))
"""


@pytest.mark.bwrap
@pytest.mark.parametrize("kind", ["view", "strict"])
def test_a_bubblewrap_of_a_methods_own_starts_inside_its_sandbox(kind: str, laid: Path, place: Any) -> None:
    """MWM's channel for code starts one inside its adapter's sandbox."""
    from hermit.domain import strict

    adapter = laid / "adapter"
    (adapter / "channel.py").write_text(CHANNEL)
    (adapter / "hello").write_text("hello")
    if kind == "view":
        sandbox = views.mwm(adapter, evidence=laid / "material").of(Sandbox(role="evolver", limits=Limits(wall_s=60)))
    else:
        sandbox = strict.sandbox(str(adapter))
    # Nothing but the file of the operations names the adapter, so its words are those of the place it is shown at.
    outcome = place.run(sandbox, Command(argv=("python", f"{adapter}/channel.py", str(adapter))), keep=lambda _: None)
    assert outcome.code == 0, outcome.stderr.kept
    code, words, errors = json.loads(outcome.stdout.kept)
    assert (code, errors) == (0, ""), errors
    assert "hello" in " ".join(words)
    assert "written" not in words
    assert "seen" not in words
