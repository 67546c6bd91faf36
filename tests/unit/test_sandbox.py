"""Places, the preflight's diagnosis, and the front door's own refusals."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hermit import proc
from hermit import sandbox as sandboxes
from hermit.bwrap import launch
from hermit.bwrap.launch import Bubblewrap
from hermit.bwrap.prepare import variables
from hermit.domain.command import Command, Outcome
from hermit.domain.limits import Ended
from hermit.domain.sandbox import Enforce, Sandbox
from hermit.errors import HermitError, PlaceError, SandboxError

TRUE = Command(argv=("true",))


def test_the_front_door_says_how_it_is_used(capfd):
    for arguments in (
        [],
        ["spec.json"],
        ["spec.json", "--"],
        ["spec.json", "true", "x"],
        ["--record"],
        ["--record", "x"],
    ):
        assert sandboxes.main(arguments) == 125
        assert "usage: python -m hermit.sandbox [--record FILE] SPEC -- COMMAND" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ""),
        ("[]", "a sandbox: expected an object"),
        ('{"reed": []}', "reed: no such field"),
        ('{"read": ["x"]}', "absolute path"),
        ('{"write": ["/a", "/a/b"]}', "writable inside"),
        ('{"allowed_hosts": ["b.example.com", "*.com"]}', "allowed_hosts[1]: '*.com' is too wide"),
        ("\xff", ""),
    ],
)
def test_a_specification_that_describes_no_sandbox_is_refused_in_one_line_with_its_file(tmp_path, capfd, text, words):
    path = tmp_path / "spec.json"
    path.write_bytes(text.encode("latin-1"))
    assert sandboxes.main([str(path), "--", "true"]) == 125
    said = capfd.readouterr().err
    assert said.startswith(f"hermit.sandbox: {path}: ")
    assert words in said
    assert said.count("\n") == 1


def test_a_specification_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(HermitError, match="cannot be read"):
        sandboxes.read_spec(str(tmp_path / "absent"))
    with pytest.raises(HermitError, match="cannot be read"):
        sandboxes.read_spec(str(tmp_path))


def test_a_specification_is_read_from_a_file(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps({"role": "task", "cwd": "/w"}), encoding="utf-8")
    assert sandboxes.read_spec(str(path)) == Sandbox(role="task", cwd="/w")


@pytest.fixture
def answering(monkeypatch):
    """A machine whose `bwrap` says this of itself."""

    def make(code, stdout):
        monkeypatch.setattr(sandboxes.shutil, "which", lambda _: "/usr/bin/bwrap")
        finished = proc.Finished(("bwrap",), code, stdout, b"")
        monkeypatch.setattr(proc, "capture", lambda *_, **__: finished)

    return make


@pytest.mark.parametrize(
    ("code", "stdout"),
    [(0, b""), (1, b"bubblewrap 0.8.0\n"), (0, b"firejail 0.9\n"), (0, b"bubblewrap\n"), (0, b"\xff\xfe")],
)
def test_a_program_that_does_not_say_it_is_bubblewrap_is_not_used(answering, code, stdout):
    answering(code, stdout)
    with pytest.raises(PlaceError, match="is not bubblewrap"):
        sandboxes.preflight()


def test_where_no_process_can_be_started_bubblewrap_is_not_blamed(monkeypatch):
    def fail(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(sandboxes.shutil, "which", lambda _: "/usr/bin/bwrap")
    monkeypatch.setattr(proc, "capture", fail)
    with pytest.raises(PlaceError, match="no further process may be started") as refused:
        sandboxes.preflight()
    assert "ulimit -u" in refused.value.cure


@pytest.mark.parametrize(
    "failure", [PermissionError("denied"), TimeoutError("too slow"), OSError(8, "Exec format error")]
)
def test_a_bubblewrap_that_does_not_run_is_named_with_its_cure(monkeypatch, failure):
    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(sandboxes.shutil, "which", lambda _: "/usr/bin/bwrap")
    monkeypatch.setattr(proc, "capture", fail)
    with pytest.raises(PlaceError, match="does not run") as refused:
        sandboxes.preflight()
    assert "apt-get install bubblewrap" in refused.value.cure


@pytest.mark.parametrize("cause", ["start", "check", "relay", "start timeout"])
def test_a_first_sandbox_that_fails_makes_the_place_unfit(answering, monkeypatch, cause):
    def fail(*_, **__):
        raise SandboxError("it broke", cause=cause, cure="see here")

    answering(0, b"bubblewrap 0.8.0\n")
    monkeypatch.setattr(Bubblewrap, "run", fail)
    with pytest.raises(PlaceError):
        sandboxes.preflight()


def test_a_first_sandbox_whose_command_fails_makes_the_place_unfit(answering, monkeypatch):
    answering(0, b"bubblewrap 0.8.0\n")
    monkeypatch.setattr(Bubblewrap, "run", lambda *_, **__: Outcome(code=1))
    with pytest.raises(PlaceError, match="`true` in a sandbox ended with 1"):
        sandboxes.preflight()


def test_a_place_that_cannot_confine_is_used_only_where_best_effort_says_so(monkeypatch):
    monkeypatch.setattr(sandboxes.shutil, "which", lambda _: None)
    with pytest.raises(PlaceError):
        sandboxes.preflight(Enforce.REQUIRED)
    place = sandboxes.preflight(Enforce.BEST_EFFORT)
    assert place.confined is False
    assert "not installed" in place.backend.reason


def test_a_sandboxs_variables_are_few_and_the_declared_ones_win():
    sandbox = Sandbox(env=(("HOME", "/w"), ("X", "own")), env_allow=("X", "MWM_*"))
    host = {"X": "host", "MWM_A": "1", "KEY": "secret", "HOME": "/home/somebody"}
    assert variables(sandbox, host, path="/bin") == {
        "PATH": "/bin",
        "HOME": "/w",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "USER": "hermit",
        "X": "own",
        "MWM_A": "1",
    }


@pytest.mark.bwrap
def test_the_preflight_is_the_evidence_of_a_sandbox_that_was_started(place):
    assert place.confined
    assert place.record.ended == "exit 0"
    assert place.record.empty
    assert all(check.passed for check in place.record.checks)
    assert place.record.version == place.backend.version


@pytest.mark.bwrap
def test_a_start_leaves_one_record_whether_it_succeeds_or_not(place):
    records = []
    place.run(Sandbox(), TRUE, keep=records.append)
    with pytest.raises(SandboxError):
        place.run(Sandbox(read=("/usr",), probes=("/usr",)), TRUE, keep=records.append)
    ended = [record.ended.split(":")[0] for record in records]
    assert ended == ["exit 0", "SandboxError"]
    assert [check.name for check in records[1].checks if not check.passed] == [
        "secrets absent",
        "secrets absent by any other name",
    ]


@pytest.mark.parametrize("role", ["task", "judge", "tool", "evolver", "llm"])
def test_every_start_but_a_strict_check_keeps_a_record(role):
    records = []
    where = sandboxes.unconfined("a test of the records")
    for each in (role, "check"):
        assert where.run(Sandbox(role=each), TRUE, keep=records.append).code == 0
    assert [record.role for record in records] == [role]


@pytest.mark.bwrap
def test_a_strict_check_keeps_no_record_whether_it_succeeds_or_not(place):
    records = []
    place.run(Sandbox(role="check"), TRUE, keep=records.append)
    with pytest.raises(SandboxError):
        place.run(Sandbox(role="check", read=("/usr",), probes=("/usr",)), TRUE, keep=records.append)
    assert records == []


@pytest.mark.bwrap
def test_a_machine_that_runs_out_of_memory_is_a_broken_sandbox_and_never_the_commands_end(place, monkeypatch):
    reasons = [Ended("machine memory", "1 process killed"), Ended("memory", "210 MiB of 200")]
    monkeypatch.setattr(launch, "reason", lambda *_: reasons.pop(0))
    with pytest.raises(SandboxError) as broken:
        place.run(Sandbox(), Command(argv=("false",)), keep=lambda _: None)
    assert (broken.value.cause, broken.value.cure) == ("machine memory", "run fewer sandboxes at once")
    assert place.run(Sandbox(), Command(argv=("false",)), keep=lambda _: None).limit == "memory"


@pytest.mark.bwrap
def test_more_paths_than_bubblewrap_takes_are_refused_by_name(place, tmp_path):
    paths = []
    for number in range(3000):
        (tmp_path / str(number)).touch()
        paths.append(str(tmp_path / str(number)))
    with pytest.raises(SandboxError, match="declare fewer paths") as refused:
        place.run(Sandbox(read=tuple(paths)), TRUE, keep=lambda _: None)
    assert refused.value.cause == "declaration"


@pytest.mark.bwrap
def test_a_thousand_paths_and_a_long_path_are_shown(place, tmp_path):
    deep = tmp_path
    for _ in range(12):
        deep /= "d" * 200
    deep.mkdir(parents=True)
    paths = [deep]
    for number in range(1000):
        paths.append(tmp_path / f"name {number}\n\u2603")
        paths[-1].touch()
    sandbox = Sandbox(read=tuple(map(str, paths)))
    outcome = place.run(sandbox, Command(argv=("ls", str(tmp_path))), keep=lambda _: None)
    assert outcome.code == 0
    assert outcome.stdout.kept.count("\u2603".encode()) == 1000


@pytest.mark.bwrap
def test_a_job_and_an_input_of_many_megabytes_reach_the_command(place):
    data = b"x" * (20 << 20)
    outcome = place.run(Sandbox(), Command(argv=("wc", "-c"), stdin=data), keep=lambda _: None)
    assert int(outcome.stdout.kept) == len(data)


@pytest.mark.bwrap
def test_an_argument_longer_than_the_kernel_takes_is_refused_before_the_start_and_named(place):
    records = []
    with pytest.raises(SandboxError, match="the tool sandbox: argument 1 of the command has 200000 bytes"):
        place.run(Sandbox(), Command(argv=("true", "x" * 200_000)), keep=records.append)
    assert records == []


def test_the_front_door_hides_what_its_caller_hides_beside_what_it_was_told_to():
    given = Sandbox(hide=("own",))
    assert sandboxes.with_hidden(given, "").hide == ("own",)
    assert sandboxes.with_hidden(given, "bench.scoring, own").hide == ("own", "bench.scoring")


def test_a_variable_that_holds_no_names_is_refused_by_its_own(monkeypatch, tmp_path, capfd):
    path = tmp_path / "spec.json"
    path.write_text("{}")
    monkeypatch.setenv("HA_SANDBOX_HIDE", "../x")
    assert sandboxes.main([str(path), "--", "true"]) == 125
    assert "HA_SANDBOX_HIDE: hide takes names of modules" in capfd.readouterr().err


WITHOUT_STREAMS = """
import sys
from hermit import sandbox as sandboxes
from hermit.domain.command import Command
from hermit.domain.sandbox import Sandbox
outcome = sandboxes.preflight().run(Sandbox(), Command(argv=("cat",), stdin=b"in"), keep=lambda _: None)
with open(sys.argv[1], "wb") as file:
    file.write(outcome.stdout.kept)
"""


@pytest.mark.bwrap
def test_a_host_whose_standard_streams_are_closed_starts_sandboxes_all_the_same(tmp_path):
    closed = ("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")
    subprocess.run([*closed, sys.executable, "-c", WITHOUT_STREAMS, str(tmp_path / "out")], check=False)
    assert (tmp_path / "out").read_bytes() == b"in"


@pytest.mark.bwrap
def test_a_command_takes_over_the_hosts_own_streams_when_it_is_given_them(tmp_path):
    source = WITHOUT_STREAMS.replace('stdin=b"in")', ")").replace("_: None)", "_: None, streams=Streams(0, 1, 2))")
    source = "from hermit.relay import Streams\n" + source
    ran = subprocess.run(
        [sys.executable, "-c", source, str(tmp_path / "out")], input=b"in", capture_output=True, check=False
    )
    assert ran.stdout == b"in"
