"""What the relay finds, on a kernel that the test makes up."""

from __future__ import annotations

import io
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CLOSED = "Name:\tpython\nCapInh:\t0\nCapPrm:\t0\nCapEff:\t0000000000000000\nCapBnd:\t0\nCapAmb:\t0\nNoNewPrivs:\t1\n"


@pytest.fixture
def checks(inside):
    return inside("checks")


@pytest.fixture
def reading(checks, monkeypatch):
    """Makes every file the checks open hold this text."""

    def make(text):
        def opened(path, mode="r", encoding=None):
            return io.BytesIO(text.encode()) if "b" in mode else io.StringIO(text)

        monkeypatch.setattr(checks, "open", opened, raising=False)

    return make


def mount(target, options="rw,nosuid", *, kind="ext4"):
    return f"77 76 254:0 /somewhere {target} {options},relatime - {kind} /dev/vda rw\n"


@pytest.mark.parametrize(
    ("field", "path"),
    [
        (rb"/plain", b"/plain"),
        (rb"/a\040b\011c\012d", b"/a b\tc\nd"),
        (rb"/a\134040", b"/a\\040"),
        (rb"/a\134134", b"/a\\134"),
        (rb"/a\1340401", b"/a\\0401"),
        (b"/\xc3\xa9\\040", b"/\xc3\xa9 "),
    ],
)
def test_a_path_of_mountinfo_is_read_as_it_is(checks, field, path):
    assert checks.unescape(field) == path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=30))
def test_every_path_comes_back_from_the_kernels_escapes(checks, path):
    escaped = b"".join(b"\\%03o" % byte if byte in b" \t\n\\" else bytes([byte]) for byte in path)
    assert checks.unescape(escaped) == path


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [("/a/b", "/a", True), ("/a", "/a", False), ("/ab", "/a", False), ("/a/b", "/a/", True), ("/a", "/", True)],
)
def test_a_path_is_inside_a_root_by_its_parts(checks, path, root, expected):
    assert checks.inside(path, (root,)) is expected


@pytest.mark.parametrize(
    "target",
    ["/", "/usr", "/etc/passwd", "/grant2", "/gran", "/dev", "/dev/sda", "/sys", r"/grant\040x", "/tmp2", "/tmp/x"],
)
def test_a_writable_mount_that_nobody_granted_is_found(checks, reading, target):
    reading(mount("/", "ro") + mount(target) + mount("/proc"))
    name, passed, detail = checks.mounts(["/grant"])
    assert (name, passed) == ("read-only but for grants", False)
    assert target.replace(r"\040", " ") in detail


@pytest.mark.parametrize(
    "target", ["/grant", "/grant/below", "/tmp", "/dev/shm", "/dev/null", "/proc", "/proc/irq", "/dev/pts"]
)
def test_what_was_granted_and_what_is_the_sandboxs_own_may_be_writable(checks, reading, target):
    reading(mount("/", "ro") + mount(target))
    assert checks.mounts(["/grant"])[1] is True


def test_a_read_only_mount_of_a_writable_file_system_is_read_only(checks, reading):
    reading(mount("/usr", "ro,nosuid"))
    assert checks.mounts([])[1] is True


def test_no_capability_at_all_passes(checks, reading):
    reading(CLOSED)
    assert checks.privileges()[1] is True


@pytest.mark.parametrize("name", ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"])
def test_a_capability_in_any_set_is_found_and_named(checks, reading, name):
    lines = [line if not line.startswith(name) else f"{name}:\t0000000000200000" for line in CLOSED.splitlines()]
    reading("\n".join(lines) + "\n")
    _, passed, detail = checks.privileges()
    assert passed is False
    assert name in detail


def test_a_process_that_could_gain_privileges_is_found(checks, reading):
    reading(CLOSED.replace("NoNewPrivs:\t1", "NoNewPrivs:\t0"))
    assert checks.privileges()[1] is False


@pytest.mark.parametrize("call", ["getuid", "geteuid", "getgid", "getegid"])
def test_root_under_any_of_its_names_is_found(checks, monkeypatch, call):
    for name in ("getuid", "geteuid", "getgid", "getegid"):
        monkeypatch.setattr(os, name, lambda: 1000)
    assert checks.user()[1] is True
    monkeypatch.setattr(os, call, lambda: 0)
    assert checks.user()[1] is False


def test_a_namespace_that_is_shared_with_the_host_is_found_and_named(checks):
    own = {name: os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "net")}
    assert checks.namespaces({"pid": "pid:[1]", "net": "net:[2]"})[1] is True
    _, passed, detail = checks.namespaces({"pid": "pid:[1]", "net": own["net"]})
    assert (passed, detail) == (False, "shared: net")


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["1", "{own}", "self", "sys"], True), (["1", "{own}", "7"], False), (["1"], False), ([], False)],
)
def test_only_init_and_the_relay_may_be_seen(checks, monkeypatch, names, expected):
    own = str(os.getpid())
    monkeypatch.setattr(os, "listdir", lambda _: [name.format(own=own) for name in names])
    monkeypatch.setattr(os, "readlink", lambda _: own)
    assert checks.processes()[1] is expected


def test_the_proc_of_another_namespace_is_found(checks, monkeypatch):
    monkeypatch.setattr(os, "listdir", lambda _: ["1", str(os.getpid())])
    monkeypatch.setattr(os, "readlink", lambda _: "4711")
    assert checks.processes()[1] is False


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["lo"], True), (["lo", "eth0"], False), (["eth0"], False), ([], False), (["lo", "lo"], False)],
)
def test_no_interface_but_loopback_may_exist(checks, monkeypatch, names, expected):
    monkeypatch.setattr(checks._socket, "if_nameindex", lambda: list(enumerate(names)))
    assert checks.interfaces()[1] is expected


class Kernel:
    """A kernel's answers to `connect`, by kind of socket; it counts what was tried."""

    def __init__(self, **answers):
        self.answers = answers
        self.tried = []

    def socket(self, family, kind):
        made = "tcp" if kind == 1 else "udp"
        answer = self.answers[made]
        if answer == "no protocol":
            raise OSError("no such protocol")
        return Socket(self, made, answer)


class Socket:
    def __init__(self, kernel, kind, answer):
        self.kernel, self.kind, self.answer = kernel, kind, answer

    def setblocking(self, _):
        pass

    def connect(self, address):
        self.kernel.tried.append((self.kind, address))
        if self.answer is not None:
            raise self.answer

    def close(self):
        pass


NO_ROUTE = OSError(101, "Network is unreachable")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"udp": NO_ROUTE, "tcp": NO_ROUTE}, True),
        ({"udp": "no protocol", "tcp": "no protocol"}, True),
        ({"udp": None, "tcp": NO_ROUTE}, False),
        ({"udp": NO_ROUTE, "tcp": None}, False),
        ({"udp": NO_ROUTE, "tcp": BlockingIOError(115, "in progress")}, False),
    ],
)
def test_any_way_out_is_found(checks, monkeypatch, answers, expected):
    monkeypatch.setattr(checks._socket, "socket", Kernel(**answers).socket)
    assert checks.outside()[1] is expected


def test_where_there_is_a_route_no_connection_is_begun(checks, monkeypatch):
    kernel = Kernel(udp=None, tcp=None)
    monkeypatch.setattr(checks._socket, "socket", kernel.socket)
    checks.outside()
    assert [kind for kind, _ in kernel.tried] == ["udp"]


def test_only_addresses_where_nobody_answers_are_tried(checks):
    assert {address for _, address in checks.OUTSIDE} == {"192.0.2.1", "2001:db8::1"}


def test_a_secret_that_exists_is_found_and_named(checks, tmp_path):
    (tmp_path / "here").touch()
    name, passed, detail = checks.probes([str(tmp_path / "absent"), str(tmp_path / "here")])
    assert (name, passed, detail) == ("secrets absent", False, str(tmp_path / "here"))
    assert checks.probes([str(tmp_path / "absent"), str(tmp_path / "here" / "below")])[1] is True


def test_a_dangling_link_with_a_secrets_name_counts(checks, tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    assert checks.exists(str(tmp_path / "link")) is True


def test_a_name_that_may_not_be_looked_up_counts(checks, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "lstat", refuse)
    assert checks.exists("/secret") is True


def test_nothing_is_checked_where_nothing_is_confined(checks):
    assert checks.run({"confined": False}) == []


@pytest.mark.parametrize(("network", "more"), [("isolated", {"loopback only", "outside unreachable"}), ("open", set())])
def test_every_check_that_applies_is_made(checks, network, more):
    orders = {"confined": True, "namespaces": {}, "writable": [], "network": network, "probes": []}
    always = {
        "unprivileged user",
        "no capability",
        "own namespaces",
        "own processes",
        "read-only but for grants",
        "secrets absent",
    }
    assert {name for name, _, _ in checks.run(orders)} == always | more
