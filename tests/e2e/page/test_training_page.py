"""The page of a training run in a browser: what it shows, and that nothing a learner wrote or changed acts there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.run.reading import page, trained
from hermit.run.reading.training_page import TrainingPage

from .test_page import CONTRAST, acts, asked_for, hostile, without

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.bwrap, pytest.mark.chromium]

AGENT = """
from hermit import RunOutput
def run(task, adapter):
    text = (adapter / "ADAPTER.md").read_text()
    if task["id"] == "broken": raise RuntimeError("<b>no</b>")
    return RunOutput("good" if "Be good." in text else task["say"], cost_usd=0.5)
"""
JUDGE = """
def score(task, output):
    return {"score": float(output.output == "good"), "feedback": "judged: " + str(output.output)}
"""
# Its words and its change are hostile; the second step breaks a rule, the third fails.
LEARNER = """
import json
from hermit.evolver import Evolver, StepResult

class Learner(Evolver):
    def step(self, ctx):
        say = json.loads((ctx.base / "say.json").read_text())
        print("printed", say)
        ctx.tools["check_spec"]()
        file = ctx.workspace.adapter / "ADAPTER.md"
        if ctx.progress.step == 1:
            file.write_text(file.read_text() + "Be good.\\n" + say.replace("\\0", "").replace("\\x1b", "") + "\\n")
            (ctx.workspace.output / "notes.md").write_text(say)
        if ctx.progress.step == 2:
            file.write_text(file.read_text() + "Be brief.\\n")
            (ctx.workspace.adapter / "stray.bin").write_bytes(b"no rule holds this")
        if ctx.progress.step == 3:
            raise RuntimeError(say)
        return StepResult(summary="Changed it " + say, rationale="because " + say, usage={"cost_usd": 0.25, "tokens": 7})
"""
CONFIG = """
data: {tasks: data/tasks.jsonl, train: data/train.txt, test: data/test.txt, step_size: 4}
template: prompt-only
evolver: {name: ./learner}
trainer: {run_name: one, epochs: 3, budget: {usd: 40}, save_freq: {steps: 2, epochs: null}}
agent: {name: 'agent.py:run', concurrency: 2}
judge: {path: judge.py, mode: shared}
"""


@pytest.fixture
def made(task_set: Callable[..., Any], server: Any) -> Path:
    """A training run of three steps, and an evaluation of its last version; every word in it is hostile."""
    say = "\n".join(hostile(server.address))
    tasks = [{"id": name, "say": say} for name in ("one", "two", "three", "broken", "held", "out")]
    found = task_set(AGENT, JUDGE, tasks=tasks)
    found.config.write_text(CONFIG)
    for split, names in (("train", ("one", "two", "three", "broken")), ("test", ("held", "out"))):
        (found.root / "data" / f"{split}.txt").write_text("".join(f"{name}\n" for name in names))
    method = found.root / "learner"
    method.mkdir()
    (method / "learner.py").write_text(LEARNER)
    (method / "say.json").write_text(json.dumps(say))
    (method / "evolver.yaml").write_text("class: learner.py:Learner\n")
    for command in (("train",), ("eval", "--adapter", "final")):
        said = found.machine.run("-m", "hermit", *command, "--config", str(found.config), "--runtime", "local")
        assert said.code == 0, said.err
    run: Path = found.root / "runs" / "one"
    said = found.machine.run("-m", "hermit", "report", str(run))
    assert said.code == 0, said.err
    assert all(letter.isprintable() or letter == "\n" for letter in said.out)
    return run


@pytest.fixture
def shown(made: Path, browser: Any) -> Any:
    """The browser, with the page that `hermit report` left."""
    browser.open(made / "report.html")
    return browser


def test_the_page_shows_how_the_training_went(shown: Any) -> None:
    assert shown.run("document.title") == "one - Hermit"
    assert shown.shows("#scores") == "0 to 0.75"
    assert shown.shows("#tested") == "1.0000"
    assert shown.shows("#made") == "3"
    assert shown.run("document.querySelectorAll('#curve a circle').length") == 3
    assert shown.run("document.querySelectorAll('#curve svg .version').length") == 1
    assert shown.run("document.querySelectorAll('#curve svg .tag').length") == 1
    assert shown.run("document.querySelectorAll('#curve svg .between').length") == 3
    titles = "[...document.querySelectorAll('#curve title')].map(title => title.textContent)"
    assert any(title.startswith("final on the test split: mean 1.0000") for title in shown.run(titles))
    assert shown.run("document.querySelector('#curve svg').getBoundingClientRect().height > 150")
    # Two calls of the learner that say so, and in each of three steps three attempts; that of the broken task says nothing.
    assert "Budget: 5 of 40 usd" in shown.shows("#spending")
    assert "evolver" in shown.shows("#isolation")
    pills = "[...document.querySelectorAll('.step > summary .pill')].map(pill => pill.innerText)"
    assert shown.run(pills) == ["kept", "repaired", "not taken"]


def test_a_step_opens_with_its_words_its_change_its_reasons_its_tools_and_its_attempts(shown: Any, server: Any) -> None:
    said = "\n".join(hostile(server.address))
    spelled = said.replace("\u202e", "\\u202e").replace("\0", "\\x00").replace("\x1b", "\\x1b")
    assert not shown.run("document.querySelector('#s1 .body').checkVisibility()")
    shown.run("document.querySelector('#s1 > summary').click()")
    assert shown.run("document.querySelector('#s1 > .body').checkVisibility()")
    texts = shown.run("[...document.querySelectorAll('#s1 > .body > .words pre')].map(words => words.textContent)")
    assert texts[:2] == [f"Changed it {spelled}", f"because {spelled}"]
    assert f"printed {spelled}\n" in texts
    assert not shown.run("document.querySelector('#s1 .diff').checkVisibility()")  # closed until somebody opens it
    shown.run("document.querySelector('#s1 .change > summary').click()")
    assert shown.run("document.querySelector('#s1 .diff').checkVisibility()")
    added = shown.run("[...document.querySelectorAll('#s1 .diff .added')].map(line => line.textContent)")
    kept = spelled.replace("\\x00", "").replace("\\x1b", "")  # no adapter may hold these two
    assert added == ["+Be good.", *(f"+{line}" for line in kept.split("\n"))]
    colours = shown.run(
        "['.added', '.same'].map(kind => getComputedStyle(document.querySelector('#s1 .diff ' + kind)).backgroundColor)"
    )
    assert colours[0] != colours[1]
    assert "check_spec" in shown.shows("#s1 > .body")
    assert shown.run("[...document.querySelectorAll('#s1 .attempt')].map(each => each.id)") == [
        f"s1a{number}" for number in range(1, 5)
    ]
    shown.run("document.querySelector('#s1a1 > summary').click()")
    assert "judged" not in shown.shows("#s1a1 .body")[:5]
    assert "bubblewrap" in shown.shows("#s1a1 .body")
    shown.run("document.querySelector('#s2 > summary').click()")
    assert "stray.bin" in shown.shows("#s2 > .body")
    shown.run("document.querySelector('#s3 > summary').click()")
    failed = shown.run("document.querySelector('#s3 > .body > .words pre').textContent")
    assert failed.startswith("exception: ")


def test_a_filter_leaves_the_steps_of_one_outcome(shown: Any) -> None:
    visible = "[...document.querySelectorAll('.step')].filter(each => each.checkVisibility()).map(each => each.id)"
    assert shown.run(visible) == ["s1", "s2", "s3"]
    for kind, left in (("repaired", ["s2"]), ("not_taken", ["s3"]), ("all", ["s1", "s2", "s3"])):
        shown.run(f"document.querySelector('label:has(#only-{kind})').click()")
        assert shown.run(visible) == left


def test_nothing_a_learner_wrote_acts_and_no_request_leaves(shown: Any, server: Any) -> None:
    shown.run("document.querySelectorAll('details').forEach(inner => inner.open = true)")
    shown.run("new Promise(done => setTimeout(done, 300))")
    assert not acts(shown)
    assert asked_for(shown) == []
    assert server.asked == []
    assert shown.seen("Log.entryAdded") == []  # the policy had nothing to refuse


def test_planted_failure_without_escaping_words_of_a_learner_become_elements_and_the_policy_stops_all_they_do(
    made: Path, browser: Any, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, escaping=True)
    target = made / "planted.html"
    with trained.opened(made) as training:
        page.write(TrainingPage(training), target)
    target.write_bytes(target.read_bytes().replace(b'http-equiv="refresh"', b'http-equiv="no"'))
    browser.open(target)
    assert acts(browser)
    assert browser.run("window.owned") is None
    assert server.asked == []
    assert browser.seen("Log.entryAdded")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_in_light_and_in_dark(shown: Any, scheme: str) -> None:
    shown.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    shown.run("document.querySelectorAll('details').forEach(inner => inner.open = true)")
    found = shown.run(CONTRAST)
    assert {"SPAN.added", "SPAN.place", "B.plus", "B.pill kept"} <= set(found)
    assert {name: ratio for name, ratio in found.items() if ratio < 4.5} == {}


def test_the_page_fits_a_narrow_window(shown: Any) -> None:
    shown.ask("Emulation.setDeviceMetricsOverride", width=420, height=800, deviceScaleFactor=1, mobile=False)
    shown.run("document.querySelectorAll('details').forEach(inner => inner.open = true)")
    assert shown.run("document.documentElement.scrollWidth") <= 420
