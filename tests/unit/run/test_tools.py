"""What a declared tool is given and returns is checked, bounded, and never more than JSON."""

from __future__ import annotations

import http.server
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from hermit import sandbox as sandboxes
from hermit.agent.result import Failure
from hermit.domain.sandbox import Enforce
from hermit.errors import ConfigError
from hermit.roles import tool as tool_role
from hermit.run import tools

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CODE = """
import os, socket, time
def look(argument):
    with open(os.path.join(argument["adapter"], "left"), "w") as file:
        file.write("x")
    found = {"variables": sorted(os.environ), "there": [path for path in argument["paths"] if os.path.lexists(path)]}
    found["interfaces"] = [name for _, name in socket.if_nameindex()]
    return found
def echo(argument): return argument["value"]
def wrong(argument): return "text"
def large(argument): return "x" * (2 << 20)
def hang(argument): time.sleep(600)
def fail(argument): raise ValueError("why")
def odd(argument): return {1, 2}
"""
SAYS = {
    "echo": {
        "takes": {"type": "object", "required": ["value"], "additionalProperties": False, "properties": {"value": {}}}
    },
    "wrong": {"gives": {"type": "integer"}},
    "hang": {"timeout_s": 0.3},
}


@pytest.fixture
def template(tmp_path: Path) -> Path:
    root = tmp_path / "template"
    (root / "tools").mkdir(parents=True)
    (root / "tools" / "own.py").write_text(CODE)
    (root / "tools" / "own.tools.json").write_text(json.dumps(SAYS))
    (tmp_path / "adapter").mkdir()
    return root


@pytest.fixture
def call(template: Path, tmp_path: Path) -> Callable[..., Any]:
    """Calls a tool of the template, without a sandbox unless a place is given."""

    def run(name: str, argument: Any, place: Any = None, keep: Any = lambda _: None) -> Any:
        tool = tools.declared(f"{template}/tools/own.py:{name}", key="evolver_access.tools")
        sandbox = tool_role.of_template(
            tool, template=str(template), adapter=str(tmp_path / "adapter"), enforce=Enforce.REQUIRED
        )
        where = place or sandboxes.unconfined("a test of tools")
        return tools.call(tool, argument, place=where, sandbox=sandbox, keep=keep)

    return run


@pytest.mark.parametrize("value", [None, 1.5, "日本", [1, {"a": []}], {"deep": [[[1]]]}])
def test_what_goes_in_and_comes_out_is_json(call: Callable[..., Any], value: Any) -> None:
    assert call("echo", {"value": value}) == {"returned": value}


@pytest.mark.parametrize("argument", [{}, {"value": 1, "more": 2}, "text", None])
def test_an_argument_that_does_not_fit_starts_nothing(call: Callable[..., Any], argument: Any) -> None:
    class Never:
        def run(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("it was started")

    failure = call("echo", argument, Never())
    assert isinstance(failure, Failure)
    assert failure.cause == "argument"


def test_a_result_that_does_not_fit_is_no_result(call: Callable[..., Any]) -> None:
    failure = call("wrong", {})
    assert (failure.cause, failure.error) == (
        "result",
        "wrong returned something else: $: 'text' is not of type 'integer'",
    )


@pytest.mark.parametrize(
    ("name", "cause"), [("large", "result"), ("odd", "result"), ("fail", "exception"), ("hang", "timeout")]
)
def test_a_tool_that_fails_is_a_value_with_a_cause(call: Callable[..., Any], name: str, cause: str) -> None:
    began = time.monotonic()
    failure = call(name, {})
    assert isinstance(failure, Failure)
    assert failure.cause == cause
    assert time.monotonic() - began < 300, "a tool that hangs is stopped"


def test_an_argument_has_a_bound(call: Callable[..., Any]) -> None:
    assert call("echo", {"value": "x" * (1 << 20)}).cause == "argument"


@pytest.mark.bwrap
def test_a_templates_tool_sees_nothing_but_its_template_and_writes_to_the_adapter(
    call: Callable[..., Any], template: Path, tmp_path: Path, place: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_API_KEY", "not for a tool")
    (tmp_path / "beside").touch()
    argument = {"adapter": str(tmp_path / "adapter"), "paths": [str(tmp_path / "beside"), str(template / "tools")]}
    records: list[Any] = []
    seen = call("look", argument, place, records.append)["returned"]
    assert seen["there"] == [str(template / "tools")]
    assert seen["interfaces"] == ["lo"]
    assert "MODEL_API_KEY" not in seen["variables"]
    assert (tmp_path / "adapter" / "left").read_text() == "x"
    assert [(record.role, record.confined) for record in records] == [("tool", True)]
    open_seen = call("look", argument)["returned"]
    assert open_seen["there"] == argument["paths"], "without the sandbox it sees more: it looks at the right places"
    assert "MODEL_API_KEY" in open_seen["variables"]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("[]", "it is no object"),
        ("{", "it cannot be read"),
        ('{"echo": []}', "a tool says gives, takes, timeout_s"),
        ('{"echo": {"more": 1}}', "a tool says gives, takes, timeout_s"),
        ('{"echo": {"takes": 7}}', "a schema is an object"),
        ('{"echo": {"takes": {"type": "thing"}}}', "it is no JSON Schema"),
        ('{"echo": {"timeout_s": true}}', "timeout_s is a number"),
        ('{"echo": {"timeout_s": -1}}', "timeout_s is a number"),
    ],
)
def test_a_tool_that_says_something_else_of_itself_is_refused(template: Path, said: str, words: str) -> None:
    (template / "tools" / "own.tools.json").write_text(said)
    with pytest.raises(ConfigError, match=words):
        tools.declared(f"{template}/tools/own.py:echo", key="evolver_access.tools")


def test_a_tool_that_is_not_there_is_refused_with_its_key(template: Path) -> None:
    with pytest.raises(ConfigError, match="is no file") as caught:
        tools.declared(f"{template}/tools/absent.py:echo", key="evolver_access.tools")
    assert caught.value.where == "evolver_access.tools"


def test_a_tool_without_a_word_of_itself_takes_any_object(template: Path) -> None:
    os.unlink(template / "tools" / "own.tools.json")
    tool = tools.declared(f"{template}/tools/own.py:echo", key="evolver_access.tools")
    assert (tool.takes, tool.gives, tool.timeout_s) == ({"type": "object"}, {}, 60.0)


def test_nothing_is_fetched_for_a_schema() -> None:
    asked: list[str] = []

    class Listens(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            return

    with http.server.HTTPServer(("127.0.0.1", 0), Listens) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            words = tools.unfit({}, {"$ref": f"http://127.0.0.1:{server.server_port}/schema.json"})
        finally:
            server.shutdown()
            thread.join()
    assert "cannot be used" in words
    assert asked == []
