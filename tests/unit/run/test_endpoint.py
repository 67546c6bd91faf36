"""The tools of a learner: each call is checked, bounded, logged and metered, and no path leads out of its view."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermit.agent.result import Failure
from hermit.domain.bind import Bind
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Sandbox
from hermit.errors import Interrupted, SandboxError
from hermit.evolver.tools import Cancel, Cancelled, Tool, ToolError, asked
from hermit.handoff.redact import Key, Redactor
from hermit.run import endpoint as endpoints
from hermit.run import learner_tools
from hermit.run.endpoint import MOST_ARGUMENT, Endpoint
from hermit.run.served import Returned, Served

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

LONG_S = 30.0  # for what is expected to be told at once
KEY = "sk-a-key-of-somebody-0123456789"
PATH = {"type": "object", "properties": {"path": {"type": "string", "format": "path"}}}


def seen(argument: dict[str, Any], _cancel: int) -> Returned:
    """What lies in the copy that a tool gets."""
    path = argument["path"]
    if os.path.isdir(path):
        return Returned(
            sorted(os.path.relpath(os.path.join(top, name), path) for top, _, files in os.walk(path) for name in files)
        )
    with open(path) as file:
        return Returned(file.read())


class Desk:
    """A learner's view, and an endpoint on this machine's loopback in front of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.rows: list[dict[str, Any]] = []
        for name in ("adapter/skills", "material", "copies", "agent-logs", "elsewhere"):
            (root / name).mkdir(parents=True)
        (root / "adapter" / "ADAPTER.md").write_text("adapter")
        (root / "adapter" / "skills" / "a.md").write_text("skill")
        (root / "elsewhere" / "secret").write_text("secret")
        (root / "book.txt").write_text("a book")

    @property
    def sandbox(self) -> Sandbox:
        binds = (
            Bind(f"{self.root}/adapter", "/w/adapter", writable=True),
            Bind(f"{self.root}/material", "/w/material"),
            Bind(f"{self.root}/agent-logs", "/w/agent-logs"),
            Bind(f"{self.root}/book.txt", "/w/environment/book.txt"),
        )
        return Sandbox(role="evolver", binds=binds, layout=Layout(str(self.root), "/w"), cwd="/w")

    def endpoint(self, *tools: Served, lend: Callable[[str], None] = lambda _: None) -> Endpoint:
        return Endpoint(
            tools,
            redactor=Redactor([Key("SOME_KEY", KEY)]),
            copies=f"{self.root}/copies",
            agent_logs=f"{self.root}/agent-logs",
            log=self.rows.append,
            lend=lend,
            confined=False,
        )


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def call(desk: Desk) -> Iterator[Callable[..., Any]]:
    """Calls the tool `see`, which is given a path."""
    with desk.endpoint(Served(name="see", call=seen, takes=PATH)) as endpoint:
        endpoint.serve(desk.sandbox)
        yield lambda path: Tool(name="see", url=endpoint.url)({"path": path})
    assert os.listdir(desk.root / "copies") == [], "what was copied for a call is gone after it"


@pytest.mark.parametrize("path", ["adapter", "/w/adapter", "adapter/", "./adapter/skills/..", "//w//adapter"])
def test_a_path_is_resolved_by_what_the_sandbox_shows(call: Callable[..., Any], path: str) -> None:
    assert call(path) == ["ADAPTER.md", "skills/a.md"]


def test_a_file_can_be_named_too(call: Callable[..., Any]) -> None:
    assert call("adapter/skills/a.md") == "skill"
    assert call("environment/book.txt") == "a book"
    assert call("adapter/skills") == ["a.md"]


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "/", "/w", ".", "..", "", "../elsewhere/secret", "/w/../etc", "adapter/../../etc/passwd", "/w/adapter/../elsewhere",
        "/proc/self/environ", "~/.ssh", "copies", "elsewhere", "\0", "adapter\0", "/w/adapter" + "/x" * 4000, "ADAPTER", "/w/environment",
    ],
)  # fmt: skip
def test_a_path_outside_the_view_is_refused(call: Callable[..., Any], desk: Desk, path: str) -> None:
    with pytest.raises(ToolError) as refused:
        call(path)
    assert refused.value.cause == "path"
    assert "it is not in your view" in refused.value.error
    with pytest.raises(ToolError, match="not in your view"):
        call(f"{desk.root}/adapter")


def test_no_link_of_the_learners_leads_a_copy_out(call: Callable[..., Any], desk: Desk) -> None:
    adapter = desk.root / "adapter"
    (adapter / "out").symlink_to(desk.root / "elsewhere")
    (adapter / "file").symlink_to(desk.root / "elsewhere" / "secret")
    (adapter / "skills" / "up").symlink_to("../../elsewhere/secret")
    os.mkfifo(adapter / "fifo")
    assert call("adapter") == ["ADAPTER.md", "skills/a.md"]
    for path in ("adapter/out", "adapter/file", "adapter/out/secret", "adapter/absent", "adapter/fifo"):
        with pytest.raises(ToolError) as refused:
            call(path)
        assert refused.value.cause == "path", path


def test_a_directory_that_is_exchanged_during_a_call_shows_nothing_from_outside(
    call: Callable[..., Any], desk: Desk
) -> None:
    skills, aside = desk.root / "adapter" / "skills", desk.root / "aside"
    over = threading.Event()

    def exchange() -> None:
        while not over.is_set():
            os.rename(skills, aside)
            os.symlink(desk.root / "elsewhere", skills)
            os.unlink(skills)
            os.rename(aside, skills)

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        found = [_or_cause(call, "adapter/skills") for _ in range(60)]
    finally:
        over.set()
        thread.join()
    assert all(each in (["a.md"], [], "path") for each in found), found


def _or_cause(call: Callable[..., Any], argument: Any) -> Any:
    try:
        return call(argument)
    except ToolError as refused:
        return refused.cause


@pytest.mark.parametrize("body", [b"{", b"[]", b"7", b"null", b'{"a": NaN}', b"\xff", b"[" * 100_000])
def test_an_argument_that_is_no_object_is_refused(desk: Desk, body: bytes) -> None:
    with desk.endpoint(Served(name="see", call=seen, takes=PATH)) as endpoint:
        endpoint.serve(desk.sandbox)
        with pytest.raises(ToolError) as refused:
            asked(f"{endpoint.url}/see", body=body, timeout_s=60)
    assert refused.value.cause == "argument"
    assert [row["status"] for row in desk.rows] == ["argument"]


def test_an_argument_and_a_result_have_a_bound(desk: Desk) -> None:
    large = Served(name="large", call=lambda *_: Returned("x" * (5 << 20)))
    with desk.endpoint(large) as endpoint:
        endpoint.serve(desk.sandbox)
        with pytest.raises(ToolError, match="are passed on"):
            Tool(name="large", url=endpoint.url)()
        with pytest.raises(ToolError) as refused:
            Tool(name="large", url=endpoint.url)({"a": "x" * MOST_ARGUMENT})
    assert refused.value.cause in ("request", "endpoint")


def test_a_copy_for_a_tool_has_a_bound(call: Callable[..., Any], desk: Desk) -> None:
    with (desk.root / "adapter" / "holes").open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(ToolError, match="apparent_bytes") as refused:
        call("adapter")
    assert refused.value.cause == "path"
    assert call("adapter/skills") == ["a.md"]


def test_a_learner_that_calls_without_end_is_refused_and_leaves_no_more_rows(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "MOST_CALLS", 2)
    with desk.endpoint() as endpoint:
        endpoint.serve(desk.sandbox)
        causes = [_or_cause(Tool(name="absent", url=endpoint.url), {}) for _ in range(4)]
    assert causes == ["unknown", "unknown", "too many", "too many"]
    assert len(desk.rows) == endpoint.meters["unknown"].calls == 2


def test_each_call_is_logged_and_metered(desk: Desk) -> None:
    def costs(argument: dict[str, Any], _cancel: int) -> Returned | Failure:
        if argument.get("fail"):
            return Failure("exception", f"it said {KEY}")
        return Returned({"n": 1}, cost_usd=argument.get("cost", 0.0))

    with desk.endpoint(Served(name="costs", call=costs)) as endpoint:
        endpoint.serve(desk.sandbox)
        tool = Tool(name="costs", url=endpoint.url)
        assert tool({"cost": 0.5}) == tool({"cost": None}) == tool() == {"n": 1}
        with pytest.raises(ToolError, match="it said <SOME_KEY>") as failed:
            tool({"fail": True})
        with pytest.raises(ToolError, match="there is no tool 'absent'"):
            Tool(name="absent", url=endpoint.url)()
    assert failed.value.cause == "exception"
    meter = endpoint.meters["costs"]
    assert (meter.calls, meter.failed, meter.cost_usd, meter.unknown_cost) == (4, 1, 0.5, 1)
    assert (meter.bytes_in, meter.bytes_out) == (len('{"cost": 0.5}{"cost": null}{}{"fail": true}'), 3 * len('{"n":1}'))
    assert meter.seconds >= 0
    assert [(row["call"], row["tool"], row["status"]) for row in desk.rows] == [
        (1, "costs", "ok"), (2, "costs", "ok"), (3, "costs", "ok"), (4, "costs", "exception"), (5, "unknown", "unknown"),
    ]  # fmt: skip
    assert KEY not in json.dumps(desk.rows)


def test_a_tool_that_takes_too_long_is_stopped_and_told(desk: Desk) -> None:
    told = threading.Event()

    def hangs(_argument: dict[str, Any], cancel: int) -> Returned:
        if select.select([cancel], [], [], LONG_S)[0]:
            told.set()
        raise Interrupted("given up")

    with desk.endpoint(Served(name="hangs", call=hangs, timeout_s=0.2)) as endpoint:
        endpoint.serve(desk.sandbox)
        with pytest.raises(ToolError) as refused:
            Tool(name="hangs", url=endpoint.url)()
    assert (refused.value.cause, told.is_set()) == ("timeout", True)


def test_a_call_that_is_open_at_the_end_is_given_up_and_nothing_waits_for_it(desk: Desk) -> None:
    running, ended = threading.Event(), threading.Event()

    def hangs(_argument: dict[str, Any], cancel: int) -> Returned:
        running.set()
        if select.select([cancel], [], [], LONG_S)[0]:
            ended.set()
        raise Interrupted("given up")

    with desk.endpoint(Served(name="hangs", call=hangs, timeout_s=3600)) as endpoint:
        endpoint.serve(desk.sandbox)
        address = endpoint.url.split("/")[2].split(":")
        sock = socket.create_connection((address[0], int(address[1])))
        path = endpoint.url.split("/", 3)[3]
        sock.sendall(f"POST /{path}/hangs HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
        assert running.wait(60)
    assert ended.is_set()
    sock.close()


@pytest.mark.parametrize(
    ("error", "cause"), [(KeyError("a bug"), "internal"), (SandboxError("broke", cause="mount"), "sandbox")]
)
def test_a_failure_of_ours_is_not_told_to_the_learner_and_reaches_the_trainer(
    desk: Desk, error: Exception, cause: str
) -> None:
    def fails(*_: Any) -> Returned:
        raise error

    with pytest.raises(type(error)):
        _told(desk, Served(name="fails", call=fails), cause=cause)


def _told(desk: Desk, tool: Served, *, cause: str, then: Exception | None = None) -> None:
    """Calls a tool that breaks, and maybe breaks too."""
    with desk.endpoint(tool) as endpoint:
        endpoint.serve(desk.sandbox)
        with pytest.raises(ToolError) as refused:
            Tool(name=tool.name, url=endpoint.url)()
        assert refused.value.cause == cause
        assert "bug" not in refused.value.error
        if then is not None:
            raise then


def test_a_failure_of_the_learners_call_is_not_hidden_by_one_of_a_tool(desk: Desk) -> None:
    def fails(*_: Any) -> Returned:
        raise KeyError("a bug")

    with pytest.raises(SandboxError, match="first"):
        _told(desk, Served(name="fails", call=fails), cause="internal", then=SandboxError("first"))


def test_the_logs_of_what_a_tool_ran_are_copied_without_a_key_to_where_the_learner_sees_them(desk: Desk) -> None:
    logs = desk.root / "logs-of-the-agent"
    (logs / "deep").mkdir(parents=True)
    (logs / "deep" / "log").write_text(f"the key {KEY}")
    (logs / "link").symlink_to(desk.root / "elsewhere" / "secret")
    lent: list[str] = []
    tool = learner_tools.run_agent(lambda *_: Returned({"results": []}, logs=str(logs)))
    with desk.endpoint(tool, lend=lent.append) as endpoint:
        endpoint.serve(desk.sandbox)
        said = Tool(name="run_agent", url=endpoint.url)({"tasks": ["t/1"]})
    assert said == {"results": [], "logs": "/w/agent-logs/0001"}
    with desk.endpoint(tool) as later:
        later.serve(desk.sandbox)
        assert Tool(name="run_agent", url=later.url)({"tasks": ["t/1"]})["logs"] == "/w/agent-logs/0002"
    shown = desk.root / "agent-logs" / "0001"
    assert (shown / "deep" / "log").read_text() == "the key <SOME_KEY>"
    assert sorted(os.listdir(shown)) == ["deep"]
    assert lent == [str(shown)]


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({}, "tasks is a list"),
        ({"tasks": []}, "tasks is a list"),
        ({"tasks": [1]}, "tasks is a list"),
        ({"tasks": ["a"], "adapter": 7}, "adapter is a path"),
        ({"tasks": ["a"], "more": 1}, "'more' is none of tasks, adapter"),
    ],
)
def test_what_the_trainers_own_tools_cannot_take_starts_nothing(desk: Desk, argument: Any, words: str) -> None:
    def never(*_: Any) -> Returned:
        raise AssertionError("it was started")

    with desk.endpoint(learner_tools.run_agent(never)) as endpoint:
        endpoint.serve(desk.sandbox)
        with pytest.raises(ToolError, match=words) as refused:
            Tool(name="run_agent", url=endpoint.url)(argument)
    assert refused.value.cause == "argument"


def test_check_spec_takes_the_working_copy_unless_another_is_named(desk: Desk) -> None:
    tool = learner_tools.check_spec(lambda argument, _: Returned(sorted(os.listdir(argument["adapter"]))))
    with desk.endpoint(tool) as endpoint:
        endpoint.serve(desk.sandbox)
        call = Tool(name="check_spec", url=endpoint.url)
        assert (call(), call({"adapter": "adapter/skills"})) == (["ADAPTER.md", "skills"], ["a.md"])


def test_a_learner_asks_whether_to_end(desk: Desk) -> None:
    with desk.endpoint() as endpoint:
        endpoint.serve(desk.sandbox)
        before = Cancel(endpoint.url, left_s=None)
        assert (before.is_set(), before.left_s) == (False, None)
        endpoint.cancel()
        assert before.wait(60)
        with pytest.raises(Cancelled):
            Cancel(endpoint.url, left_s=3.0).raise_if_set()
        assert [tool["name"] for tool in asked(f"{endpoint.url}/", timeout_s=60)] == []


def test_nobody_who_is_not_told_the_word_in_front_gets_an_answer(desk: Desk) -> None:
    with desk.endpoint(learner_tools.check_spec(seen)) as endpoint:
        endpoint.serve(desk.sandbox)
        bare = endpoint.url.rpartition("/")[0]
        for url in (f"{bare}/check_spec", f"{bare}//check_spec", f"{bare}/{'x' * 24}/check_spec"):
            with pytest.raises(ToolError, match="there is nothing here"):
                asked(url, body=b"{}", timeout_s=60)
    assert desk.rows == []


def test_two_tools_of_one_name_are_refused(desk: Desk) -> None:
    with pytest.raises(ValueError, match="two tools have the name see"):
        desk.endpoint(Served(name="see", call=seen), Served(name="see", call=seen))
