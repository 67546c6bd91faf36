"""The argument file of each role, word for word, and what holds for every sandbox."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermit.bwrap.argv import (
    MOST_ARGUMENTS,
    Empty,
    File,
    Filter,
    Kernel,
    Link,
    Scratch,
    Seal,
    Show,
    argument_file,
    operations,
    options,
    takes_descriptors,
    told,
)
from hermit.config.schema import RunConfig
from hermit.domain.bind import Bind, contains
from hermit.domain.limits import Limits
from hermit.domain.network import Network
from hermit.domain.sandbox import Sandbox
from hermit.roles import evolver as evolver_role
from hermit.roles.secrets import Secret

DATA = Path(__file__).parent.parent.parent / "data"
SYSTEM = (
    Show(Bind("/usr", "/usr")),
    Link("usr/bin", "/bin"),
    Show(Bind("/etc/ld.so.cache", "/etc/ld.so.cache")),
    File("/etc/passwd", b"hermit"),
)
TEXTS = {"/etc/passwd": 8}
PYTHON = (Show(Bind("/opt/env", "/opt/env")), Show(Bind("/opt/base", "/opt/base")), Empty("/opt/base/lib/other"))
TASK = Sandbox(
    role="task",
    read=("/data/readme", "/run-1/adapter"),
    write=("/run-1/work",),
    cwd="/run-1/work",
    limits=Limits(tmp_mb=64),
    probes=("/data/tasks.jsonl",),
    framework=True,
)
SHARED = Sandbox(
    role="judge",
    read=("/data/readme", "/judge.py", "/run-1/adapter", "/tests"),
    write=("/run-1/work",),
    limits=Limits(tmp_mb=64),
    framework=True,
)
SEPARATE = Sandbox(
    role="judge",
    read=("/data/readme", "/judge.py", "/tests"),
    binds=(Bind("/run-1/collected", "/run-1/work", writable=True),),
    limits=Limits(tmp_mb=64),
    framework=True,
)
TOOL = Sandbox(
    role="tool",
    read=("/templates/base", "/templates/base/tools"),
    binds=(Bind("/run-1/working-copy", "/run-1/adapter", writable=True),),
    limits=Limits(tmp_mb=64),
)
CHECK = Sandbox(
    role="check", read=("/templates/base",), binds=(Bind("/run-1/adapter", "/adapter"),), limits=Limits(tmp_mb=64)
)
# As the role makes it: its workspace lies on a desk in the run's exchange directory, for what lies in a run's own is a secret.
EVOLVER = replace(
    evolver_role.sandbox(
        RunConfig.model_validate(
            {
                "data": {"tasks": "/data/tasks.jsonl"},
                "agent": {"name": "agent.py:run"},
                "judge": {"path": "/judge.py"},
                "sandbox": {"evolver": {"allowed_hosts": ["docs.example.org"]}},
            }
        ),
        evolver_role.Places(
            base="/exchange/desk",
            parts=tuple((name, f"/exchange/desk/{name}") for name in (*evolver_role.WRITABLE, *evolver_role.READABLE)),
            validation="/exchange/desk/validation",
            environment=(("simulator", "/data/simulator"),),
        ),
        secrets=(Secret("/data/tasks.jsonl", "data.tasks"),),
        socket="/exchange/tools.sock",
    ),
    limits=Limits(tmp_mb=64),
)
LLM = Sandbox(
    role="llm",
    binds=(Bind("/run-1/llm/3", "/w", writable=True), Bind("/run-1/llm/3-home", "/home/user", writable=True)),
    cwd="/w",
    allowed_hosts=("chatgpt.com",),
    limits=Limits(tmp_mb=64),
)
ROLES = {
    "argv-task": TASK,
    "argv-judge-shared": SHARED,
    "argv-judge-separate": SEPARATE,
    "argv-tool": TOOL,
    "argv-check": CHECK,
    "argv-evolver": EVOLVER,
    "argv-llm": LLM,
}
PATHS = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/g/" + "/".join(parts))


def plan(sandbox, *, system=SYSTEM, python=PYTHON):
    return operations(sandbox, system=system, python=python)


def spelled(sandbox, **more):
    return options(sandbox, plan(sandbox, **more), status=9, texts=TEXTS)


def lines(words):
    """One option with its values on each line, as the golden files have it."""
    text = ""
    for word in words:
        text += ("\n" if word.startswith("--") else " ") + word
    return text.strip("\n") + "\n"


def targets(words):
    """Each (option, target) that makes something appear, in order."""
    found = []
    for at, word in enumerate(words):
        if word in ("--bind", "--ro-bind", "--symlink"):
            found.append((word, words[at + 2]))
        elif word in ("--tmpfs", "--remount-ro"):
            found.append((word, words[at + 1]))
    return found


@pytest.mark.parametrize("name", ROLES)
def test_the_argument_file_of_a_role_is_exactly_this(name):
    assert lines(spelled(ROLES[name])) == (DATA / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "option",
    [
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--unshare-net"),
        *("--die-with-parent", "--new-session", "--clearenv"),
    ],
)
def test_every_namespace_is_asked_for_by_name_and_the_parents_end_is_the_sandboxs(option):
    assert spelled(Sandbox()).count(option) == 1


def test_an_open_network_is_the_only_thing_that_is_shared_and_only_when_asked_for():
    closed, opened = spelled(Sandbox()), spelled(Sandbox(network=Network.OPEN))
    assert [word for word in closed if word not in opened] == ["--unshare-net"]
    assert not [word for word in opened if word not in closed]


def test_a_sandbox_inside_one_that_keeps_control_groups_to_itself_asks_for_every_other_namespace():
    plan_ = plan(Sandbox())
    shared = options(Sandbox(), plan_, status=9, texts=TEXTS, shared=("cgroup",))
    assert [word for word in spelled(Sandbox()) if word not in shared] == ["--unshare-cgroup"]


def test_what_lies_at_proc_and_dev_comes_before_everything_that_is_granted():
    kernel = (Show(Bind("/proc", "/proc")), Kernel("dev"), Filter(b"program"))
    made = operations(TASK, system=SYSTEM, python=PYTHON, kernel=kernel)
    at = made.index(kernel[0])
    assert made[at : at + 3] == kernel
    assert at == len(SYSTEM)
    words = options(TASK, made, status=9, texts={**TEXTS, "seccomp": 11})
    assert words[words.index("--seccomp") + 1] == "11"
    assert "--proc" not in words


def test_the_user_inside_is_never_root_and_holds_no_capability():
    words = spelled(Sandbox())
    for option, value in (("--uid", "1000"), ("--gid", "1000"), ("--cap-drop", "ALL")):
        assert words[words.index(option) + 1] == value


def test_no_value_of_a_variable_is_among_the_options():
    assert "secret" not in " ".join(spelled(Sandbox(env=(("KEY", "secret"),))))


@given(st.sets(PATHS, max_size=6), st.sets(PATHS, max_size=3))
def test_what_is_accepted_shows_each_grant_once_parents_first_and_nothing_below_a_writable_one(read, write):
    try:
        words = spelled(Sandbox(read=tuple(read), write=tuple(write)))
    except ValueError:
        return
    shown = [(option, target) for option, target in targets(words) if target.startswith("/g/")]
    assert sorted(shown) == sorted([("--ro-bind", path) for path in read] + [("--bind", path) for path in write])
    for at, (option, target) in enumerate(shown):
        later = [other for _, other in shown[at + 1 :]]
        assert not any(contains(other, target) for other in later)
        assert option == "--ro-bind" or not any(contains(target, other) for other in later)


@given(st.sets(PATHS, max_size=4), st.integers(min_value=1, max_value=4096))
def test_the_root_is_sealed_last_and_every_file_system_in_memory_has_a_size(write, tmp_mb):
    try:
        sandbox = Sandbox(write=tuple(write), limits=Limits(tmp_mb=tmp_mb))
    except ValueError:
        return
    words = spelled(sandbox)
    assert words[-2:] == ("--remount-ro", "/")
    for at, word in enumerate(words):
        if word == "--tmpfs":
            assert words[at - 2] == "--size"
            assert int(words[at - 1]) in (tmp_mb << 20, 4096)


def test_a_device_directory_that_could_be_filled_is_sealed_before_anything_is_granted():
    order = [target for option, target in targets(spelled(TASK)) if option == "--remount-ro"]
    assert order[0] == "/dev"


@pytest.mark.parametrize("path", ["/opt/env/lib", "/opt/base/lib/other"])
def test_a_cover_is_never_below_something_the_command_can_write(path):
    with pytest.raises(ValueError, match="cannot be shown writable"):
        plan(Sandbox(write=("/opt",)), python=(Empty(path),))


def test_the_interpreter_is_never_below_something_the_command_can_write():
    with pytest.raises(ValueError, match="cannot be shown writable"):
        plan(Sandbox(write=("/opt",)))


def test_a_grant_never_replaces_what_the_sandbox_itself_shows():
    with pytest.raises(ValueError, match="shown twice"):
        plan(Sandbox(binds=(Bind("/mine", "/opt/env"),)))


def test_a_file_of_the_sandboxs_own_comes_from_a_descriptor_and_nobody_can_write_it():
    assert File("/etc/passwd", b"hermit").options(7) == ("--perms", "0444", "--file", "7", "/etc/passwd")


def test_the_same_path_granted_and_shown_by_the_interpreter_is_shown_once():
    words = spelled(Sandbox(read=("/opt/env",)))
    assert [target for _, target in targets(words)].count("/opt/env") == 1


def test_as_many_paths_as_bubblewrap_takes_are_spelled_and_more_are_refused():
    fit = (MOST_ARGUMENTS - len(spelled(Sandbox()))) // 3
    assert len(spelled(Sandbox(read=tuple(f"/g/{number}" for number in range(fit))))) <= MOST_ARGUMENTS
    with pytest.raises(ValueError, match="declare fewer paths"):
        spelled(Sandbox(read=tuple(f"/g/{number}" for number in range(fit + 1))))


def test_the_argument_file_ends_every_word_with_a_nul_and_keeps_names_that_are_not_text():
    assert argument_file(["--bind", "/a b\n", "/\udcff"]) == b"--bind\0/a b\n\0/\xff\0"


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (Show(Bind("/a", "/b")), ("--ro-bind", "/a", "/b")),
        (Show(Bind("/a", "/b", writable=True)), ("--bind", "/a", "/b")),
        (Link("usr/lib", "/lib"), ("--symlink", "usr/lib", "/lib")),
        (Scratch("/tmp", 5), ("--size", "5", "--tmpfs", "/tmp")),
        (Empty("/a"), ("--size", "4096", "--tmpfs", "/a", "--remount-ro", "/a")),
        (Seal("/"), ("--remount-ro", "/")),
        (Kernel("proc"), ("--proc", "/proc")),
    ],
)
def test_an_operation_has_one_spelling(operation, words):
    assert operation.options() == words


def test_what_is_granted_is_mounted_by_its_descriptor_and_what_the_system_shows_by_its_path():
    sandbox = Sandbox(read=("/data", "/usr"), write=("/work",))
    sources = {bind: 20 + number for number, bind in enumerate(sandbox.mounts)}
    words = options(sandbox, plan(sandbox), status=9, texts=TEXTS, sources=sources)
    for bind, number in sources.items():
        option = "--bind-fd" if bind.writable else "--ro-bind-fd"
        # Once each: bubblewrap closes what it has used, and the system shows /usr too, before.
        assert [words[at - 1 : at + 2] for at in range(len(words)) if words[at] == str(number)] == [
            (option, str(number), bind.target)
        ]
    by_path = [word for at, word in enumerate(words) if words[at - 1] in ("--ro-bind", "--bind")]
    assert by_path == ["/usr", "/etc/ld.so.cache", "/opt/base", "/opt/env"]


def test_descriptors_change_nothing_but_how_the_source_is_told():
    sources = {bind: 20 + number for number, bind in enumerate(TASK.mounts)}
    by_path, by_descriptor = spelled(TASK), options(TASK, plan(TASK), status=9, texts=TEXTS, sources=sources)
    back = [word.removesuffix("-fd") if word.endswith("bind-fd") else word for word in by_descriptor]
    named = {str(number): bind.source for bind, number in sources.items()}
    assert tuple(named.get(word, word) for word in back) == by_path


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("0.8.0", False),
        ("0.9.99", False),
        ("0.10.0", True),
        ("0.12.0", True),
        ("1.0", True),
        ("10.0.1-rc", True),
        ("", False),
        ("x.10", False),
    ],
)
def test_descriptors_are_taken_from_the_version_on_that_knows_them(version, expected):
    assert takes_descriptors(version) is expected


def test_a_complaint_about_a_descriptor_names_its_source():
    sources = {Bind("/data/a", "/a"): 7, Bind("/data/b", "/b"): 71}
    said = "Can't find source path /proc/self/fd/71: No such file or directory"
    assert told(said, sources) == "Can't find source path /data/b: No such file or directory"
    assert told("/proc/self/fd/8: gone", sources) == "/proc/self/fd/8: gone"
    assert told("Can't mount proc on /newroot/proc", sources) == "Can't mount proc on /newroot/proc"


def test_an_empty_directory_in_which_something_is_shown_is_closed_after_it():
    sandbox = Sandbox(read=("/checkout/package",))
    order = operations(sandbox, system=(), python=(Empty("/checkout"), Empty("/other")))
    shown = order.index(Show(Bind("/checkout/package", "/checkout/package")))
    assert order.index(Scratch("/checkout", 4096)) < shown < order.index(Seal("/checkout"))
    assert Empty("/other") in order
    assert order[-1] == Seal("/")
