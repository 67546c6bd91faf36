"""What the relay finds, on a kernel that the test makes up."""

from __future__ import annotations

import ast
import errno
import os

import pytest

CLOSED = {"Uid": "1000 1000 1000 1000", "Gid": "1000 1000 1000 1000", "Groups": " ", "NSpid": "7", "NoNewPrivs": "1"}
ORDERS = {"confined": True, "namespaces": {"pid": "pid:[1]"}, "writable": [], "network": "isolated", "probes": []}
ASKED = {"read_only": [], "descriptors": [], "settings": [], "granted": [], "sockets": [], "ports": []}


@pytest.fixture
def checks(inside):
    return inside("checks")


@pytest.fixture
def refusing(monkeypatch):
    """Makes a call of the kernel's answer with an error, or with a value where it is given none."""

    def make(module, name, number=None, value=None):
        def answer(*_, **__):
            if number is not None:
                raise OSError(number, os.strerror(number))
            return value

        monkeypatch.setattr(module, name, answer)

    return make


def test_no_capability_at_all_passes(checks):
    assert checks.capability("0000000000000000")[0] is True


@pytest.mark.parametrize("mask", ["0000000000200000", "8000000000000000", "1"])
def test_a_capability_is_found_and_named(checks, mask):
    assert checks.capability(mask) == (False, mask)


def test_each_set_of_capabilities_has_a_check_of_its_own(checks):
    looked_at = {name: given for name, _, given in checks.plan(ORDERS) if name.startswith("no capability")}
    assert set(looked_at) == {f"no capability: {name}" for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}


@pytest.mark.parametrize(("value", "expected"), [("1", True), ("0", False)])
def test_a_process_that_could_gain_privileges_is_found(checks, value, expected):
    assert checks.privileges({**CLOSED, "NoNewPrivs": value})[0] is expected


@pytest.mark.parametrize("place", range(4))
def test_root_under_any_of_its_four_names_is_found(checks, place):
    ids = ["1000"] * 4
    assert checks.unprivileged("\t".join(ids))[0] is True
    ids[place] = "0"
    assert checks.unprivileged("\t".join(ids)) == (False, " ".join(ids))


@pytest.mark.parametrize(
    ("held", "expected"),
    [("", True), ("65534 ", True), ("1000 65534 65534", True), ("998", False), ("1000 0", False)],
)
def test_a_group_of_the_host_that_has_a_number_inside_is_found(checks, monkeypatch, held, expected):
    monkeypatch.setattr(checks, "read", {"/proc/sys/kernel/overflowgid": b"65534\n"}.__getitem__)
    assert checks.groups({**CLOSED, "Groups": held})[0] is expected


@pytest.mark.parametrize("name", ["user", "pid", "ipc", "uts", "cgroup", "mnt", "net"])
def test_a_namespace_that_is_shared_with_the_host_is_found(checks, name):
    own = os.readlink(f"/proc/self/ns/{name}")
    assert checks.namespace(name, f"{name}:[1]") == (True, own)
    assert checks.namespace(name, own) == (False, f"shared with the host: {own}")


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["{own}", "self", "sys"], True), (["{own}", "7"], False), (["1"], False), ([], False)],
)
def test_only_the_relay_may_be_seen(checks, monkeypatch, names, expected):
    own = str(os.getpid())
    monkeypatch.setattr(os, "listdir", lambda _: [name.format(own=own) for name in names])
    assert checks.processes()[0] is expected


PROC = [("/proc", b"/", b"proc", True, b"0:5")]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (("7", "7", PROC), True),
        (("4711", "4711\t7", PROC), False),
        (("7", "4711\t7", PROC), False),
        (("4711", "7", PROC), False),
        (("7", "7", [("/proc", b"/", b"tmpfs", True, b"0:5")]), False),
        (("7", "7", [("/proc", b"/sub", b"proc", True, b"0:5")]), False),
        (("7", "7", [*PROC, ("/proc", b"/", b"ext4", False, b"0:5")]), False),
        (("7", "7", []), False),
    ],
)
def test_the_proc_of_another_namespace_is_found(checks, monkeypatch, seen, expected):
    link, numbers, mounted = seen
    monkeypatch.setattr(os, "getpid", lambda: 7)
    monkeypatch.setattr(os, "readlink", lambda _: link)
    assert checks.proc({**CLOSED, "NSpid": numbers}, mounted)[0] is expected


@pytest.mark.parametrize(
    ("numbers", "expected"), [((1, 0), True), ((2, 1), False), ((4711, 0), False), ((1, 4711), False)]
)
def test_a_relay_that_is_not_the_init_of_its_sandbox_is_found(checks, monkeypatch, numbers, expected):
    monkeypatch.setattr(os, "getpid", lambda: numbers[0])
    monkeypatch.setattr(os, "getppid", lambda: numbers[1])
    assert checks.init()[0] is expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [(errno.ENXIO, True), (errno.ENOENT, True), (errno.EACCES, False), (errno.EIO, False), (errno.EMFILE, False)],
)
def test_a_terminal_is_absent_only_where_the_kernel_says_so(checks, refusing, number, expected):
    refusing(os, "open", number)
    assert checks.terminal()[0] is expected


def test_a_terminal_that_controls_the_session_is_found(checks, monkeypatch):
    really = os.open
    monkeypatch.setattr(os, "open", lambda _, flags: really(os.devnull, flags))
    assert checks.terminal() == (False, "/dev/tty can be opened")


def test_a_host_name_that_can_be_set_is_found(checks, refusing):
    refusing(checks._socket, "sethostname", errno.EPERM)
    assert checks.host_name()[0] is True
    refusing(checks._socket, "sethostname")
    assert checks.host_name()[0] is False


@pytest.mark.parametrize("name", ["shm", "sem", "msg"])
def test_an_object_of_system_v_is_found_in_any_of_the_three_tables(checks, monkeypatch, name):
    tables = {f"/proc/sysvipc/{kind}": b"key id\n" for kind in ("shm", "sem", "msg")}
    monkeypatch.setattr(checks, "read", lambda path: tables[path])
    assert checks.system_v() == (True, "none")
    tables[f"/proc/sysvipc/{name}"] += b"0 7\n"
    assert checks.system_v() == (False, name)


def test_a_kernel_without_system_v_objects_has_none(checks, refusing):
    refusing(checks, "read", errno.ENOENT)
    assert checks.system_v()[0] is True


@pytest.mark.parametrize(
    ("number", "expected"), [(errno.EROFS, True), (errno.EACCES, False), (errno.EOPNOTSUPP, False), (None, False)]
)
def test_the_root_is_sealed_only_where_it_is_read_only(checks, refusing, number, expected):
    refusing(checks, "create", value=None if number is None else OSError(number, "no"))
    assert checks.sealed()[0] is expected


def test_a_directory_granted_for_reading_that_can_be_written_is_found_and_nothing_stays_in_it(checks, tmp_path):
    passed, detail = checks.unwritable([str(tmp_path)])
    assert passed is False
    assert str(tmp_path) in detail
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "expected"), [(errno.EROFS, True), (errno.EACCES, True), (errno.EOPNOTSUPP, False), (errno.EIO, False)]
)
def test_a_grant_for_reading_is_read_only_only_where_the_kernel_says_so(checks, refusing, number, expected):
    refusing(os, "open", number)
    assert checks.unwritable(["/grant"])[0] is expected


def test_of_many_grants_for_reading_the_first_sixteen_directories_are_tried(checks, monkeypatch):
    tried = []

    def create(path):
        tried.append(path)
        return OSError(errno.ENOTDIR if path.startswith("/file") else errno.EROFS, "no")

    monkeypatch.setattr(checks, "create", create)
    assert checks.unwritable(["/file", *(f"/{number}" for number in range(40))]) == (True, "16 tried")
    assert tried == ["/file", *(f"/{number}" for number in range(16))]


@pytest.mark.parametrize(
    ("granted", "looked_at"),
    [
        ({}, []),
        ({"read_only": []}, ["/tmp", "/dev/shm"]),
        ({"read_only": ["/tmp"]}, ["/dev/shm"]),
        ({"read_only": ["/tmp/x"], "writable": ["/dev/shm"]}, ["/tmp"]),
    ],
)
def test_a_directory_in_memory_that_a_grant_replaces_is_not_looked_at(checks, granted, looked_at):
    assert checks.scratch({**ORDERS, **granted}) == looked_at


def test_a_descriptor_that_nobody_declared_is_found_and_named(checks):
    declared = [int(name) for name in os.listdir("/proc/self/fd")]
    assert checks.descriptors(declared)[0] is True
    extra = os.open("/", os.O_RDONLY)
    try:
        assert checks.descriptors([number for number in declared if number != extra]) == (False, str(extra))
    finally:
        os.close(extra)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EROFS, True),
        (errno.EACCES, True),
        (errno.EPERM, True),
        (errno.ENOENT, True),
        (errno.EMFILE, False),
        (errno.EIO, False),
    ],
)
def test_a_setting_is_closed_only_where_the_kernel_says_so(checks, refusing, number, expected):
    refusing(os, "open", number)
    assert checks.settings(["/proc/sys/kernel/core_pattern"])[0] is expected


def test_a_setting_that_opens_for_writing_is_found_and_left_as_it_is(checks, tmp_path):
    setting = tmp_path / "core_pattern"
    setting.write_text("core")
    assert checks.settings([str(setting)]) == (False, str(setting))
    assert setting.read_text() == "core"


def test_nothing_is_checked_where_nothing_is_confined(checks):
    assert checks.run({"confined": False}) == []


@pytest.mark.parametrize("failure", [OSError(errno.EMFILE, "Too many open files"), ValueError("x"), KeyError("Uid")])
def test_a_check_that_cannot_be_tried_fails(checks, failure):
    def broken(_):
        raise failure

    name, passed, detail = checks.tried("some check", broken, (1,))
    assert (name, passed) == ("some check", False)
    assert "could not be tried" in detail


def names(checks, **changes):
    return [name for name, _, _ in checks.plan({**ORDERS, **changes})]


def test_every_start_makes_at_least_twenty_checks_each_with_a_name_of_its_own(checks):
    for network in ("isolated", "open"):
        made = names(checks, network=network, **ASKED)
        assert len(made) == len(set(made)) >= 20


def test_with_an_open_network_what_cannot_hold_there_is_left_out_and_nothing_else(checks):
    left_out = set(names(checks, **ASKED)) - set(names(checks, network="open", **ASKED))
    assert left_out == {
        "loopback only",
        "no route outside: IPv4",
        "no route outside: IPv6",
        "no connection outside: IPv4",
        "no connection outside: IPv6",
        "no resolver",
        "no socket name of the host",
        "declared ports answer",
        "no other port open",
    }


@pytest.mark.parametrize(
    ("order", "made"),
    [
        ("read_only", {"grants for reading read-only", "scratch fresh: /tmp", "scratch fresh: /dev/shm"}),
        ("descriptors", {"declared descriptors only"}),
        ("settings", {"kernel settings closed"}),
        ("sockets", {"no socket of the host"}),
        ("ports", {"declared ports answer", "no other port open"}),
    ],
)
def test_an_order_that_is_not_given_leaves_out_its_own_checks_alone(checks, order, made):
    without = {name: given for name, given in ASKED.items() if name != order}
    assert set(names(checks, **ASKED)) - set(names(checks, **without)) == made


def test_every_planned_check_is_made_and_says_what_it_saw(checks):
    orders = {**ORDERS, **ASKED}
    made = checks.run(orders)
    assert [name for name, _, _ in made] == [name for name, _, _ in checks.plan(orders)]
    assert all(detail for _, _, detail in made)


def test_a_control_group_namespace_that_only_the_kernel_refuses_is_found(checks, child):
    # Without a filter it says that a capability is missing, which a namespace of users would give.
    passed, seen = ast.literal_eval(child(checks.control_groups))
    assert passed is False
    assert seen in ("Operation not permitted", "one was made")


def test_a_control_group_namespace_is_tried_only_where_root_is_meant(checks):
    names = {name for name, _, _ in checks.plan({**ORDERS, **ASKED})}
    assert "no control group namespace" not in names
    rooted = {name for name, _, _ in checks.plan({**ORDERS, **ASKED, "root": True})}
    assert rooted - names == {"no control group namespace"}


@pytest.fixture
def unseen(inside, checks):
    """Compares these secrets with the mounts of this process."""
    module = inside("unseen")
    return lambda secrets: module.unseen(secrets, checks.mounts_of(checks.read("/proc/self/mountinfo")))


def test_a_mount_of_a_secret_is_found_by_its_numbers_alone(unseen):
    root = os.stat("/")
    holding = {"identities": [(root.st_dev, root.st_ino)], "spots": []}
    passed, said = unseen(holding)
    assert passed is False
    assert "/" in said.split(", ")
    assert unseen({"identities": [(root.st_dev, 0)], "spots": []})[0] is True


def test_a_mount_of_a_secret_or_of_what_holds_it_or_of_a_part_of_it_is_found_by_its_place(checks, unseen):
    line = next(line for line in checks.read("/proc/self/mountinfo").splitlines() if line.split(b" ")[4] == b"/proc")
    device = line.split(b" ")[2]
    for path in (b"/", b"/inner/deep"):
        assert "/proc" in unseen({"identities": [], "spots": [(device, path)]})[1]
    assert unseen({"identities": [], "spots": [(b"0:0", b"/")]})[0] is True


@pytest.mark.parametrize(
    ("root", "spot", "expected"),
    [
        (b"/", b"/a", True),
        (b"/a", b"/a", True),
        (b"/a/b", b"/a", True),
        (b"/a", b"/ab", False),
        (b"/ab", b"/a", False),
    ],
)
def test_paths_of_a_file_system_are_compared_by_their_parts(inside, root, spot, expected):
    module = inside("unseen")
    spots = [(b"8:1", module.as_directory(spot))]
    assert module.overlapping(b"8:1", module.as_directory(root), spots) is expected
    assert module.overlapping(b"8:2", module.as_directory(root), spots) is False
