"""What a learner leaves as its adapter: dropped, repaired or taken back, counted, and told to its next call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hermit.handoff import budget, scrub
from hermit.run import handover

if TYPE_CHECKING:
    from tests.unit.run.conftest import School

# A call for each step: what it leaves beside an honest rule.
LEAVES = """
    def step(self, ctx):
        where, number = ctx.workspace.adapter, ctx.progress.step
        current = ctx.workspace.learning_material / f"step_{number - 1:04d}" / "check_feedback.json"
        if number > 1:
            called("told " + current.read_text().replace("\\n", ""))
        add(ctx, f"rule {number}")
        [None, *LEFT][number](where)
        return StepResult()
"""


def trained(school: School, *left: str) -> list[dict[str, Any]]:
    """A run with a step for each of these statements about the adapter's directory ``a``; what was told of each."""
    code = "\nimport socket, stat\n" + "".join(
        f"def left{number}(a):\n" + "".join(f"    {line}\n" for line in words.strip().splitlines())
        for number, words in enumerate(left)
    )
    code += f"LEFT = [{', '.join(f'left{number}' for number in range(len(left)))}, lambda a: None]\n"
    school.learns(LEAVES)
    file = school.root / "learner" / "learner.py"
    file.write_text(file.read_text().replace("class Learner", f"{code}class Learner"))
    tasks = "".join(f"{name}\n" for name in "abcdefgh"[: len(left) + 1])
    (school.root / "data" / "train.txt").write_text(tasks)
    (school.root / "data" / "test.txt").write_text("h\n" if len(left) < 7 else "")
    school.train("data.step_size=1")
    found = [school.feedback(number + 1) for number in range(len(left))]
    told = [json.loads(call.removeprefix("told ")) for call in school.calls if call.startswith("told ")]
    assert told == found, "the next call is told what was found"
    return found


def versions(school: School) -> list[list[str]]:
    """The paths of the version after each step."""
    return [school.git("ls-tree", "-r", "--name-only", line["commit"]) for line in school.lines]


OWN = ["ADAPTER.md", "EVOLVER.md", "README.md", "adapter.yaml"]


def test_what_is_no_file_is_dropped_and_told_and_the_rest_is_taken(school: School) -> None:
    (school.root / "outside").write_text("secret")
    outside = str(school.root / "outside")
    found = trained(
        school,
        f"os.symlink({outside!r}, a / 'out'); os.symlink('ADAPTER.md', a / 'in')",
        f"os.link({outside!r}, a / 'hard')",
        "os.mkfifo(a / 'fifo'); s = socket.socket(socket.AF_UNIX); os.chdir(a); s.bind('sock')",
        "open(a / 'root', 'w').close(); os.chmod(a / 'root', 0o6755); os.chmod(a / 'ADAPTER.md', 0o6755)",
        "os.makedirs(a / '.git' / 'hooks'); open(a / '.git' / 'hooks' / 'post-commit', 'w').write('#!/bin/sh')",
    )
    assert [each["outcome"] for each in found] == ["repaired"] + ["kept"] * 2 + ["repaired"] * 2
    copied = [each["not_copied"] for each in found]
    assert copied[0] == {"adapter: link that leaves": 1}
    assert copied[1] == {"adapter: hard link from outside": 1}
    assert copied[2] == {"adapter: FIFO": 1, "adapter: socket": 1}
    assert copied[3] == {"adapter: setgid bit": 2, "adapter: setuid bit": 2}
    assert {repair["path"]: repair["reason"] for repair in found[0]["repairs"]} == {"in": "it is a link and no file"}
    assert {repair["path"] for repair in found[3]["repairs"]} >= {"root"}
    assert {repair["path"]: repair["reason"] for repair in found[4]["repairs"]} == {".git": "it is a name of Git's own"}
    assert versions(school) == [OWN] * 6
    modes = {line.split()[0] for line in school.git("ls-tree", "-r", school.lines[3]["commit"])}
    assert modes <= {"100644", "100755"}
    assert school.text("checkout/ADAPTER.md").splitlines()[-6:] == [f"rule {number}" for number in range(1, 7)]


def test_what_the_template_fixes_is_put_back_and_what_no_rule_is_about_is_dropped(school: School) -> None:
    found = trained(
        school,
        "(a / 'README.md').write_text('mine'); (a / 'notes.txt').write_text('mine')",
        "(a / 'adapter.yaml').write_text('exports: {}')",
        "(a / 'adapter.yaml').unlink(); (a / 'EVOLVER.md').unlink()",
        "(a / 'adapter.md').write_text('another by case'); (a / 'readme.MD').write_text('')",
        "(a / 'ADAPTER.md').write_bytes(bytes(range(256)))",
    )
    assert [each["outcome"] for each in found] == ["repaired"] * 5
    done = [{repair["path"]: repair["done"] for repair in each["repairs"]} for each in found]
    assert done[0] == {"README.md": "restored", "notes.txt": "dropped"}
    assert done[1] == {"adapter.yaml": "restored"}
    assert done[2] == {"adapter.yaml": "restored", "EVOLVER.md": "restored"}
    assert done[3] == {"adapter.md": "dropped", "readme.MD": "dropped"}
    assert done[4] == {"ADAPTER.md": "taken back"}
    assert all(each["after_repair"]["passed"] for each in found)
    assert versions(school) == [OWN] * 6
    assert school.text("checkout/ADAPTER.md").splitlines()[-5:] == [f"rule {number}" for number in (1, 2, 3, 4, 6)]


def test_more_than_a_copy_may_take_is_taken_back_whole_and_told(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = budget.Budget(entries=100, bytes=1 << 20, apparent_bytes=1 << 21, depth=8)
    monkeypatch.setattr(handover, "MOST_ADAPTER", small)
    found = trained(
        school,
        "open(a / 'large', 'wb').write(b'x' * (1 << 21))",
        "os.truncate(os.open(a / 'sparse', os.O_CREAT | os.O_WRONLY), 10 << 30)",
        "for n in range(101): open(a / str(n), 'w').close()",
        "os.makedirs(a / '/'.join('d' * 12))",
    )
    assert [each["outcome"] for each in found] == ["taken back"] * 4
    words = [
        "files longer than 2 MiB",
        "files longer than 2 MiB",
        "more than 100 entries",
        "directories more than 8 deep",
    ]
    for each, said in zip(found, words, strict=True):
        ((reason, count),) = each["not_copied"].items()
        assert (reason.startswith("adapter: " + said), count) == (True, 1), reason
        assert each["checks"][0]["problems"] == [{"path": ".", "reason": reason.removeprefix("adapter: ")}]
        assert each["passed"] is False
    assert [line["changed"] for line in school.lines] == [False] * 4 + [True]
    assert versions(school) == [OWN] * 5, "nothing that a learner had was taken for deleted"


def test_the_bounds_of_an_adapters_copy_are_far_below_ten_gigabytes_and_a_million_files() -> None:
    assert handover.MOST_ADAPTER.bytes < 1 << 30
    assert handover.MOST_ADAPTER.apparent_bytes <= 1 << 30
    assert handover.MOST_ADAPTER.entries < 100_000


def test_what_the_rest_of_its_desk_lost_in_the_copy_is_gone_for_the_next_call_too(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "DEFAULT", budget.Budget(entries=10))
    school.learns("""
    def step(self, ctx):
        state = ctx.workspace.state
        called(" ".join(sorted(os.listdir(state))) + "|" + " ".join(sorted(os.listdir(ctx.workspace.output))))
        os.mkfifo(state / f"fifo{ctx.progress.step}")
        (state / f"kept{ctx.progress.step}").touch()
        if ctx.progress.step == 2:
            for number in range(20): (ctx.workspace.output / str(number)).touch()
        else:
            (ctx.workspace.output / "note").touch()
        return StepResult()
""")
    school.train("data.step_size=1")
    seen = [call for call in school.calls if "|" in call]
    assert seen == ["|", "kept1|note", "kept1 kept2|", "kept1 kept2 kept3|note"]
    second = school.feedback(2)["not_copied"]
    assert second == {"state: FIFO": 1, "output: more than 10 entries (budget: entries)": 1}
    assert school.feedback(2)["outcome"] == "kept"


KEY = "sk-0123456789-of-the-learner"
LEAKS = """
    def step(self, ctx):
        print("out", KEY)
        for part in (ctx.workspace.adapter, ctx.workspace.state, ctx.workspace.output):
            (part / f"name-{KEY}").write_text(KEY)
            (part / "other").write_text(KEY)
        add(ctx, f"rule {KEY}")
        return StepResult(summary=KEY, rationale=KEY, session=[KEY], extra={KEY: 1})
"""


@pytest.fixture
def key(school: School, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("MODEL_API_KEY", KEY)
    return KEY


def test_no_key_is_in_a_file_a_name_or_the_tree_at_any_moment(
    school: School, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.learns(LEAKS.replace("{KEY}", key).replace("KEY", repr(key)))
    seen: list[str] = []
    scrubbed = scrub.tree

    def looked(redactor: Any, root: str, **more: Any) -> None:
        seen.extend(held(school, key))
        scrubbed(redactor, root, **more)

    monkeypatch.setattr(scrub, "tree", looked)
    school.train()
    assert (seen, held(school, key)) == ([], [])
    assert school.lines[0]["learner"]["error"] == ""
    assert "<MODEL_API_KEY>" in school.lines[0]["learner"]["summary"]
    assert school.lines[0]["learner"]["summary"] == school.read("step_0001/learner/answer.json")["result"]["summary"]
    assert school.text("checkout/ADAPTER.md").splitlines()[-1] == "rule <MODEL_API_KEY>"
    objects = school.git("cat-file", "--batch-all-objects", "--batch-check")
    for line in objects:
        assert key not in "\n".join(school.git("cat-file", "-p", line.split()[0]))
    told = school.read("step_0001/learner/answer.json")["scrubbed"]["scrubbed"]
    assert told["ADAPTER.md"] == {"MODEL_API_KEY": 1}


def held(school: School, key: str) -> list[str]:
    """The files and names of the runs and trees in which a key stands."""
    everything = (school.root / "runs").rglob("*")
    return [str(one) for one in everything if key in one.name or (one.is_file() and key.encode() in one.read_bytes())]


def test_what_a_learner_says_can_be_kept_and_read_again_however_long_the_name_of_its_key_is(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_VERY_LONG_NAME_OF_A_VARIABLE_KEY", "0123456789abcdef")
    school.learns("""
    def step(self, ctx):
        if ctx.progress.step == 1:
            return StepResult(summary="0123456789abcdef" * (256 * 1024 // 16))
        return StepResult(summary="fine")
""")
    said = school.train()
    assert len(school.lines[0]["learner"]["summary"]) == 256 * 1024
    assert said["steps"] == 2


def test_an_answer_in_which_a_number_was_a_key_is_a_failure_and_no_end_of_the_run(
    school: School, monkeypatch: pytest.MonkeyPatch
) -> None:
    school.learns("\n    def step(self, ctx):\n        return StepResult(usage={'tokens': 471147114711471})\n")
    monkeypatch.setenv("SHORT_TOKEN", "471147114711471")
    school.train("data.step_size=4", "sandbox.evolver.env=[SHORT_TOKEN]")
    assert school.lines[0]["learner"]["status"] == "failed"
    assert "makes no sense without the keys" in school.lines[0]["learner"]["error"]
