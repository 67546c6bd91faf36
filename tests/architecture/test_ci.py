"""The workflows of docs/ci.md say nothing that a CI system or this tree does not know."""

from __future__ import annotations

import itertools
import re
import shlex
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import typer.main
import yaml

from hermit.cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "array", "items": TEXT, "minItems": 1}
NAMED_TEXTS = {"type": "object", "additionalProperties": TEXT}


def closed(needed: dict[str, Any], also: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object with these keys and no others."""
    properties = needed | (also or {})
    return {"type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}


# The fields that the workflows use, as the manuals of the two systems have them.
STEP = {
    "oneOf": [
        closed({"run": TEXT}, {"name": TEXT, "env": NAMED_TEXTS, "if": TEXT}),
        closed(
            {"uses": {"type": "string", "pattern": r"^[\w-]+/[\w-]+@[0-9a-f]{40}$"}},
            {"name": TEXT, "with": NAMED_TEXTS, "if": TEXT},
        ),
    ]
}
JOB = closed(
    {"runs-on": TEXT, "timeout-minutes": {"pattern": "^[0-9]+$"}, "steps": {"type": "array", "items": STEP}},
)
GITHUB = closed(
    {
        "name": TEXT,
        "on": closed({}, {"pull_request": {}, "push": {}}),
        "permissions": closed({"contents": {"const": "read"}}),
        "jobs": {"type": "object", "additionalProperties": JOB, "minProperties": 1},
    }
)
# GitLab takes two files at most for a key.
CACHE = closed({"key": closed({"files": {**TEXTS, "maxItems": 2}}), "paths": TEXTS})
ARTIFACTS = closed({"when": {"const": "always"}, "paths": TEXTS, "reports": closed({"junit": TEXT})})
GITLAB = {
    "type": "object",
    "additionalProperties": closed(
        {"script": TEXTS, "cache": CACHE, "artifacts": ARTIFACTS},
        {"tags": TEXTS, "timeout": TEXT, "variables": NAMED_TEXTS},
    ),
}
SCHEMAS = {".github/workflows/eval.yaml": GITHUB, ".gitlab-ci.yml": GITLAB}
# Programs of the runner's own that a step may call.
PROGRAMS = {
    "sudo apt-get install --yes bubblewrap",
    "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0",
}


def blocks(root: Path) -> dict[str, str]:
    """The text of each workflow, by the name that its first line gives it."""
    text = (root / "docs" / "ci.md").read_text(encoding="utf-8")
    found = re.findall(r"```yaml\n# (\S+)\n(.*?)```", text, re.DOTALL)
    assert len(found) == text.count("```yaml")
    return dict(found)


def parsed(text: str) -> Any:
    """The document, every scalar as text."""
    return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - the safest of all: it makes nothing but text


def lines(document: Any) -> Iterator[str]:
    """Every command line that a workflow runs."""
    for job in document.get("jobs", document).values():
        for step in [*job.get("steps", ()), *job.get("script", ())]:
            text = step if isinstance(step, str) else step.get("run", "")
            yield from filter(None, (line.strip() for line in text.splitlines()))


def wrong(root: Path, line: str) -> str:
    """Why a command line does not exist here; empty where it does."""
    if line in PROGRAMS:
        return ""
    words = shlex.split(line)
    if words[0] == "make":
        targets = re.findall(r"^([a-z]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        return ", ".join(f"make has no {word}" for word in words[1:] if word not in targets)
    if words[0] != ".venv/bin/hermit":
        return f"{words[0]} is no command of this tree"
    commands: dict[str, Any] = vars(typer.main.get_command(app))["commands"]
    if words[1] not in commands:
        return f"hermit has no {words[1]}"
    known = {spelling for parameter in commands[words[1]].params for spelling in parameter.opts}
    options = ", ".join(f"hermit {words[1]} has no {word}" for word in words if word[:2] == "--" and word not in known)
    files = [word for flag, word in itertools.pairwise(words) if flag == "--config"]
    return options or ", ".join(f"there is no {file}" for file in files if not (root / file).is_file())


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_workflow_has_the_fields_that_its_system_knows(root: Path, name: str) -> None:
    jsonschema.validate(parsed(blocks(root)[name]), SCHEMAS[name])


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_command_of_a_workflow_exists_with_its_options(root: Path, name: str) -> None:
    found = list(lines(parsed(blocks(root)[name])))
    assert {line.split()[0] for line in found} >= {"make", ".venv/bin/hermit"}
    assert [wrong(root, line) for line in found if wrong(root, line)] == []


def test_a_workflow_names_no_file_of_the_tree_that_is_not_there(root: Path) -> None:
    github, gitlab = (parsed(blocks(root)[name]) for name in SCHEMAS)
    (key,) = (
        step["with"]["key"] for step in github["jobs"]["eval"]["steps"] if "cache" in step.get("uses", "").split("@")[0]
    )
    files = re.findall(r"'([^']+)'", key)
    assert files == gitlab["eval"]["cache"]["key"]["files"]
    assert [file for file in files if not (root / file).is_file()] == []
    assert set(SCHEMAS) == set(blocks(root))


def test_every_action_is_pinned_and_says_its_version(root: Path) -> None:
    uses = re.findall(r"uses: (.*)", blocks(root)[".github/workflows/eval.yaml"])
    assert uses
    assert [line for line in uses if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


def test_results_are_kept_whatever_happened(root: Path) -> None:
    github, gitlab = (parsed(blocks(root)[name]) for name in SCHEMAS)
    (keeping,) = (step for step in github["jobs"]["eval"]["steps"] if "upload-artifact" in step.get("uses", ""))
    assert keeping["if"] == "always()"
    for kept in (keeping["with"]["path"].split(), gitlab["eval"]["artifacts"]["paths"]):
        assert [path.rstrip("/") for path in kept] == ["report.xml", "examples/humaneval/runs"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (".github/workflows/eval.yaml", "runs-on", "run-on"),
        (".github/workflows/eval.yaml", "actions/checkout@11bd", "actions/checkout@v4 # "),
        (".github/workflows/eval.yaml", "contents: read", "contents: write"),
        (".github/workflows/eval.yaml", "\n      - run: make image", "\n      - ran: make image"),
        (".gitlab-ci.yml", "script", "scripts"),
        (".gitlab-ci.yml", "when: always", "when: on_success"),
        (".gitlab-ci.yml", "junit:", "j_unit:"),
    ],
)
def test_planted_failure_a_field_that_the_system_does_not_know_is_seen(
    root: Path, name: str, old: str, new: str
) -> None:
    text = blocks(root)[name]
    assert old in text
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(parsed(text.replace(old, new)), SCHEMAS[name])


@pytest.mark.parametrize(
    "line",
    [
        "make surely_absent",
        ".venv/bin/hermit evaluate",
        ".venv/bin/hermit eval --config examples/humaneval/run.yaml --no-such",
        ".venv/bin/hermit eval --config absent.yaml",
        "sudo rm file",
    ],
)
def test_planted_failure_a_command_that_does_not_exist_is_seen(root: Path, line: str) -> None:
    assert wrong(root, line)
