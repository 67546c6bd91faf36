"""Two names are one thing where the kernel says so, whatever the names are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from hermit.bwrap import places
from hermit.bwrap.places import Mount, Spot

if TYPE_CHECKING:
    from pathlib import Path


def related(shown: Path | str, hidden: Path | str, *mounts: Mount) -> str:
    return places.relation(places.of(str(shown), mounts), places.of(str(hidden), mounts))


def test_every_name_on_the_way_and_every_link_is_a_step(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "alias").symlink_to("real")
    (tmp_path / "real" / "up").symlink_to("../alias/inner")
    steps, links = places.trail(f"{tmp_path}/alias/up")
    assert steps[-5:-1] == (*(f"{tmp_path}/{name}" for name in ("real/up", "alias", "real", "real/inner")),)
    assert links == (f"{tmp_path}/real/up",), "a link to a directory on the way, such as a /home, stands for much else"
    assert steps[-1] == f"{tmp_path}/real/inner" == os.path.realpath(tmp_path / "alias" / "up")


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert len(places.trail(str(tmp_path / "a"))[1]) == places.MOST_LINKS


def test_a_link_that_leads_to_a_secret_elsewhere_is_a_part_of_it(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "judge.py").touch()
    (tmp_path / "state" / "judge.py").symlink_to("../judge.py")
    assert related(tmp_path / "state", tmp_path / "state" / "judge.py") == "holds"


@pytest.mark.parametrize(
    ("shown", "hidden", "relation"),
    [
        ("/mnt/bound", "/srv/data", "holds, by a mount,"),
        ("/mnt/bound", "/srv/data/tasks", "holds, by a mount,"),
        ("/mnt/bound/inner", "/srv/data", "lies, by a mount, inside"),
        ("/mnt", "/srv/data/tasks", "holds, by a mount,"),
        ("/mnt/bound/a", "/srv/data/b", ""),
        ("/mnt/other", "/srv/data", ""),
    ],
)
def test_a_bind_mount_is_another_name_of_the_same_place(shown: str, hidden: str, relation: str) -> None:
    mounts = (
        Mount("/", Spot("8:1", "/")),
        Mount("/mnt/bound", Spot("8:1", "/srv/data")),
        Mount("/mnt/other", Spot("8:2", "/srv/data")),
    )
    assert related(shown, hidden, *mounts) == relation


def test_a_secret_that_is_itself_mounted_from_elsewhere_is_found_where_it_comes_from() -> None:
    mounts = (Mount("/", Spot("8:1", "/")), Mount("/set/tests", Spot("8:1", "/srv/tests")))
    assert related("/srv", "/set", *mounts) == "holds, by a mount,"
    assert related("/srv/tests/one", "/set", *mounts) == "lies, by a mount, inside"


def test_a_later_mount_hides_an_earlier_one_in_its_place() -> None:
    mounts = (
        Mount("/", Spot("8:1", "/")),
        Mount("/mnt", Spot("8:1", "/srv/data")),
        Mount("/mnt", Spot("8:3", "/")),
    )
    assert related("/mnt", "/srv/data", *mounts) == ""


@pytest.mark.parametrize(
    ("shown", "hidden", "relation"),
    [
        ("DATA", "data", "is, by another name,"),
        ("DATA", "data/tasks", "holds, by another name,"),
        ("data/TASKS", "DATA", "lies, by another name, inside"),
        ("other", "data", ""),
    ],
)
def test_a_name_in_another_case_is_known_by_its_numbers_where_cases_are_not_told_apart(
    monkeypatch: pytest.MonkeyPatch, shown: str, hidden: str, relation: str
) -> None:
    monkeypatch.setattr(places, "_identity", lambda path: (1, hash(path.casefold())))
    assert related(f"/set/{shown}", f"/set/{hidden}") == relation


def test_the_mounts_of_this_machine_are_read_with_their_names(tmp_path: Path) -> None:
    targets = {mount.target for mount in places.mounts()}
    assert {"/", "/proc"} <= targets
    assert places._name(b"/a\\040b\\134c") == "/a b\\c"


def test_a_file_with_a_second_name_is_found_below_a_path_and_no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "one").touch()
    (tmp_path / "elsewhere").mkdir()
    os.link(tmp_path / "a" / "b" / "one", tmp_path / "elsewhere" / "two")
    (tmp_path / "a" / "single").touch()
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "way").symlink_to("../a")
    assert [path for _, path in places.linked_files(str(tmp_path / "a"))] == [f"{tmp_path}/a/b/one"]
    assert list(places.linked_files(str(tmp_path / "links"))) == []


def test_what_has_to_be_absent_is_the_secret_and_all_that_holds_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tasks").touch()
    found = places.absent([str(tmp_path / "data" / "tasks"), str(tmp_path / "absent")])
    for path in (tmp_path / "data" / "tasks", tmp_path / "data", tmp_path):
        assert (path.stat().st_dev, path.stat().st_ino) in found.identities
    assert len(found.spots) == 1
    assert found.spots[0].path.endswith("/data/tasks")
