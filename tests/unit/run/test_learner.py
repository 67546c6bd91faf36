"""One call of the learner: what its class is given, where it runs, and what is believed of what it hands back."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from hermit.agent.result import Failure
from hermit.errors import ConfigError, SandboxError
from hermit.evolver import FinalResult, Progress, StepResult
from hermit.run.learner import Ask, Traits

if TYPE_CHECKING:
    from tests.unit.run.conftest import Studio

LEARNER = """
import os
from hermit.evolver import Evolver, FinalResult, StepResult

class Learner(Evolver):
    def setup(self, ctx):
        (ctx.workspace.state / "ready").write_text("yes")

    def bootstrap(self, ctx):
        return None

    def step(self, ctx):
        material = (ctx.workspace.learning_material / "summary.json").read_text()
        (ctx.workspace.adapter / "ADAPTER.md").write_text(material)
        checked = ctx.tools["check_spec"]()
        return StepResult(
            summary="wrote it",
            rationale=ctx.message,
            session={"calls": ctx.session or 0},
            usage={"tokens": 7, "cost_usd": 0.5},
            extra={
                "cwd": os.getcwd(),
                "progress": vars(ctx.progress),
                "paths": {name: str(path) for name, path in vars(ctx.workspace).items()},
                "checked": checked,
                "params": ctx.params,
                "tools": list(ctx.tools),
                "left": ctx.cancel.left_s,
                "cancelled": ctx.cancel.is_set(),
                "home": os.environ["HOME"],
                "url": ctx.tool_url,
                "base": str(ctx.base),
                "sandbox": [ctx.sandbox.role, ctx.sandbox.cwd, ctx.sandbox.outside("adapter/x")],
            },
        )

    def finalize(self, ctx):
        return FinalResult("the end", extra={"ready": (ctx.workspace.state / "ready").read_text()})
"""


@pytest.mark.bwrap
def test_a_learner_works_in_its_sandbox_and_hands_back_its_result(studio: Studio, place: Any) -> None:
    studio.write(LEARNER, said="class: learner.py:Learner\nparams: {a: {b: 1, c: 2}}\n")
    learner = studio.learner("evolver.params={a: {b: 5}}", place=place)
    (learner.desk.part("material") / "summary.json").write_text('{"mean": 0.5}')
    traits = learner.traits()
    assert traits == Traits(framework=False, phases=("setup", "bootstrap", "step", "finalize"))
    assert learner.call(Ask("setup"), traits, tools=()).result is None
    assert learner.call(Ask("bootstrap", progress=Progress(epoch=1, step=0)), traits, tools=()).result is None
    called = studio.step(
        learner, message=f"look at {learner.desk.part('material')}/summary.json, in {studio.desk_root}."
    )
    result = called.result
    assert isinstance(result, StepResult), result
    assert (result.status, result.summary, result.session) == ("done", "wrote it", {"calls": 0})
    assert result.rationale == "look at material/summary.json, in /w."
    extra = result.extra
    assert (extra["cwd"], extra["home"], extra["base"]) == ("/w", "/w/home", "/w/method")
    assert extra["progress"] == {"epoch": 1, "step": 3, "is_epoch_end": False}
    assert extra["paths"]["learning_material"] == "/w/material"
    assert extra["paths"]["agent_logs"] == "/w/agent-logs"
    assert extra["checked"] == {"passed": True, "files": ["ADAPTER.md"]}
    assert extra["params"] == {"a": {"b": 5, "c": 2}}
    assert (extra["tools"], extra["cancelled"]) == (["check_spec"], False)
    assert 0 < extra["left"] <= 3600
    assert extra["sandbox"] == ["evolver", "/w", "/w/adapter/x"]
    assert (learner.desk.part("adapter") / "ADAPTER.md").read_text() == '{"mean": 0.5}'
    assert called.empty
    assert called.meters["check_spec"].calls == 1
    final = learner.call(Ask("finalize"), traits, tools=()).result
    assert final == FinalResult("the end", extra={"ready": "yes"})
    assert {record.role for record in studio.records if record.role != "check"} == {"evolver"}


def test_the_same_learner_works_where_nothing_is_confined(studio: Studio) -> None:
    studio.write(LEARNER)
    learner = studio.learner()
    (learner.desk.part("material") / "summary.json").write_text("{}")
    called = studio.step(learner, message=f"in {studio.desk_root}/material")
    assert isinstance(called.result, StepResult), called
    assert called.result.extra["paths"]["adapter"] == str(learner.desk.part("adapter"))
    assert called.result.extra["cwd"] == str(studio.desk_root)
    assert called.result.rationale == "in material"


@pytest.mark.parametrize(
    ("body", "cause", "words"),
    [
        ("return {'status': 'done'}", "result", "step() returned dict, not StepResult"),
        ("return None", "result", "step() returned NoneType, not StepResult"),
        ("return StepResult('finished')", "exception", "a status is one of done, failed, out_of_budget, stop"),
        ("return StepResult(usage={'tokens': float('nan')})", "exception", "usage.tokens must be a number"),
        ("return StepResult(session=object())", "result", "has no JSON form"),
        ("return StepResult(extra={'x': 'y' * (5 << 20)})", "result", "4194304 are accepted"),
        ("raise KeyError('why')", "exception", "KeyError: 'why'"),
        ("import sys; sys.exit(3)", "exit", "sys.exit(3)"),
        ("import os; os.kill(os.getpid(), 9)", "signal", "SIGKILL"),
    ],
)
def test_a_step_that_hands_back_no_result_is_a_failure_with_a_cause(
    studio: Studio, body: str, cause: str, words: str
) -> None:
    studio.write(f"from hermit.evolver import *\nclass Learner(Evolver):\n    def step(self, ctx):\n        {body}\n")
    result = studio.step(studio.learner()).result
    assert isinstance(result, Failure)
    assert (result.cause, words in result.error) == (cause, True), result


FORGED = """
import json, os
from hermit.evolver import Evolver
class Learner(Evolver):
    def step(self, ctx):
        for number in range(3, 64):
            try:
                os.write(number, {said!r})
                os._exit(0)
            except OSError:
                continue
"""


@pytest.mark.parametrize(
    "result",
    [None, 7, {"status": "great"}, {"status": "done", "more": 1}, {"usage": {"tokens": -1}}, {"summary": ["x"]}],
)
def test_the_host_checks_again_what_a_class_wrote_past_its_worker(studio: Studio, result: Any) -> None:
    studio.write(FORGED.format(said=json.dumps({"value": {"result": result}}).encode()))
    found = studio.step(studio.learner()).result
    assert isinstance(found, Failure), found
    assert found.cause == "result"


def test_a_method_whose_class_is_no_learner_is_refused_with_its_reason(studio: Studio) -> None:
    for code, words in (
        ("class Learner: pass\n", "is no class that extends hermit.evolver.Evolver"),
        ("from hermit.evolver import Evolver\nclass Learner(Evolver): pass\n", "Learner has no step"),
        ("Learner = 3\nraise ValueError('at import')\n", "ValueError: at import"),
        (
            "from hermit.evolver import Evolver\nclass Learner(Evolver):\n  sandbox_framework = 'yes'\n  def step(self, ctx): 0",
            "True or False",
        ),
    ):
        studio.write(code)
        studio.desk_root = studio.desk_root.with_name(f"desk-{len(words)}")
        with pytest.raises(ConfigError, match="cannot be used") as caught:
            studio.learner().traits()
        assert words in caught.value.what


@pytest.mark.bwrap
def test_no_code_of_a_method_runs_on_the_host(studio: Studio, place: Any, tmp_path: Any) -> None:
    mark = tmp_path / "mark"
    studio.write(
        "import os\nfrom hermit.evolver import Evolver, StepResult\n"
        f"try:\n    open({str(mark)!r}, 'w')\nexcept OSError:\n    pass\n"
        "class Learner(Evolver):\n    def step(self, ctx): return StepResult(extra={'pid': os.getpid()})\n"
    )
    result = studio.step(studio.learner(place=place)).result
    assert isinstance(result, StepResult)
    assert not mark.exists()
    assert result.extra["pid"] != os.getpid()


KEY = "sk-a-key-of-the-run-0123456789"
READER = f"""
from hermit.evolver import Evolver, StepResult
class Learner(Evolver):
    def step(self, ctx):
        w = ctx.workspace
        for name in ("output", "state", "scratch"):
            (getattr(w, name) / "left").write_text("the key " + {KEY!r})
        print({KEY!r})
        texts = [(w.learning_material / "a").read_text(), (ctx.access.environment["books"] / "b").read_text()]
        return StepResult(extra={{"texts": texts, "said": ctx.tools["ask"]()}})
"""


@pytest.mark.bwrap
def test_no_key_is_in_what_a_learner_is_shown_nor_in_what_it_leaves(studio: Studio, place: Any) -> None:
    from hermit.run.served import Returned, Served

    studio.write(READER)
    books = studio.run.root / "books"
    books.mkdir()
    (books / "b").write_text(f"in a book: {KEY}")
    learner = studio.learner(
        "evolver_access.environment=[books]", place=place, environ={"AGENT_API_KEY": KEY, "HOME": "/"}
    )
    (learner.desk.part("material") / "a").write_text(f"in a trajectory: {KEY}")
    (learner.desk.part("home") / ".history").write_text(KEY)
    called = studio.step(learner, Served(name="ask", call=lambda *_: Returned(f"the agent said {KEY}")))
    assert isinstance(called.result, StepResult), called.result
    mark = "<AGENT_API_KEY>"
    assert called.result.extra["texts"] == [f"in a trajectory: {mark}", f"in a book: {mark}"]
    assert called.result.extra["said"] == f"the agent said {mark}"
    assert KEY.encode() not in called.stdout
    assert (books / "b").read_text() == f"in a book: {KEY}", "a person's own file keeps what is in it"
    assert called.found.scrubbed
    assert (learner.desk.part("state") / "left").read_text() == f"the key {KEY}"
    found = learner.scrubbed()
    assert len(found.scrubbed) == 2
    assert {(learner.desk.part(name) / "left").read_text() for name in ("output", "state", "scratch")} == {
        f"the key {mark}"
    }
    assert (learner.desk.part("home") / ".history").read_text() == mark


@pytest.mark.bwrap
def test_a_call_that_takes_too_long_is_stopped_and_one_that_is_asked_ends_by_itself(studio: Studio, place: Any) -> None:
    studio.write(
        "import time\nfrom hermit.evolver import Evolver, StepResult\n"
        "class Learner(Evolver):\n    def step(self, ctx):\n"
        "        if ctx.params.get('ends'): return StepResult('stop' if ctx.cancel.wait(60) else 'done')\n"
        "        time.sleep(600)\n"
    )
    learner = studio.learner("evolver.params={ends: true}", place=place)
    called = studio.step(learner, on_start=lambda endpoint: endpoint.cancel())
    assert isinstance(called.result, StepResult)
    assert called.result.status == "stop"
    studio.desk_root = studio.desk_root.with_name("desk-2")
    stopped = studio.step(studio.learner("trainer.call_timeout_min=0.05", place=place)).result
    assert isinstance(stopped, Failure)
    assert stopped.cause == "timeout"


@pytest.mark.bwrap
def test_a_start_that_would_show_a_secret_is_refused(studio: Studio, place: Any) -> None:
    studio.write(LEARNER)
    learner = studio.learner("evolver_access.environment=[data]", place=place)
    with pytest.raises(SandboxError) as refused:
        studio.step(learner)
    assert refused.value.cause == "check"


STAMP = """
import os
def stamp(argument):
    with open(argument["path"], "w") as file:
        file.write("by the tool")
    return {"there": [path for path in argument["look"] if os.path.exists(path)], "variables": sorted(os.environ)}
"""
STAMPED = """
from hermit.evolver import Evolver, StepResult, ToolError
class Learner(Evolver):
    def step(self, ctx):
        said = ctx.tools["stamp"]({"path": "adapter/stamp", "look": ctx.params["look"]})
        try:
            ctx.tools["stamp"]({"path": "history/stamp", "look": []})
            refused = ""
        except ToolError as error:
            refused = error.error
        return StepResult(extra={**said, "read": (ctx.workspace.adapter / "stamp").read_text(), "refused": refused})
"""


@pytest.mark.bwrap
def test_a_tool_of_the_template_works_on_the_adapter_in_a_sandbox_of_its_own(studio: Studio, place: Any) -> None:
    from hermit.domain.sandbox import Enforce
    from hermit.roles import tool as tool_role
    from hermit.run import learner_tools, tools

    studio.write(STAMPED)
    path = {"type": "string", "format": "path"}
    tool_file = studio.run.root / "tools" / "own.py"
    tool_file.parent.mkdir()
    tool_file.write_text(STAMP)
    takes = {"type": "object", "required": ["path", "look"], "properties": {"path": path, "look": {"type": "array"}}}
    (tool_file.parent / "own.tools.json").write_text(json.dumps({"stamp": {"takes": takes}}))
    tool = tools.declared(f"{tool_file}:stamp", key="evolver_access.tools")
    hidden = str(studio.run.root / "judge.py")
    learner = studio.learner(f"evolver.params={{look: [{hidden}]}}", place=place)
    sandbox = tool_role.of_template(
        tool,
        template=str(learner.desk.part("root")),
        adapter=str(learner.desk.part("adapter")),
        enforce=Enforce.REQUIRED,
    )
    served = learner_tools.declared(tool, place=place, sandbox=sandbox, keep=studio.records.append)
    result = studio.step(learner, served).result
    assert isinstance(result, StepResult), result
    assert (result.extra["read"], result.extra["there"]) == ("by the tool", [])
    assert "HERMIT_TOOL_URL" not in result.extra["variables"]
    assert "FileNotFoundError" in result.extra["refused"], "what the tool's own sandbox does not show is not there"
    assert [row["status"] for row in studio.rows] == ["ok", "exception"]
    assert [record.role for record in studio.records] == ["tool", "tool", "evolver"]
