"""What a sandbox refuses to be."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.domain.bind import Bind
from hermit.domain.limits import Limits
from hermit.domain.network import Forward, Network
from hermit.domain.pathmap import Layout
from hermit.domain.sandbox import Enforce, Sandbox

PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


def test_a_sandbox_shows_nothing_passes_nothing_and_is_required_unless_it_says_otherwise():
    closed = Sandbox()
    assert (closed.mounts, closed.env, closed.env_allow) == ((), (), ())
    assert (closed.network, closed.enforce, closed.framework) == (Network.ISOLATED, Enforce.REQUIRED, False)


def test_a_sandbox_does_not_change_once_it_is_made():
    with pytest.raises(FrozenInstanceError):
        Sandbox().cwd = "/"


@pytest.mark.parametrize("role", ["", "Task", "a b", "1st", "a" * 33, "../x", "task\n"])
def test_a_role_is_a_short_word_because_it_names_a_record(role):
    with pytest.raises(ValueError, match="a role is"):
        Sandbox(role=role)


@pytest.mark.parametrize("name", ["read", "write", "probes"])
def test_a_relative_path_is_refused_with_the_field_it_stands_in(name):
    with pytest.raises(ValueError, match=f"'{name}' must be an absolute path"):
        Sandbox(**{name: ("a/b",)})


def test_a_relative_working_directory_is_refused():
    with pytest.raises(ValueError, match="working directory"):
        Sandbox(cwd="work")


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "A\n", "Ä"])
def test_a_variable_has_the_name_of_one(name):
    with pytest.raises(ValueError, match="not the name of a variable"):
        Sandbox(env=((name, "x"),))


def test_a_value_with_a_nul_byte_is_refused_and_not_shown():
    with pytest.raises(ValueError, match="NUL") as refused:
        Sandbox(env=(("KEY", "secret\0"),))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("pattern", ["*", "**", "_*", "", "A?", "[A]", "A B"])
def test_a_pattern_that_lets_everything_in_is_refused(pattern):
    with pytest.raises(ValueError, match="env_allow"):
        Sandbox(env_allow=(pattern,))


def test_a_host_variable_passes_only_by_name_or_pattern():
    sandbox = Sandbox(env_allow=("ONE", "MWM_*"))
    passing = {name: sandbox.passes(name) for name in ("ONE", "ONES", "MWM_", "MWM_A", "mwm_a", "X_MWM_A")}
    assert [name for name, passes in passing.items() if passes] == ["ONE", "MWM_", "MWM_A"]


def test_no_value_of_a_variable_stands_in_the_text_of_a_sandbox():
    assert "secret" not in repr(Sandbox(env=(("KEY", "secret"),)))


def test_a_path_that_is_both_read_only_and_writable_is_refused():
    with pytest.raises(ValueError, match="shown twice"):
        Sandbox(read=("/a",), write=("/a/",))


def test_two_sources_for_one_target_are_refused():
    with pytest.raises(ValueError, match="shown twice"):
        Sandbox(binds=(Bind("/a", "/t"), Bind("/b", "/t")))


@pytest.mark.parametrize("below", [{"read": ("/w/a",)}, {"write": ("/w", "/w/a")}, {"binds": (Bind("/x", "/w/a/b"),)}])
def test_nothing_is_shown_below_a_directory_that_the_command_can_write(below):
    with pytest.raises(ValueError, match="writable inside"):
        Sandbox(**{"write": ("/w",), **below})


def test_a_writable_path_may_lie_below_one_that_is_read_only():
    assert [bind.target for bind in Sandbox(read=("/a",), write=("/a/w",)).mounts] == ["/a", "/a/w"]


@given(st.sets(PATHS), st.sets(PATHS))
def test_what_is_accepted_shows_every_granted_path_once_with_parents_first(read, write):
    try:
        mounts = Sandbox(read=tuple(read), write=tuple(write)).mounts
    except ValueError:
        return
    targets = [bind.target for bind in mounts]
    assert sorted(targets) == sorted(read | write)
    for at, bind in enumerate(mounts):
        assert not any(bind.target.startswith(later + "/") for later in targets[at:])
        assert bind.writable is (bind.target in write)


def test_the_fields_are_those_the_documentation_names():
    assert [field.name for field in fields(Sandbox)] == [
        "role", "read", "write", "binds", "cwd", "network", "allowed_hosts", "forwards", "env", "env_allow", "limits",
        "probes", "framework", "packages", "hide", "layout", "enforce",
    ]  # fmt: skip


def test_a_view_shows_other_things_and_keeps_the_rest():
    limits = Limits(wall_s=3)
    whole = Sandbox(
        role="evolver", read=("/a",), write=("/b",), cwd="/b", network=Network.OPEN, env=(("A", "1"),), env_allow=("B_*",),
        limits=limits, probes=("/secret",), framework=True, hide=("scorer",), enforce=Enforce.BEST_EFFORT,
    )  # fmt: skip
    view = whole.view([Bind("/run/adapter", "/w", writable=True)], Layout("/run/adapter", "/w"))
    assert (view.read, view.write, view.cwd) == ((), (), "/w")
    assert view.mounts == (Bind("/run/adapter", "/w", writable=True),)
    kept = ("role", "network", "env", "env_allow", "limits", "probes", "framework", "packages", "hide", "enforce")
    assert [getattr(view, name) for name in kept] == [getattr(whole, name) for name in kept]


def test_what_a_learner_names_leads_back_to_the_host_and_nowhere_else():
    sandbox = Sandbox(binds=(Bind("/run/adapter", "/w/adapter"),), layout=Layout("/run", "/w"))
    assert sandbox.relative("/run/adapter/skills") == "adapter/skills"
    assert sandbox.outside("adapter/skills") == "/run/adapter/skills"
    assert sandbox.outside("/w/adapter/skills") == "/run/adapter/skills"
    assert sandbox.outside("../secret") is None
    assert sandbox.outside("/etc/passwd") is None


def test_a_name_that_no_module_has_is_not_hidden():
    with pytest.raises(ValueError, match="hide takes names of modules"):
        Sandbox(hide=("../scorer",))


@pytest.mark.parametrize("port", [0, 80, 1023, 65536, -1, True, "8080"])
def test_a_port_that_nobody_inside_could_listen_on_is_refused(port):
    with pytest.raises(ValueError, match="a port inside is a number from 1024 to 65535"):
        Forward(port)


def test_one_port_leads_to_one_service():
    with pytest.raises(ValueError, match="leads to one service"):
        Sandbox(forwards=(Forward(8080), Forward(8080, "/run/a.sock")))


@pytest.mark.parametrize("more", [{"allowed_hosts": ("api.example.com",)}, {"forwards": (Forward(8080),)}])
def test_an_open_network_has_no_list_that_it_would_not_keep_to(more):
    with pytest.raises(ValueError, match="an open network has no list"):
        Sandbox(network=Network.OPEN, **more)
