"""Whose a container's files are, what is shown in it, and who it says it belongs to."""

from __future__ import annotations

import os
import stat
import subprocess

import pytest

from hermit.domain.bind import Bind
from hermit.errors import PlaceError
from hermit.oci import container as containers
from hermit.oci.container import give, user_inside
from hermit.oci.engine import Engine

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def test_every_path_is_mounted_once_at_its_own_place_and_read_only_unless_it_is_to_be_written(tmp_path):
    for name in ("data", "work"):
        (tmp_path / name).mkdir()
    data, work = str(tmp_path / "data"), str(tmp_path / "work")
    found = containers.mounts([data, data, work], write=[work])
    assert sorted(found, key=lambda bind: bind.source) == [Bind(data, data), Bind(work, work, writable=True)]


def test_a_path_that_does_not_exist_is_not_mounted(tmp_path):
    with pytest.raises(PlaceError, match="nowhere does not exist"):
        containers.mounts([str(tmp_path / "nowhere")], write=[])


@pytest.mark.parametrize("path", ["/", "/usr", "/etc", "/proc", "/proc/self", "/dev/shm", "/sys/kernel"])
def test_a_path_that_would_cover_a_part_of_the_image_is_not_mounted(path):
    with pytest.raises((PlaceError, ValueError), match=r"cover a part of the image|must not be the root"):
        containers.mounts([path], write=[])


@pytest.mark.parametrize(
    ("traits", "podman", "fields"),
    [
        (set(), False, {"userns": "", "lifted": ()}),
        ({"rootless"}, True, {"userns": "keep-id", "lifted": ()}),
        ({"apparmor", "userns"}, False, {"userns": "host", "lifted": ("apparmor",)}),
        ({"selinux", "apparmor"}, False, {"userns": "", "lifted": ("apparmor", "selinux")}),
    ],
)
def test_the_rules_of_a_module_are_lifted_only_where_the_engine_names_it(traits, podman, fields):
    assert containers.suited(Engine("docker", "1", "1", "linux/amd64", podman, frozenset(traits))) == fields


def test_labels_tell_this_process_from_every_other():
    labels = dict(containers.labels("/runs/one"))
    assert labels[containers.RUN_LABEL] == "/runs/one"
    assert labels[containers.OWNER_LABEL] == str(os.getpid())
    assert labels[containers.STARTED_LABEL] == containers.started(os.getpid())
    assert len(labels[containers.BOOT_LABEL]) == 36


def test_a_process_that_is_gone_was_started_at_no_time():
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert containers.started(child.pid) is None


def test_root_never_enters_the_image_and_anybody_else_stays_who_they_are():
    assert user_inside(0, 0) == (1000, 1000)
    assert user_inside(0, 50) == (1000, 1000)
    assert user_inside(501, 20) == (501, 20)


@as_root
def test_giving_never_follows_a_link(tmp_path):
    (tmp_path / "outside" / "deep").mkdir(parents=True)
    (tmp_path / "outside" / "file").write_text("")
    given = tmp_path / "given"
    (given / "sub").mkdir(parents=True)
    (given / "sub" / "file").write_text("")
    (given / "directory").symlink_to(tmp_path / "outside")
    (given / "sub" / "file-link").symlink_to(tmp_path / "outside" / "file")
    give(str(given), uid=1000, gid=1000)
    for path in (given, given / "sub", given / "sub" / "file", given / "directory", given / "sub" / "file-link"):
        assert path.lstat().st_uid == 1000
    for path in (tmp_path / "outside", tmp_path / "outside" / "file", tmp_path / "outside" / "deep"):
        assert path.stat().st_uid == 0


@as_root
def test_a_run_directory_that_is_a_link_is_not_given(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match=r"link"):
        give(str(tmp_path / "link"), uid=1000, gid=1000)
    assert (tmp_path / "target").stat().st_uid == 0


@as_root
def test_no_depth_of_a_tree_and_no_strange_entry_stops_the_giving(tmp_path):
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.mkfifo("fifo", dir_fd=here)
    os.mkdir(b"\xff\xfe", mode=0, dir_fd=here)
    give(str(tmp_path), uid=1000, gid=1000)
    try:
        assert os.stat("fifo", dir_fd=here).st_uid == 1000
        assert os.stat(b"\xff\xfe", dir_fd=here).st_uid == 1000
    finally:
        os.close(here)
        subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


@as_root
def test_a_setuid_bit_does_not_come_along_to_root(tmp_path):
    program = tmp_path / "program"
    program.write_text("")
    os.chown(program, 1000, 1000)
    program.chmod(0o6755)
    give(str(tmp_path), uid=0, gid=0)
    assert not program.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)


@as_root
def test_another_file_system_in_the_run_directory_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "mounted").mkdir()
    (tmp_path / "own").mkdir()
    foreign = os.stat_result((0o40755, 1, 999, 1, 0, 0, 0, 0, 0, 0))

    class Entries(list):
        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

    class Mounted:
        name = "mounted"

        def stat(self, *, follow_symlinks):
            return foreign

        def is_dir(self, *, follow_symlinks):
            return True

    real = os.scandir
    monkeypatch.setattr(
        containers.os, "scandir", lambda fd: Entries(Mounted() if e.name == "mounted" else e for e in list(real(fd)))
    )
    give(str(tmp_path), uid=1000, gid=1000)
    assert (tmp_path / "own").stat().st_uid == 1000
    assert (tmp_path / "mounted").stat().st_uid == 0
