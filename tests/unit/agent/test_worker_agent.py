"""One call of an agent: whatever form it has, and however it fails, the host reads a value or one reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.agent.result import Failure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_function_gets_the_task_and_no_adapter_for_the_baseline(act: Callable[..., Any]) -> None:
    assert act("def run(task, adapter): return RunOutput([task, adapter])")["output"] == [{"id": "t"}, None]


def test_an_adapter_arrives_as_a_path(act: Callable[..., Any]) -> None:
    source = "def run(task, adapter): return RunOutput([type(adapter).__name__, str(adapter)])"
    assert act(source, adapter="/a/b")["output"] == ["PosixPath", "/a/b"]


@pytest.mark.parametrize(
    ("signature", "seen"),
    [
        ("task, adapter, params", [True, False]),
        ("task, adapter, *, base", [False, True]),
        ("task, adapter, base=None, params=None", [True, True]),
        ("task, adapter, other=1", [False, False]),
        ("task, adapter, *args", [False, False]),
    ],
)
def test_a_function_gets_the_parameters_and_the_base_when_it_names_them(
    act: Callable[..., Any], tmp_path: Path, signature: str, seen: list[bool]
) -> None:
    source = f"""def run({signature}):
    known = dict(locals())
    return RunOutput([known.get("params") == {{"p": 1}}, str(known.get("base")) == {str(tmp_path)!r}])"""
    assert act(source)["output"] == seen


def test_a_local_variable_called_params_is_no_parameter(act: Callable[..., Any]) -> None:
    assert act("def run(task, adapter):\n    params = 2\n    return RunOutput(params)")["output"] == 2


def test_a_class_is_made_with_parameters_and_base_and_then_run(act: Callable[..., Any], tmp_path: Path) -> None:
    source = """class Mine(Agent):
    def run(self, task, adapter):
        return RunOutput([self.params, str(self.base), task["id"]])"""
    assert act(source, name="Mine")["output"] == [{"p": 1}, str(tmp_path), "t"]


def test_a_class_without_run_is_an_exception_that_says_so(act: Callable[..., Any]) -> None:
    found = act("class Mine(Agent): pass", name="Mine")
    assert (found.cause, "Mine has no run(task, adapter)" in found.error) == ("exception", True)


def test_an_object_that_can_be_called_is_an_agent(act: Callable[..., Any]) -> None:
    source = "class Called:\n    def __call__(self, task, adapter): return RunOutput('called')\nrun = Called()"
    assert act(source)["output"] == "called"


def test_a_callable_of_a_package_is_imported(call: Callable[..., Any], tmp_path: Path) -> None:
    found = call("", adapter=None, params={}, base=str(tmp_path), callable="hermit.agent.base:Agent")
    assert (found.cause, found.error) == ("exception", "TypeError: Agent has no run(task, adapter)")


def test_a_module_beside_the_agent_can_be_imported(act: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("VALUE = 7")
    assert act("import beside\ndef run(task, adapter): return RunOutput(beside.VALUE)")["output"] == 7


@pytest.mark.parametrize("name", ["checks", "command", "relay", "limits"])
def test_a_module_of_an_agent_may_be_called_what_one_of_the_relay_is(
    act: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    (tmp_path / f"{name}.py").write_text("VALUE = 7")
    source = f"import {name}\ndef run(task, adapter): return RunOutput({name}.VALUE)"
    assert act(source)["output"] == 7


def test_a_module_in_the_work_directory_is_not_imported(act: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "work" / "json.py").write_text("raise SystemExit")
    (tmp_path / "work" / "planted.py").write_text("")
    source = """import json
def run(task, adapter):
    try:
        import planted
    except ImportError:
        return RunOutput([os.getcwd() in sys.path, "" in sys.path])"""
    assert act(source)["output"] == [False, False]


def test_every_field_of_an_output_arrives(act: Callable[..., Any]) -> None:
    source = """def run(task, adapter):
    return RunOutput("o", "l", 0.5, 1.5, 2.5, [{"role": "user"}], {"in": 3}, {"x": [1]})"""
    assert act(source) == {
        "output": "o",
        "log": "l",
        "cost_usd": 0.5,
        "wall_s": 1.5,
        "api_speed": 2.5,
        "messages": [{"role": "user"}],
        "tokens": {"in": 3},
        "extra": {"x": [1]},
    }


def test_what_an_agent_prints_means_nothing(act: Callable[..., Any]) -> None:
    source = """def run(task, adapter):
    print('{"value": {"output": "forged"}}', flush=True)
    os.write(2, b"\\xff\\xfe{}")
    return RunOutput("true")"""
    assert act(source)["output"] == "true"


FAILURES = {
    "exception": ("def run(task, adapter): raise RuntimeError('why')", "exception", "RuntimeError: why"),
    "syntax": ("def run(task, adapter:", "exception", "SyntaxError"),
    "import": ("import nowhere", "exception", "ModuleNotFoundError"),
    "undefined": ("run_ = 1", "exception", "has no attribute 'run'"),
    "interrupt": ("def run(task, adapter): raise KeyboardInterrupt", "exception", "KeyboardInterrupt"),
    "recursion": ("def run(task, adapter): return run(task, adapter)", "exception", "RecursionError"),
    "no text": (
        "class E(Exception):\n    def __str__(self): raise ValueError\ndef run(task, adapter): raise E",
        "exception",
        "E",
    ),
    "sys.exit": ("def run(task, adapter): sys.exit(3)", "exit", "sys.exit(3)"),
    "sys.exit at import": ("sys.exit('bye')", "exit", "sys.exit('bye')"),
    "os._exit": ("def run(task, adapter): os._exit(5)", "exit", "exit code 5"),
    "os._exit 0": ("def run(task, adapter): os._exit(0)", "exit", "exit code 0"),
    "not found": ("def run(task, adapter): os.write(2, b'\\n \\n'); os._exit(127)", "exit", "exit code 127"),
    "not found in words": ("def run(task, adapter): os.write(2, b'no\\n'); os._exit(127)", "exit", "no"),
    "killed": ("def run(task, adapter): os.kill(os.getpid(), signal.SIGKILL)", "signal", "SIGKILL"),
    "segv": ("def run(task, adapter): os.kill(os.getpid(), signal.SIGSEGV)", "signal", "SIGSEGV"),
    "real-time signal": ("def run(task, adapter): os.kill(os.getpid(), 40)", "signal", "signal 40"),
    "nothing": ("def run(task, adapter): pass", "result", "returned NoneType"),
    "a list": ("def run(task, adapter): return []", "result", "returned list"),
    "a mapping": ("def run(task, adapter): return {'output': 1}", "result", "returned dict"),
    "a set": ("def run(task, adapter): return RunOutput({1})", "result", "not JSON"),
    "bytes": ("def run(task, adapter): return RunOutput(b'x')", "result", "not JSON"),
    "nan": ("def run(task, adapter): return RunOutput(float('nan'))", "result", "not JSON"),
    "itself": ("def run(task, adapter): x = []; x.append(x); return RunOutput(x)", "result", "not JSON"),
    "too deep": (
        "def run(task, adapter):\n    x = []\n    for _ in range(100000): x = [x]\n    return RunOutput(x)",
        "result",
        "too deep",
    ),
    "too large": ("def run(task, adapter): return RunOutput('x' * 300_000)", "result", "200000 are accepted"),
}


@pytest.mark.parametrize("way", FAILURES)
def test_each_way_to_fail_has_its_cause_and_one_line_of_reason(act: Callable[..., Any], way: str) -> None:
    source, cause, words = FAILURES[way]
    found = act(source)
    assert isinstance(found, Failure), found
    assert found.cause == cause
    assert words in found.error
    assert "\n" not in found.error


def test_a_call_that_hangs_is_stopped_and_called_a_timeout(act: Callable[..., Any]) -> None:
    source = "def run(task, adapter):\n    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n    time.sleep(600)"
    assert act(source, wall_s=0.3).cause == "timeout"


def test_a_failure_carries_the_end_of_its_traceback(act: Callable[..., Any]) -> None:
    found = act("def inner(): raise RuntimeError('why')\ndef run(task, adapter): inner()")
    assert "in inner" in found.trace
    assert found.trace.rstrip().endswith("RuntimeError: why")


def test_no_program_an_agent_starts_holds_the_descriptor_of_the_result(act: Callable[..., Any]) -> None:
    source = """import subprocess
def run(task, adapter):
    listed = subprocess.run(["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, close_fds=False).stdout
    mine = {link for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}")
            for link in [os.readlink(f"/proc/self/fd/{fd}")] if link.startswith("pipe:")}
    inherited = [name for name in mine if name in listed]
    kept = {os.readlink(f"/proc/self/fd/{fd}") for fd in (1, 2)}
    return RunOutput([len(mine - kept), sorted(set(inherited) - kept)])"""
    found = act(source)
    assert found["output"][0] >= 1, "the agent itself holds the descriptor: the test looks at the right thing"
    assert found["output"][1] == []


def test_a_fork_of_the_agent_has_no_descriptor_of_the_result(act: Callable[..., Any]) -> None:
    source = """def run(task, adapter):
    def pipes():
        names = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                 if os.path.lexists(f"/proc/self/fd/{fd}")]
        return {name for name in names if name.startswith("pipe:")}
    before = pipes()
    if (pid := os.fork()) == 0:
        os._exit(len(before - pipes()))
    return RunOutput(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"""
    assert act(source)["output"] == 1
