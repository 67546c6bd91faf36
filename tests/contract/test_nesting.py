"""A sandbox inside a task sandbox, the same for root, for an ordinary user and in the image: it only narrows."""

from __future__ import annotations

import os

import pytest

SET_INSIDE = {"HOME", "LANG", "PATH", "PWD", "TMPDIR", "USER"}  # a shell adds its directory
ROOT_LENDS = "proc: lent read-only by the sandbox around this one"


@pytest.fixture
def as_root(stand):
    """Whether the kernel takes the user of both sandboxes for root."""
    return stand == "here" and os.geteuid() == 0


def test_a_command_runs_in_a_strict_sandbox_inside_a_task_sandbox(nested):
    strict = nested["strict"]
    assert (strict["code"], strict["said"][0], strict["confined"]) == (7, "1000", True)


def test_every_check_passes_inside_and_none_is_left_out(nested, as_root):
    checks = nested["strict"]["checks"]
    assert all(checks.values())
    assert len(checks) >= 40
    assert "own processes" in checks
    own = {"own /proc", "own namespaces: cgroup"}
    lent = {"lent /proc", "processes around it out of reach", "no control group namespace"}
    assert (checks.keys() >= lent, checks.keys().isdisjoint(own)) == (as_root, as_root)
    assert (checks.keys() >= own, checks.keys().isdisjoint(lent)) == (not as_root, not as_root)


def test_no_variable_of_the_outer_sandbox_passes_in(nested):
    assert set(nested["strict"]["said"][1].split()) == SET_INSIDE


def test_the_record_says_what_the_outer_sandbox_lends(nested, as_root):
    warnings = nested["strict"]["warnings"]
    if as_root:
        assert len(warnings) == 2
        assert warnings[0].startswith(ROOT_LENDS)
        assert warnings[1].startswith("cgroup: ")
    else:
        assert warnings == []


def test_the_record_names_what_holds_a_bound_where_no_control_group_can_be_made(nested, as_root):
    held_by = nested["strict"]["held by"]
    assert held_by["memory_mb"].startswith("watchdog")
    assert held_by["pids"].startswith("watchdog" if as_root else "rlimit")


def test_the_end_of_an_inner_sandbox_is_proven_too(nested):
    assert nested["strict"]["empty"] is True


def test_the_front_door_passes_input_output_and_exit_code_through(nested):
    assert nested["front_door"]["through"] == [7, "in", ""]


def test_a_path_that_the_outer_sandbox_shows_can_be_read(nested):
    assert nested["front_door"]["a path"] == [0, "data"]


@pytest.mark.parametrize(
    ("path", "cause", "words"),
    [
        ("not shown outside", "missing source", "does not exist here"),
        ("read-only outside", "read-only source", "is read-only here, and cannot be shown writable"),
    ],
)
def test_what_the_outer_sandbox_does_not_grant_is_one_clear_error(nested, path, cause, words):
    kind, given, said = nested["refusals"][path]
    assert (kind, given) == ("SandboxError", cause)
    assert words in said
    code, output, complaint = nested["front_door"][path]
    assert (code, output) == (125, "")
    assert words in complaint
    assert len(complaint.splitlines()) == 2  # what happened, and what to do


def test_what_is_writable_outside_can_be_writable_inside(nested):
    assert nested["refusals"]["writable outside"] == ["started", "0"]


def test_what_a_process_was_told_to_hide_is_hidden_by_the_front_door(nested):
    plain, covered, *broken = nested["hidden_by_a_variable"]
    assert plain == [0, "ANSWER = 42\n"]
    assert covered == [0, ""]
    assert broken == [125, True]


def test_the_interpreter_inside_is_the_one_outside_and_holds_hermit_only_where_it_is_shown(nested):
    assert nested["interpreter"] == {
        "same version": [True, True],
        "hermit": [False, True],
        "sites exist": True,
        "package": True,
    }


def test_what_a_command_leaves_behind_ends_with_it(nested):
    assert nested["leftovers"] == [0, "left\n", True, True]


def test_a_timeout_asks_first(nested):
    assert nested["timeout"] == [True, "up\ngoodbye\n", 3]


def test_the_number_of_processes_is_bounded(nested, as_root):
    found = nested["processes"]
    assert found["all of them"] is False
    assert found["limit"] == ("pids" if as_root else "")  # the kernel's own bound refuses, and tells nobody


def test_the_memory_of_the_whole_is_bounded(nested):
    assert nested["memory"] == ["memory", False]


def test_what_the_outer_sandbox_hides_shuts_and_bounds_stays_so(nested):
    narrowed = nested["narrowed"]
    assert narrowed["hidden"] == ["", "", ""]
    assert narrowed["written"] is False
    assert narrowed["network"] == "['lo']\n"
    assert narrowed["processes"] is False


def test_a_higher_bound_on_memory_inside_does_not_lift_the_outer_one(nested):
    assert nested["filled"] == ["memory", False]


def test_a_third_level_starts_or_says_why_it_cannot(nested, as_root):
    if as_root:
        kind, what, cure = nested["third_level"]
        assert kind == "PlaceError"
        assert "lends it a /proc that cannot be written" in what
        assert "ordinary user" in cure
    else:
        assert nested["third_level"] == ["started", "1000\n", "True"]


def test_an_agent_that_its_worker_has_called_can_start_a_sandbox(nested):
    assert nested["agent"] == "from the tool\n"
