"""What the relay finds of what is shown: mounts, directories, devices and secrets."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture
def checks(inside):
    return inside("checks")


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
def test_a_writable_mount_that_nobody_granted_is_found(checks, target):
    text = mount("/", "ro") + mount(target) + mount("/proc", kind="proc")
    passed, detail = checks.writable(checks.mounts_of(text.encode()), ["/grant"])
    assert (passed, detail) == (False, target.replace(r"\040", " "))


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        ("/grant", "ext4"),
        ("/grant/below", "ext4"),
        ("/tmp", "tmpfs"),
        ("/dev/shm", "tmpfs"),
        ("/dev/null", "devtmpfs"),
        ("/proc", "proc"),
        ("/dev/pts", "devpts"),
    ],
)
def test_what_was_granted_and_what_is_the_sandboxs_own_may_be_writable(checks, target, kind):
    text = mount("/", "ro") + mount(target, kind=kind)
    assert checks.writable(checks.mounts_of(text.encode()), ["/grant"])[0] is True


@pytest.mark.parametrize("target", ["/tmp", "/dev/shm", "/proc", "/dev/pts", "/proc/sys"])
def test_a_file_system_of_the_host_in_the_place_of_the_sandboxs_own_is_found(checks, target):
    assert checks.writable(checks.mounts_of(mount(target).encode()), ["/grant"]) == (False, target)


def test_a_read_only_mount_of_a_writable_file_system_is_read_only(checks):
    assert checks.writable(checks.mounts_of(mount("/usr", "ro,nosuid").encode()), [])[0] is True


def test_a_mount_that_passes_changes_on_is_read_like_any_other(checks):
    line = b"77 76 254:0 /a /b rw,nosuid shared:3 master:1 - ext4 /dev/vda rw\n"
    assert checks.mounts_of(line) == [("/b", b"/a", b"ext4", True, b"254:0")]


def test_what_lies_in_a_directory_in_memory_without_being_shown_is_found(checks, tmp_path):
    for name in ("a", "b", "left"):
        (tmp_path / name).mkdir()
    directory = str(tmp_path)
    targets = [f"{directory}/a", f"{directory}/b/c", f"{directory}/leftover"]
    assert checks.fresh(directory, targets) == (False, f"{directory}/left")
    assert checks.fresh(directory, [*targets, f"{directory}/left"])[0] is True


@pytest.fixture
def granted(tmp_path):
    """Two granted paths, a link to a directory and a file, with the numbers of what they lead to."""
    (tmp_path / "directory").mkdir()
    (tmp_path / "link").symlink_to("directory")
    (tmp_path / "file").touch()
    paths = (tmp_path / "link", tmp_path / "file")
    return [(str(path), path.stat().st_dev, path.stat().st_ino) for path in paths]


def test_grants_that_show_what_was_opened_pass(checks, granted):
    assert checks.same(granted) == (True, "2 compared")
    assert checks.same([]) == (True, "0 compared")


@pytest.mark.parametrize("wrong", [(1, 0), (0, 1)])
def test_a_grant_that_shows_another_file_or_another_file_system_is_found(checks, granted, wrong):
    path, device, inode = granted[1]
    assert checks.same([granted[0], (path, device + wrong[0], inode + wrong[1])]) == (False, path)


def test_of_thousands_of_wrong_grants_the_first_few_are_named(checks, granted):
    path, device, inode = granted[1]
    passed, detail = checks.same([(path, device, inode + 1)] * 3000)
    assert (passed, detail.count(path)) == (False, checks.MOST_TRIED)


def test_a_grant_that_cannot_be_looked_up_has_not_shown_what_was_opened(checks, granted, tmp_path):
    (tmp_path / "file").unlink()
    name, passed, detail = checks.tried("grants", checks.same, (granted,))
    assert (name, passed) == ("grants", False)
    assert str(tmp_path / "file") in detail


class Entry:
    """What lstat says of an entry of /dev."""

    def __init__(self, mode, major=0, minor=0):
        self.st_mode, self.st_rdev = mode, os.makedev(major, minor)


CHARACTERS, BLOCKS, DIRECTORY, LINK, SOCKET, REGULAR = 0o20666, 0o60660, 0o40755, 0o120777, 0o140666, 0o100644


@pytest.mark.parametrize(
    ("name", "entry", "expected"),
    [
        ("null", Entry(CHARACTERS, 1, 3), True),
        ("null", Entry(CHARACTERS, 1, 1), False),  # the memory, under a harmless name
        ("zero", Entry(BLOCKS, 1, 5), False),
        ("zero", Entry(LINK), False),
        ("tty", Entry(CHARACTERS, 5, 0), True),
        ("console", Entry(CHARACTERS, 5, 1), False),
        ("sda", Entry(BLOCKS, 8, 0), False),
        ("mem", Entry(CHARACTERS, 1, 1), False),
        ("kmsg", Entry(CHARACTERS, 1, 11), False),
        ("fuse", Entry(CHARACTERS, 10, 229), False),
        ("kvm", Entry(CHARACTERS, 10, 232), False),
        ("log", Entry(SOCKET), False),
        ("log", Entry(LINK), False),
        ("stdin", Entry(LINK), True),
        ("fd", Entry(DIRECTORY), False),
        ("shm", Entry(DIRECTORY), True),
        ("pts", Entry(REGULAR), False),
        ("disk", Entry(DIRECTORY), False),
        ("granted", Entry(DIRECTORY), True),
        ("granted", Entry(CHARACTERS, 10, 232), False),
    ],
)
def test_in_dev_only_the_harmless_devices_may_be_told_by_their_numbers(checks, monkeypatch, name, entry, expected):
    monkeypatch.setattr(os, "lstat", lambda _: entry)
    assert checks.expected(name, ["/dev/granted/below"]) is expected


def test_somebodys_terminal_is_found(checks, monkeypatch):
    listed = {"/dev": [], "/dev/pts": ["ptmx"]}
    monkeypatch.setattr(os, "listdir", listed.__getitem__)
    assert checks.devices([])[0] is True
    listed["/dev/pts"].append("3")
    assert checks.devices([]) == (False, "/dev/pts/3")


def test_a_secret_that_exists_is_found_and_named(checks, tmp_path):
    (tmp_path / "here").touch()
    assert checks.absent([str(tmp_path / "absent"), str(tmp_path / "here")]) == (False, str(tmp_path / "here"))
    assert checks.absent([str(tmp_path / "absent"), str(tmp_path / "here" / "below")])[0] is True


def test_a_dangling_link_with_a_secrets_name_counts(checks, tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    assert checks.exists(str(tmp_path / "link")) is True


def test_a_name_that_may_not_be_looked_up_counts(checks, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "no")

    monkeypatch.setattr(os, "lstat", refuse)
    assert checks.exists("/secret") is True
