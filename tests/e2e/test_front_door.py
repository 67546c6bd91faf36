"""`python -m hermit.sandbox SPEC -- COMMAND`: the command's own code and streams, and 125 where the sandbox failed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from hermit.domain import schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.bwrap


@pytest.fixture
def door(machine: Any, tmp_path: Path) -> Callable[..., Any]:
    """Runs a command through the front door, in this sandbox."""

    def run(*command: str, spec: Any = None, stdin: bytes = b"") -> Any:
        file = tmp_path / "spec.json"
        file.write_text(spec if isinstance(spec, str) else json.dumps(spec or {}))
        return machine.run("-m", "hermit.sandbox", str(file), "--", *command, stdin=stdin)

    return run


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "exit 125"), 125),
        (("sh", "-c", "kill -9 $$"), 137),
        (("sh", "-c", "kill -15 $$"), 143),
        (("surely-absent",), 127),
        (("/surely/absent",), 127),
        (("/usr/lib/os-release",), 126),
        (("/usr/lib",), 126),
    ],
)
def test_the_commands_own_code_passes_through(door: Callable[..., Any], command: tuple[str, ...], code: int) -> None:
    assert door(*command).code == code


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"hide": ["../x"]}, "spec.json: hide[0]: expected a name such as bench.scoring"),
        ({"ports": [80]}, "spec.json: ports[0]: expected a port from 1024 to 65535; found 80"),
        ({"packages": ["surely-absent"]}, "no package or distribution is named 'surely-absent'; the nearest is "),
        ({"allowed_hosts": ["*.com"]}, "spec.json: allowed_hosts[0]: '*.com' is too wide"),
        ({"reed": 1}, "spec.json: reed: no such field; the nearest is 'read', which takes a list"),
        ({"read": "x"}, "spec.json: read: expected a list, each item an absolute path"),
        ({"read": ["relative"]}, "spec.json: read[0]: expected an absolute path"),
        ({"read": ["/surely/absent"]}, "/surely/absent does not exist"),
        ({"limits": {"wall_s": -1}}, "spec.json: limits.wall_s: expected a number above 0"),
        ({"limits": {"memory": 1}}, "spec.json: limits.memory: no such field; the nearest is 'memory_mb'"),
        ({"probes": ["/usr"]}, "secrets absent"),
        ('{"read": [], "read": []}', "spec.json: 'read' is given twice in one object"),
        ("{", "spec.json"),
        ("[]", "spec.json: a sandbox: expected an object with the fields of a sandbox; found []"),
        ("", "spec.json"),
    ],
)
def test_a_sandbox_that_cannot_be_is_125_with_the_reason(door: Callable[..., Any], spec: Any, words: str) -> None:
    said = door("touch", "/tmp/ran", spec=spec)
    assert (said.code, said.out) == (125, "")
    assert words in said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("words", [(), ("x.json",), ("x.json", "true"), ("x.json", "--"), ("--", "true")])
def test_a_wrong_command_line_is_125_with_the_usage(machine: Any, words: tuple[str, ...]) -> None:
    said = machine.run("-m", "hermit.sandbox", *words)
    assert said.code == 125
    assert said.err.startswith("usage: python -m hermit.sandbox [--record FILE] SPEC -- COMMAND")


def test_help_shows_an_example_that_works(machine: Any, tmp_path: Path) -> None:
    said = machine.run("-m", "hermit.sandbox", "--help")
    assert (said.code, said.err) == (0, "")
    (example,) = re.findall(r"echo '(\{.*\})' > spec\.json", said.out)
    (data := tmp_path / "data").mkdir()
    spec = example.replace("/srv/data", str(data))
    assert machine.run("-m", "hermit.sandbox", spec, "--", "ls", str(data)).code == 0


def test_the_schema_is_printed_for_other_programs(machine: Any) -> None:
    said = machine.run("-m", "hermit.sandbox", "--schema")
    assert (said.code, json.loads(said.out)) == (0, schema.schema())


def test_the_spec_may_be_the_json_itself(machine: Any) -> None:
    said = machine.run("-m", "hermit.sandbox", '{"env": {"GIVEN": "here"}}', "--", "sh", "-c", "echo $GIVEN")
    assert (said.code, said.out) == (0, "here\n")
    wrong = machine.run("-m", "hermit.sandbox", '{"reed": []}', "--", "true")
    assert (wrong.code, wrong.err.count("\n")) == (125, 1)
    assert wrong.err.startswith("hermit.sandbox: SPEC: reed: no such field")


LOOKS = """
import importlib.util, os, hermit, pytest
hidden = importlib.util.find_spec("hypothesis").submodule_search_locations[0]
print(os.getcwd(), os.environ["GIVEN"], os.environ["PASSED_A"], os.listdir(hidden), os.listdir("/w"))
print(os.environ["http_proxy"].rpartition(":")[0])
"""


def test_every_field_can_be_given_at_once(machine: Any, tmp_path: Path) -> None:
    for name in ("read", "write", "bound"):
        (tmp_path / name).mkdir()
    spec = {
        "role": "tool",
        "read": [f"{tmp_path}/read"],
        "write": [f"{tmp_path}/write"],
        "binds": [{"source": f"{tmp_path}/bound", "target": "/w/bound", "writable": True}],
        "cwd": f"{tmp_path}/bound",
        "network": "isolated",
        "allowed_hosts": ["api.example.com"],
        "ports": [8099],
        "sockets": {"8098": f"{tmp_path}/absent.sock"},
        "env": {"GIVEN": f"{tmp_path}/bound/x"},
        "env_allow": ["PASSED_*"],
        "limits": {"wall_s": 30, "memory_mb": 512, "pids": 64},
        "probes": [f"{tmp_path}/secret"],
        "framework": True,
        "packages": ["pytest"],
        "hide": ["hypothesis"],
        "layout": {"outside": str(tmp_path), "inside": "/w"},
        "enforce": "required",
    }
    assert set(spec) == set(schema.schema()["properties"])
    words = ("-m", "hermit.sandbox", json.dumps(spec), "--", "python3", "-c", LOOKS)
    said = machine.run(*words, env={"PASSED_A": "passed"})
    assert said.out == "/w/bound /w/bound/x passed [] ['bound']\nhttp://127.0.0.1\n", said.err
    assert said.code == 0


def test_a_record_goes_where_it_is_asked_for_and_nowhere_else(machine: Any, tmp_path: Path) -> None:
    before = sorted(machine.scratch.iterdir())
    assert machine.run("-m", "hermit.sandbox", "{}", "--", "true").code == 0
    assert sorted(machine.scratch.iterdir()) == before
    file = tmp_path / "one.json"
    file.write_text("what an earlier start left, longer than any record" * 1000)
    said = machine.run("-m", "hermit.sandbox", "--record", str(file), '{"role": "llm"}', "--", "sh", "-c", "exit 3")
    record = json.loads(file.read_text())
    assert (said.code, record["role"], record["ended"], record["confined"]) == (3, "llm", "exit 3", True)
    assert all(check["passed"] for check in record["checks"])
    assert not (tmp_path / "one.proxy.jsonl").exists()


def test_a_start_that_fails_leaves_its_record_too(machine: Any, tmp_path: Path) -> None:
    file = tmp_path / "one.json"
    said = machine.run("-m", "hermit.sandbox", "--record", str(file), '{"probes": ["/usr"]}', "--", "true")
    record = json.loads(file.read_text())
    assert (said.code, record["ended"].split(":")[0]) == (125, "SandboxError")
    failed = [check["name"] for check in record["checks"] if not check["passed"]]
    assert failed == ["secrets absent", "secrets absent by any other name"]


def test_what_the_proxy_decided_lies_beside_the_record(machine: Any, tmp_path: Path) -> None:
    spec = '{"allowed_hosts": ["api.example.com"]}'
    said = machine.run("-m", "hermit.sandbox", "--record", f"{tmp_path}/one.json", spec, "--", "true")
    assert said.code == 0
    (decision,) = (tmp_path / "one.proxy.jsonl").read_text().splitlines()
    assert "hermit-check.invalid" in decision


@pytest.mark.parametrize("manner", ["inside", "through a link", "itself"])
def test_a_record_that_the_command_could_write_is_refused(machine: Any, tmp_path: Path, manner: str) -> None:
    (work := tmp_path / "work").mkdir()
    (tmp_path / "link").symlink_to(work)
    (work / "record").touch()
    places = {"inside": work / "record", "through a link": tmp_path / "link" / "record", "itself": work / "record"}
    writable = work / "record" if manner == "itself" else work
    spec = json.dumps({"write": [str(writable)]})
    said = machine.run("-m", "hermit.sandbox", "--record", str(places[manner]), spec, "--", "touch", f"{work}/ran")
    assert (said.code, "is no evidence: the command can write to it" in said.err) == (125, True)
    assert not (work / "ran").exists()


def test_a_record_of_a_role_that_keeps_none_or_in_no_directory_is_refused(machine: Any, tmp_path: Path) -> None:
    for record, spec, words in (
        (tmp_path / "one", '{"role": "check"}', "--record: a start of the role 'check' keeps no record"),
        (tmp_path / "absent" / "one", "{}", "absent/one"),
    ):
        said = machine.run("-m", "hermit.sandbox", "--record", str(record), spec, "--", "true")
        assert (said.code, words in said.err) == (125, True)
        assert not record.exists()


def test_a_missing_spec_is_125_with_its_name(machine: Any) -> None:
    said = machine.run("-m", "hermit.sandbox", "absent.json", "--", "true")
    assert (said.code, "absent.json" in said.err) == (125, True)


def test_the_spec_can_be_read_from_standard_input(machine: Any) -> None:
    spec = json.dumps({"env": {"GIVEN": "here"}}).encode()
    said = machine.run("-m", "hermit.sandbox", "-", "--", "sh", "-c", "echo $GIVEN; cat", stdin=spec)
    assert (said.code, said.out) == (0, "here\n")


def test_the_command_keeps_the_callers_input_and_output(door: Callable[..., Any]) -> None:
    said = door("sh", "-c", "cat; echo complaint >&2", stdin=b"given")
    assert (said.out, said.err) == ("given", "complaint\n")


def test_what_is_not_named_does_not_exist(door: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "secret").write_text("secret")
    hidden = door("cat", f"{tmp_path}/data/secret")
    shown = door("cat", f"{tmp_path}/data/secret", spec={"read": [f"{tmp_path}/data"]})
    assert (hidden.code, hidden.out) == (1, "")
    assert (shown.code, shown.out) == (0, "secret")


def test_a_command_that_hangs_is_stopped(door: Callable[..., Any]) -> None:
    said = door("sh", "-c", "trap '' TERM; sleep 600 & sleep 600", spec={"limits": {"wall_s": 0.5}})
    assert said.code == 137


def test_a_machine_without_bubblewrap_is_125_or_unconfined_by_choice(machine: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for enforce, code in (("required", 125), ("best_effort", 0)):
        file = tmp_path / "spec.json"
        file.write_text(json.dumps({"enforce": enforce}))
        said = machine.run("-m", "hermit.sandbox", str(file), "--", "/bin/true", env={"PATH": str(tmp_path / "empty")})
        assert said.code == code, said.err
        told = "hermit.sandbox: nothing is confined: bubblewrap is not installed"
        assert (told in said.err) is (enforce == "best_effort")
