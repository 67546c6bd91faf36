"""The page of a training run: whatever a learner, an agent or a judge wrote is text on it, and a torn run is shown."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from hermit.run.reading import page, training_table
from hermit.run.reading.training_page import TrainingPage

from .conftest import rich
from .test_page import HOSTILE, Read

if TYPE_CHECKING:
    from pathlib import Path


def whole(training: Any, **more: Any) -> bytes:
    return b"".join(TrainingPage(training, **more).pieces())


def test_the_page_shows_every_step_with_its_attempts(maker: Any, whole_training: Any) -> None:
    html = whole(maker.trained(whole_training)).decode()
    assert re.findall(r'<details class="step (\w+)" id="(\w+)">', html) == [
        ("kept", "s0"),
        ("kept", "s1"),
        ("repaired", "s2"),
        ("kept", "s3"),
        ("taken_back", "s4"),
        ("not_taken", "s5"),
        ("kept", "s6"),
        ("kept", "final"),
    ]
    assert [f'id="s{step}a{number}"' in html for step in range(1, 7) for number in (1, 2, 3)] == [True] * 18
    assert 'id="s0a1"' not in html
    assert html.count('<span class="added">') == 2 + 5 * 3  # the bootstrap's, and those of five changes
    assert "budget 20" in html


@pytest.mark.parametrize("said", HOSTILE)
def test_hostile_words_of_a_learner_are_text(maker: Any, said: str) -> None:
    plain = Read(whole(maker.trained(rich(maker, say="x", name="plain"))))
    html = whole(maker.trained(rich(maker, say=f"x{said}", name="plain2")))
    assert Read(html).structure == plain.structure
    for letter in ("\x00", "\x1b", "\r", "\u202e", "\u2066"):
        assert letter not in html.decode()


def test_planted_failure_words_of_a_learner_that_are_not_escaped_are_seen(
    maker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = page.environment

    def unescaped() -> Any:
        made = real()
        made.autoescape = False
        return made

    monkeypatch.setattr(page, "environment", unescaped)
    plain = Read(whole(maker.trained(rich(maker, say="x", name="plain"))))
    assert Read(whole(maker.trained(rich(maker, say="x<script>", name="plain2")))).structure != plain.structure


def test_nothing_of_the_page_asks_for_anything_or_runs(maker: Any, whole_training: Any) -> None:
    html = whole(maker.trained(whole_training))
    structure = Read(html).structure
    tags = {tag.lstrip("/") for tag, _ in structure}
    assert tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "video", "audio"} == set()
    attributes = {pair for _, attrs in structure if isinstance(attrs, list) for pair in attrs}
    ids = {value for name, value in attributes if name == "id"}
    assert {str(value).removeprefix("#") for name, value in attributes if name == "href"} <= ids
    assert not {
        name for name, _ in attributes if name.startswith("on") or name in ("src", "style", "srcdoc", "xlink:href")
    }
    assert re.search(rb"https?:|//[a-z]|url\(|@import", html) is None


def test_a_page_that_is_full_still_has_a_line_for_each_step(maker: Any, whole_training: Any) -> None:
    everything = whole(maker.trained(whole_training))
    html = whole(maker.trained(whole_training), most=everything.index(b'id="s3"'))
    assert html.count(b'<details class="step') == everything.count(b'<details class="step') == 8
    assert [b"see <code>%s</code>" % name in html for name in (b"step_0000", b"step_0006", b"final")] == [
        False,
        True,
        True,
    ]
    assert b"This page is full" not in everything


def test_attempts_that_cannot_be_read_are_said_and_the_rest_is_shown(maker: Any, whole_training: Any) -> None:
    whole_training.step(3).results.write_text("no row\nno row\n")
    html = whole(maker.trained(whole_training)).decode()
    assert "Its attempts cannot be shown: <bdi>this is no row of results" in html
    assert 'id="s4a1"' in html
    assert 'id="s3a1"' not in html


def test_a_run_that_has_not_ended_says_so_and_a_torn_line_is_named(maker: Any, step_line: Any, a_row: Any) -> None:
    paths = maker.training([step_line(1)])
    paths.steps.write_bytes(b"torn\n" + paths.steps.read_bytes())
    maker.step(paths.step(2), rows=[a_row("a")])
    html = whole(maker.trained(paths)).decode()
    assert "it has not ended" in html
    assert "line 1 of steps.jsonl is no step, and is left out" in html
    assert '<details class="step unfinished" id="s2">' in html
    assert 'id="s2a1"' in html


def test_the_page_lies_beside_the_steps_and_replaces_no_other_file(maker: Any, whole_training: Any) -> None:
    training = maker.trained(whole_training)
    target: Path = training.paths.page
    page.write(TrainingPage(training), target)
    assert target == whole_training.root / "report.html"
    assert target.read_bytes().startswith(page.HEAD)


def test_a_document_for_machines_says_what_the_page_says(maker: Any, whole_training: Any) -> None:
    said = training_table.document(maker.trained(whole_training))
    assert (said["run"], said["training"], said["ended"]) == ("trained", True, True)
    assert [step["outcome"] for step in said["steps"]][2:6] == ["repaired", "kept", "taken back", "not taken"]
    assert said["steps"][2]["found"] == [{"what": "2 formats", "path": "skills/x", "reason": "it is no text"}]
    assert said["steps"][1]["files"][0] == {"path": "ADAPTER.md", "how": "changed", "added": 2, "removed": 1}
    assert next((each["selector"], each["at"]) for each in said["evaluations"]) == ("final", [7, 7])
    assert said["cost"]["all"]["usd"] == pytest.approx(5.25)
    assert said["budget"] == {"usd": 20.0, "hours": 1.0}
