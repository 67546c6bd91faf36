from __future__ import annotations

from pathlib import Path

import pytest

from hermit.config.load import load
from hermit.errors import ConfigError

MINIMAL = """\
data:
  tasks: tasks.jsonl
agent:
  name: react
judge:
  path: judge.py
"""


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("agent.concurrency=0", "agent.concurrency: expected at least 1, found 0"),
        ("agent.concurrency=true", "agent.concurrency: expected a whole number, found true"),
        ("agent.concurrency='3'", "agent.concurrency: expected a whole number, found '3'"),
        ("agent.timeout_min=0", "agent.timeout_min: expected more than 0, found 0"),
        ("agent.timeout_min=soon", "agent.timeout_min: expected a number, found 'soon'"),
        ("agent.params=[]", "agent.params: expected a mapping, found a list"),
        ("agent.name=7", "agent.name: expected text, found 7"),
        ("agent.name=''", "agent.name: expected text that is not empty, found ''"),
        ("agent.name=a.py:not-a-name", "agent.name: expected file.py:Name or package.module:Name"),
        ("agent.name=no-module:Name", "agent.name: expected file.py:Name or package.module:Name"),
        ("agent=react", "agent: expected a mapping, found 'react'"),
        ("data.shuffle=1", "data.shuffle: expected true or false, found 1"),
        ("data.step_size=1.0", "data.step_size: expected a whole number, found 1.0"),
        ("eval.repeats=-1", "eval.repeats: expected at least 1, found -1"),
        ("judge.mode=remote", "judge.mode: expected 'host', 'shared' or 'separate', found 'remote'"),
        ("judge.mode=separate", "judge.mode: a separate judge needs at least one path in judge.collect"),
        ("judge.name=a-b", "judge.name: expected a Python name; found 'a-b'"),
        ("judge.tests=tests", "judge.tests: expected a list, found 'tests'"),
        ("judge.collect=[/etc]", "judge.collect[0]: expected a path relative to the agent's work directory"),
        ("judge.collect=[ok, a/../../b]", "judge.collect[1]: expected a path relative to the agent's work directory"),
        ("judge.collect=['']", "judge.collect[0]: expected text that is not empty"),
        (
            "environment.allowed_hosts=[a.org]",
            "environment.allowed_hosts: hosts are only allowed with environment.network",
        ),
        ("sandbox.evolver.allowed_hosts=['*.com']", "sandbox.evolver.allowed_hosts[0]: expected a host such as"),
        ("sandbox.evolver.allowed_hosts=['*']", "sandbox.evolver.allowed_hosts[0]: expected a host such as"),
        (
            "sandbox.evolver.allowed_hosts=['https://a.org']",
            "sandbox.evolver.allowed_hosts[0]: expected a host such as",
        ),
        ("environment.env=['*']", "environment.env[0]: expected the name of a variable or a pattern such as MWM_*"),
        ("environment.env=[A=B]", "environment.env[0]: expected the name of a variable or a pattern such as MWM_*"),
        ("environment.resources.cpu_s=0", "environment.resources.cpu_s: expected at least 1, found 0"),
        ("environment.image=-v/:/x", "environment.image: expected an image reference"),
        ("container.runtime=podman", "container.runtime: expected 'auto', 'image', 'local' or 'whole', found 'podman'"),
        ("container.image=--privileged", "container.image: expected an image reference"),
        ("model=gpt", "model: expected <backend>/<model id>"),
        ("llm=7", "llm: expected <backend>/<model id> or a mapping; found 7"),
        ("trainer.run_name=.hidden", "trainer.run_name: expected at most 80 letters"),
        ("trainer.run_name=a/b", "trainer.run_name: expected at most 80 letters"),
        ("trainer.run_name=" + "x" * 81, "trainer.run_name: expected at most 80 letters"),
        ('trainer.run_name="a\\n"', "trainer.run_name: expected at most 80 letters"),
        ("trainer.budget.usd=.inf", "cannot stand in a config: only finite numbers can"),
        ("agent.params.n=99999999999999999999", "cannot stand in a config: it needs more than 64 bits"),
        ('agent.params.n="\\ud800"', "cannot stand in a config: it holds half of a surrogate pair"),
        ("agent.params.n=!!python/object:os.system x", "the tag !!python/object:os.system is not allowed here"),
        ("agent.params.n=!!int twelve", "'twelve' cannot be read as !!int"),
        ("agent.params.n=[", "not YAML: "),
        ('agent.params.n="\\UFFFFFFFF"', "not YAML: an escape in it names no character"),
        ("agent.name.first=x", "agent.name is 'react': nothing can be set below it"),
        ("agent.concurrency", "expected key.sub=value"),
        ("agent..name=x", "expected key.sub=value"),
        ("=x", "expected key.sub=value"),
    ],
)
def test_a_wrong_value_is_refused_with_what_was_expected_and_what_was_found(refused, override, complaint):
    message = refused(MINIMAL, override)
    assert "command line: " in message.splitlines()[0]
    assert complaint in message


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("agent.timeout_min=1", 1.0),
        ("agent.name=package.module:Name", "package.module:Name"),
        ("judge.collect=[., out/./a/]", (".", "out/a")),
        ("trainer.run_name=A-1_b.c", "A-1_b.c"),
        (
            "environment.image=registry.example.org:5000/team/image@sha256:00ff",
            "registry.example.org:5000/team/image@sha256:00ff",
        ),
        ("sandbox.evolver.allowed_hosts=['*.example.org', 'a.org:8443']", ("*.example.org", "a.org:8443")),
        ("model=openai/org/model", "openai/org/model"),
    ],
)
def test_a_good_value_is_taken(read, override, value):
    got = read(MINIMAL, override)
    for part in override.partition("=")[0].split("."):
        got = getattr(got, part)
    assert got == value


def test_a_separate_judge_with_something_to_collect_is_accepted_in_either_order(read):
    for judge in ("{path: j.py, mode: separate, collect: [out]}", "{path: j.py, collect: [out], mode: separate}"):
        assert read(MINIMAL, f"judge={judge}").judge.collect == ("out",)


def test_hosts_with_an_allowlist_are_accepted(read):
    text = MINIMAL + "environment: {allowed_hosts: [api.example.org], network: allowlist}\n"
    assert read(text).environment.allowed_hosts == ("api.example.org",)


def test_a_path_is_absolute_and_starts_at_the_configs_directory_for_overrides_too(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "run.yaml").write_text(MINIMAL)
    monkeypatch.chdir(tmp_path)
    config = load(Path("inner/run.yaml"), ["judge.tests=[../tests/./x]"], environ={})
    assert config.data.tasks == tmp_path / "inner" / "tasks.jsonl"
    assert config.judge.tests == (tmp_path / "tests" / "x",)


def test_a_path_keeps_its_links(read, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert read(MINIMAL, "judge.path=link/judge.py").judge.path == tmp_path / "link" / "judge.py"


def test_the_home_and_variables_expand_in_every_path(read, tmp_path):
    environ = {"HOME": "/h/${X}", "X": "/x", "N": "n"}
    config = read(MINIMAL, "data.tasks=~/t", "environment.read=['${X}/a', 'b${N}/${N}', $N, a~]", environ=environ)
    assert str(config.data.tasks) == "/h/${X}/t"
    assert [str(path) for path in config.environment.read] == [
        "/x/a",
        f"{tmp_path}/bn/n",
        f"{tmp_path}/$N",
        f"{tmp_path}/a~",
    ]


def test_variables_do_not_expand_in_what_is_no_path(read):
    assert read(MINIMAL, "agent.params.prompt='~/${X}'").agent.params["prompt"] == "~/${X}"


@pytest.mark.parametrize("path", ["${MISSING}/x", "x/${MISSING}", "a/${}", "${EMPTY}"])
def test_a_variable_that_is_not_set_is_refused_by_name(tmp_path, path):
    (tmp_path / "run.yaml").write_text(MINIMAL.replace("judge.py", f'"{path}"'))
    with pytest.raises(
        ConfigError, match=r"run.yaml:6: judge.path: the environment variable '(MISSING|EMPTY|)' is not set"
    ):
        load(tmp_path / "run.yaml", environ={"EMPTY": ""})


@pytest.mark.parametrize("path", ["''", '"a\\0b"', "~somebody/x", "7", "[a]"])
def test_a_path_that_names_nothing_is_refused(refused, path):
    assert "judge.path: " in refused(MINIMAL, f"judge.path={path}")


def test_the_file_of_a_callable_starts_at_the_configs_directory(read, tmp_path):
    config = read(MINIMAL, "agent.name=agents/a.py:run", "evolver_access.tools=['~/t.py:look', search]")
    assert config.agent.name == f"{tmp_path}/agents/a.py:run"
    assert config.evolver_access.tools == ("/home/somebody/t.py:look", "search")


def test_what_is_a_name_or_a_directory_is_a_directory_where_it_has_a_slash(read, tmp_path):
    config = read(MINIMAL, "template=base@2", "evolver.name=./mine")
    assert config.template == "base@2"
    assert config.evolver.name == f"{tmp_path}/mine"
