"""What somebody else made is looked at in one way: `hermit/untrusted.py`."""

from __future__ import annotations

import ast
from typing import Any

# The parts that hold, or get told of, what an agent, a judge or a learner made.
HANDLING = ("handoff", "run", "roles", "agent", "adapter", "evolver")
OPENING = {
    "os": {"open", "fdopen", "walk", "fwalk", "scandir", "listdir", "stat", "lstat", "readlink", "access", "truncate"},
    "os.path": {"exists", "lexists", "isfile", "isdir", "islink", "realpath", "getsize", "getmtime", "samefile"},
}
METHODS = {
    *("read_text", "read_bytes", "iterdir", "glob", "rglob", "is_file", "is_dir", "is_symlink", "exists"),
    *("stat", "lstat", "readlink", "resolve", "samefile", "walk", "hardlink_to"),
}
MODULES = ("shutil", "glob", "fnmatch", "tarfile", "zipfile")
# Who opens something itself all the same, what, and why that is nothing an agent can have made: a module, or a call in one.
OWN = {
    "adapter/checkout.py:_replace os.open": "a new file of a run's checkout, made and never found",
    "adapter/checkout.py:_replace open": "its descriptor",
    "adapter/files.py:write os.open": "a new file of a copy, made and never found",
    "adapter/files.py:write open": "its descriptor",
    "adapter/git.py:writing os.open": "a file of the tree's own repository, which no sandbox shows",
    "adapter/git.py:_clear glob": "the same: locks that a killed process left",
    "adapter/git.py:_clear lstat": "the same",
    "adapter/probe.py:undefined open": "inside, in a strict sandbox: the adapter's own code",
    "adapter/templates/skills-and-tools/check.py": "inside, in a strict sandbox: a template's own check",
    "adapter/template.py:named os.path.realpath": "a template by the name a person gave it, which may be a link",
    "adapter/tree.py:is_there os.path.lexists": "the directory of a tree, which the config names",
    "adapter/tree.py:_held os.open": "the directory that holds trees, which no sandbox shows",
    "agent/solution.py": "inside, as an agent: the solutions that the config names and its own empty work directory",
    "agent/source.py:compiled open": "the agent's or the judge's file, which the config names",
    "agent/worker.py:take open": "the descriptor of the job, inside",
    "evolver/acting.py:_text open": "inside, in the learner's own process: a prompt of its method",
    "evolver/call.py:_standard_input open": "inside: its own standard input",
    "evolver/loader.py": "the method's directory, which the config names, before anything runs",
    "handoff/archive.py:pack os.fdopen": "the descriptor of the job, inside",
    "handoff/freeze.py:freeze os.path.realpath": "the adapter by the name a person gave it, which may be a link",
    "handoff/freeze.py:_add_file os.fdopen": "a descriptor that was opened the one way",
    "handoff/sanitize.py:file os.open": "a new file of the copy, made and never found",
    "handoff/sanitize.py:_go os.open": "a directory of the copy, which was just made",
    "handoff/sanitize.py:leave os.open": "the same, one up",
    "handoff/scrub.py:_rewrite os.open": "a new file, made and never found",
    "handoff/scrub.py:_rewrite open": "its descriptor",
    "handoff/scrub.py:_scrub_entry open": "a descriptor that was opened the one way",
    "roles/secrets.py:refuse_hard_links os.path.realpath": "what the config names, before anything runs",
    "handoff/scrub.py:_holds_key open": "a descriptor that was opened the one way",
    "run/endpoint.py:_with_logs os.listdir": "the directory of the copies, which a learner only reads",
    "run/learner.py:_without_keys os.path.realpath": "what the config names, which may be a link",
    "run/adapter_code.py:call_adapter os.path.realpath": "inside, in the agent's own process: a file of its adapter",
    "run/attack/hints.py:_below is_dir": "the judge's tests, which the config names",
    "run/attack/hints.py:_below os.walk": "the same",
    "run/attack/linger.py": "inside, in the place of the agent: what a cheat leaves when its call has ended",
    "run/attack/plants.py": "inside, in the place of the agent: whether a cheat may write to a secret",
    "run/attack/scene.py": "inside, in the place of the agent: what a cheat leaves and reads",
    "run/attack/sights.py": "inside, in the place of the agent: where a cheat looks",
    "run/bench.py:report open": "the run's own file, which no sandbox shows",
    "run/bench.py:scrub_shared os.path.realpath": "what the config names, which may be a link",
    "run/bench.py:scratch_directory glob": "the temporary directory, for scratch of runs that were killed",
    "run/bench.py:_locked_directory os.open": "a directory that was just made for this run alone",
    "run/bench.py:_locked_directory exists": "the same",
    "run/capacity.py:_lines read_text": "files of the kernel",
    "run/bench.py:_remove_abandoned os.open": "scratch of a run that was killed: its own directory, never what is in it",
    "run/changes.py": "shared state: walked by descriptor, no link followed and no file opened",
    "run/claim.py:held os.open": "the run's own directory, which no sandbox shows",
    "run/claim.py:empty iterdir": "the run's own directory, which no sandbox shows",
    "run/claim.py:_create os.access": "the same",
    "run/claim.py:empty is_dir": "the same",
    "run/claim.py:empty is_symlink": "the same",
    "run/claim.py:match exists": "the run's own file, which no sandbox shows",
    "run/claim.py:match read_bytes": "the same",
    "run/evaluate.py:_earlier_wall_s read_bytes": "the same",
    "run/junit.py": "the report that a person named on the command line",
    "run/handover.py": "copies of the run's own, and parts of a desk that a learner may only read",
    "run/steps.py": "the run's own file, which no sandbox shows",
    "run/studio.py:_log open": "the run's own file, which no sandbox shows",
    "run/studio.py:call glob": "the same",
    "run/studio.py:prepare is_dir": "the same",
    "run/train.py": "the run's own files, which no sandbox shows",
    "run/train_paths.py": "the same",
    "run/train_check.py": "the same",
    "run/material.py": "the run's own files, which a learner may read and cannot write",
    "run/paths.py:written_atomically os.fdopen": "a new file of the run's own directory",
    "run/learner_plan.py:_refuse_shown is_file": "what the config names, before anything runs",
    "run/paths.py": "the run's own files and directories, which no sandbox shows",
    "run/place.py:inside_image os.path.exists": "a file of the image",
    "run/place.py:in_image read_text": "the run's config",
    "run/plan.py:_digest is_dir": "what the config names, before anything runs",
    "run/plan.py:_digest open": "the same",
    "run/reading/load.py:attempts os.fdopen": "a descriptor that was opened the one way",
    "run/reading/load.py:top os.path.realpath": "the run by the name a person gave it, which may be a link",
    "run/reading/page.py:write exists": "the page that a person named on the command line",
    "run/reading/page.py:_is_page is_file": "the same",
    "run/reading/page.py:_is_page open": "the same",
    "run/refusals.py": "what the config names, before anything runs; and the kernel's table of sockets",
    "run/report.py:resume read_bytes": "the run's own results, which no sandbox shows",
    "run/report.py:kept_rows open": "the same",
    "run/results.py": "the run's own results, which no sandbox shows",
    "run/tools.py": "a declared tool and what lies beside it, which the config or a template names",
    "run/trial.py:keep_logs os.listdir": "a directory that was made for this call; nothing in it is opened",
    "run/versions.py:chosen is_dir": "the adapter by the name a person gave it",
    "run/versions.py:tree_directory os.path.realpath": "the directory of a tree, which the config names and may be a link",
    "run/versions.py:_directory is_dir": "the same",
    "run/versions.py:_directory resolve": "the same",
}


def openings(module: Any) -> set[str]:
    """Every call of a module that opens, looks at or lists something by its path, with the function it stands in."""
    return set(_openings(module.tree, module.place, "-"))


def _openings(node: ast.AST, place: str, function: str) -> list[str]:
    found = []
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        call = _opening(child.func) if isinstance(child, ast.Call) else ""
        if call:
            found.append(f"{place}:{function} {call}")
        found += _openings(child, place, inside)
    return found


def _opening(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return "open" if function.id == "open" else ""
    if not isinstance(function, ast.Attribute):
        return ""
    owner = ast.unparse(function.value)
    if owner in OPENING:
        return f"{owner}.{function.attr}" if function.attr in OPENING[owner] else ""
    if owner in ("untrusted", "os.path", "re", "posixpath"):
        return ""
    return function.attr if function.attr in {*METHODS, "open"} else ""


def handling(modules: list[Any]) -> list[Any]:
    """Every module of these parts; the doctor is told of the machine alone, before anybody has made anything."""
    own = [module for module in modules if module.place.split("/")[0] in HANDLING]
    return [module for module in own if not module.place.startswith("run/doctor/")]


def test_what_an_agent_made_is_opened_in_one_way(modules: list[Any]) -> None:
    found = {opening for module in handling(modules) for opening in openings(module)}
    found = {opening for opening in found if opening.split(":")[0] not in OWN}
    assert found - set(OWN) == set(), "go through hermit/untrusted.py, or say here why it is nobody else's"


def test_what_is_opened_otherwise_is_still_there_and_has_a_reason(modules: list[Any]) -> None:
    found = {opening for module in handling(modules) for opening in openings(module)}
    assert set(OWN) - found - {opening.split(":")[0] for opening in found} == set()
    assert all(reason for reason in OWN.values())


def test_nothing_that_copies_or_deletes_by_path_is_imported_there(modules: list[Any]) -> None:
    found = [
        f"{module.place}:{line} imports {name}"
        for module in handling(modules)
        for name, line, _ in module.imports()
        if name.split(".")[0] in MODULES
    ]
    assert found == []


def test_an_opening_would_be_seen() -> None:
    calls = [
        "open(p)",
        "os.open(p, 0)",
        "os.walk(p)",
        "Path(p).read_text()",
        "p.stat()",
        "os.path.isdir(p)",
        "p.open()",
    ]
    for call in calls:
        assert _openings(ast.parse(f"def f(p):\n    {call}\n"), "x.py", "-"), call
    for call in ("untrusted.status(p, at=d)", "os.close(p)", "p.read()"):
        assert not _openings(ast.parse(f"def f(p):\n    {call}\n"), "x.py", "-"), call


def test_the_one_way_follows_no_link_and_waits_for_nothing(modules: list[Any]) -> None:
    (module,) = [module for module in modules if module.place == "untrusted.py"]
    opens = [ast.unparse(node) for node in ast.walk(module.tree) if isinstance(node, ast.Call)]
    opens = [text for text in opens if text.startswith(("os.open(", "open("))]
    assert opens
    assert [text for text in opens if "READ" not in text] == []
