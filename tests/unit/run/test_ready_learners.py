"""The learners that come with Hermit: any command, a shell script among them, and an agent with prompts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.agent.result import Failure
from hermit.evolver import StepResult
from hermit.run.learner import Ask
from hermit.run.served import Returned, Served

if TYPE_CHECKING:
    from tests.unit.run.conftest import Studio

SCRIPT = r"""#!/bin/sh
set -eu
test "$PWD" = "$HERMIT_METHOD"
grep -h feedback "$HERMIT_MATERIAL"/summary.json >> "$HERMIT_ADAPTER/ADAPTER.md"
printf '%s\n' "$HERMIT_PHASE $HERMIT_STEP $HERMIT_EPOCH ${HERMIT_EPOCH_END:-no} $HERMIT_MESSAGE" > "$HERMIT_OUTPUT/said"
for name in $(env | sed -n 's/^\(HERMIT_[A-Z_]*\)=.*/\1/p' | sort); do echo "$name"; done > "$HERMIT_STATE/names"
cp "$HERMIT_CONTEXT" "$HERMIT_STATE/context.json"
$HERMIT_TOOL check_spec > "$HERMIT_STATE/checked"
echo '{"adapter": "/etc"}' | $HERMIT_TOOL check_spec - 2> "$HERMIT_STATE/refused" || echo "$?" >> "$HERMIT_STATE/refused"
$HERMIT_TOOL absent 2>> "$HERMIT_STATE/refused" || true
if touch "$HERMIT_MATERIAL/x" 2>/dev/null; then exit 9; fi
cat > "$HERMIT_RESULT" <<END
{"summary": "from a script", "usage": {"tokens": 3}, "session": [1], "status": "done"}
END
"""
COMMAND = "class: hermit.evolver:CommandEvolver\nparams: {command: [sh, learn.sh]}\n"


def scripted(studio: Studio, script: str, *, said: str = COMMAND) -> None:
    studio.write("", said=said)
    (studio.method / "learn.sh").write_text(script)


@pytest.mark.bwrap
def test_a_shell_script_can_be_a_learner(studio: Studio, place: Any) -> None:
    scripted(studio, SCRIPT)
    learner = studio.learner(place=place)
    (learner.desk.part("material") / "summary.json").write_text('{\n"feedback": "say it shorter"\n}')
    called = studio.step(learner, message="be brief")
    assert isinstance(called.result, StepResult), called
    assert called.result == StepResult("done", "from a script", session=[1], usage={"tokens": 3}), called.stderr
    state = learner.desk.part("state")
    assert (learner.desk.part("adapter") / "ADAPTER.md").read_text() == '"feedback": "say it shorter"\n'
    assert (learner.desk.part("output") / "said").read_text() == "step 3 1 no be brief\n"
    assert json.loads((state / "checked").read_text()) == {"passed": True, "files": ["ADAPTER.md"]}
    assert (state / "refused").read_text().splitlines() == [
        "path: '/etc' is nothing that check_spec can be given: it is not in your view",
        "1",
        "unknown: there is no tool 'absent'; there are check_spec",
    ]
    context = json.loads((state / "context.json").read_text())
    assert context["workspace"]["learning_material"] == "/w/material"
    assert (context["phase"], context["progress"]["step"], context["message"]) == ("step", 3, "be brief")
    assert context["tools"]["check_spec"]["takes"]["properties"]["adapter"]["format"] == "path"


@pytest.mark.bwrap
def test_every_variable_of_a_command_is_documented_and_every_documented_one_is_there(
    studio: Studio, place: Any, pytestconfig: pytest.Config
) -> None:
    import re

    scripted(studio, SCRIPT)
    learner = studio.learner(place=place)
    (learner.desk.part("material") / "summary.json").write_text("feedback")
    studio.step(learner)
    names = set((learner.desk.part("state") / "names").read_text().split())
    page = (pytestconfig.rootpath / "docs" / "reference" / "evolvers.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(HERMIT_[A-Z_]+)` \|", page, re.MULTILINE)) == names


@pytest.mark.parametrize(
    ("script", "status", "words"),
    [
        ("echo 'why not' >&2; exit 3", "failed", "sh ended with 3: why not"),
        ("true", "done", "sh ended with 0"),
        ("kill -9 $$", "failed", "sh ended with -9"),
        ("(sleep 600 & ) ; exit 0", "done", "sh ended with 0"),
    ],
)
def test_the_exit_code_of_a_command_is_its_status(studio: Studio, script: str, status: str, words: str) -> None:
    scripted(studio, script)
    result = studio.step(studio.learner()).result
    assert isinstance(result, StepResult), result
    assert (result.status, result.summary.startswith(words)) == (status, True), result


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('echo "{" > $HERMIT_RESULT', "Expecting property name"),
        ("echo [] > $HERMIT_RESULT", "holds fields of a StepResult"),
        ("""echo '{"more": 1}' > $HERMIT_RESULT""", "holds fields of a StepResult, and 'more' is none"),
        ("""echo '{"status": "great"}' > $HERMIT_RESULT""", "a status is one of"),
        ("mkfifo $HERMIT_RESULT", "HERMIT_RESULT is no file: FIFO"),
        ("ln -s /etc/passwd $HERMIT_RESULT", "HERMIT_RESULT is no file: link"),
        ("head -c 2000000 /dev/zero > $HERMIT_RESULT", "has more than 1048576 bytes"),
    ],
)
def test_a_result_that_is_none_is_a_failure_with_its_reason(studio: Studio, script: str, words: str) -> None:
    scripted(studio, script)
    result = studio.step(studio.learner()).result
    assert isinstance(result, Failure), result
    assert words in result.error


def test_a_command_runs_in_the_calls_that_it_is_asked_for(studio: Studio) -> None:
    said = "class: hermit.evolver:CommandEvolver\nparams: {command: 'echo $HERMIT_PHASE >> $HERMIT_STATE/calls', phases: [setup, bootstrap, step, finalize]}\n"
    scripted(studio, "", said=said)
    learner = studio.learner()
    traits = learner.traits()
    assert traits.framework
    for phase in ("setup", "bootstrap", "step", "finalize"):
        assert not isinstance(learner.call(Ask(phase), traits, tools=()).result, Failure)
    assert (learner.desk.part("state") / "calls").read_text().split() == ["setup", "bootstrap", "step", "finalize"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("{}", "evolver.params.command is a line"),
        ("{command: [1]}", "evolver.params.command is"),
        ("{command: 'true', phases: [stop]}", "evolver.params.phases is a list of"),
    ],
)
def test_a_command_that_is_none_is_said(studio: Studio, params: str, words: str) -> None:
    scripted(studio, "", said=f"class: hermit.evolver:CommandEvolver\nparams: {params}\n")
    result = studio.step(studio.learner()).result
    assert isinstance(result, Failure), result
    assert words in result.error


AGENT = """
from pathlib import Path
from hermit import Agent, RunOutput
class Scripted(Agent):
    def run(self, task, adapter):
        assert adapter == Path(task["workspace"]["adapter"])
        (adapter / "ADAPTER.md").write_text(task["prompt"])
        again = (task["session"] or 0) + self.params["by"]
        return RunOutput("changed it", cost_usd=0.25, tokens={"in": 3, "out": 4}, extra={"session": again})
"""


@pytest.mark.bwrap
def test_an_agent_can_be_a_learner_with_a_prompt_from_a_file(studio: Studio, place: Any) -> None:
    said = "class: hermit.evolver:AgentEvolver\nparams: {agent: 'agents/own.py:Scripted', agent_params: {by: 2}, prompts: {step: step.md}}\n"
    studio.write("", said=said)
    (studio.method / "agents").mkdir()
    (studio.method / "agents" / "own.py").write_text(AGENT)
    (studio.method / "step.md").write_text("Read {learning_material} {once}, step {step}: {message} {")
    learner = studio.learner(place=place)
    assert not learner.traits().framework
    called = studio.step(learner, message="{adapter}", session=40)
    assert called.result == StepResult("done", "changed it", session=42, usage={"cost_usd": 0.25, "tokens": 7}), called
    assert (learner.desk.part("adapter") / "ADAPTER.md").read_text() == "Read material {once}, step 3: {adapter} {"
    kept = json.loads((learner.desk.part("output") / "agent" / "step-3.json").read_text())
    assert kept["tokens"] == {"in": 3, "out": 4}
    assert learner.call(Ask("bootstrap"), learner.traits(), tools=()).result is None


def test_a_message_of_any_size_and_kind_reaches_a_command_as_far_as_a_variable_can_hold_it(studio: Studio) -> None:
    scripted(studio, 'printf %s "$HERMIT_MESSAGE" | wc -c > $HERMIT_STATE/size; cp $HERMIT_CONTEXT $HERMIT_STATE/all')
    learner = studio.learner()
    message = "a\0b\ud800" + "日" * 100_000
    result = studio.step(learner, message=message).result
    assert isinstance(result, StepResult), result
    assert 65530 < int((learner.desk.part("state") / "size").read_text()) <= 65536
    assert json.loads((learner.desk.part("state") / "all").read_text())["message"] == message


def test_a_declared_tool_is_called_by_a_script_with_a_path_of_its_own(studio: Studio) -> None:
    seen: list[Any] = []
    takes = {
        "type": "object",
        "properties": {"files": {"type": "array", "items": {"type": "string", "format": "path"}}},
    }

    def measure(argument: dict[str, Any], _cancel: int) -> Returned:
        seen.append(argument)
        return Returned(len(argument["files"]))

    scripted(
        studio, 'echo "$($HERMIT_TOOL measure "{\\"files\\": [\\"adapter\\", \\"state\\"]}")" > $HERMIT_STATE/size'
    )
    learner = studio.learner()
    studio.step(learner, Served(name="measure", call=measure, takes=takes, copies=False))
    assert (learner.desk.part("state") / "size").read_text() == "2\n"
    assert seen == [{"files": [str(learner.desk.part("adapter")), str(learner.desk.part("state"))]}]
