"""A layer depends on the files in it and on nothing of the machine that packed them."""

from __future__ import annotations

import io
import tarfile

import pytest

from hermit.oci.images.layer import canonical, plain_name

EPOCH = 1_000_000


def packed(*members, prefix="./", when=2_000_000, owner="somebody", form=tarfile.GNU_FORMAT):
    """An archive of (name, content or None for a directory, link target) in the order given."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, content, target in members:
            info = tarfile.TarInfo(prefix + name)
            info.mtime, info.uname, info.gname, info.uid = when, owner, owner, 7
            if target:
                info.type, info.linkname = target[0], target[1]
            elif content is None:
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            else:
                info.size = len(content)
            archive.addfile(info, io.BytesIO(content) if content is not None else None)
    file.seek(0)
    return file


def members(file):
    with tarfile.open(file) as archive:
        return archive.getmembers()


def made(source, tmp_path, name="layer.tar"):
    return canonical(source, str(tmp_path / name), epoch=EPOCH)


FILES = [("a", None, None), ("a/b", b"one", None), ("c", b"two", None)]


def test_equal_files_give_equal_bytes_whoever_packed_them_in_whatever_order(tmp_path):
    one = made(packed(*FILES), tmp_path, "one")
    other = made(
        packed(*reversed(FILES), prefix="", when=3_000_000.5, owner="another", form=tarfile.PAX_FORMAT),
        tmp_path,
        "other",
    )
    assert one.diff_id == other.diff_id
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert one.size == 6


@pytest.mark.parametrize("changed", [("c", b"tw0", None), ("d", b"two", None), ("c", b"", (tarfile.SYMTYPE, "a"))])
def test_another_file_gives_another_layer(tmp_path, changed):
    assert made(packed(*FILES), tmp_path).diff_id != made(packed(*FILES[:2], changed), tmp_path).diff_id


def test_no_time_is_later_than_the_builds_and_an_earlier_one_stays(tmp_path):
    made(packed(("late", b"", None)), tmp_path, "late")
    made(packed(("early", b"", None), when=7), tmp_path, "early")
    times = [members(tmp_path / name)[0].mtime for name in ("late", "early")]
    assert times == [EPOCH, 7]


def test_owners_are_numbers_and_attributes_stay(tmp_path):
    source = io.BytesIO()
    with tarfile.open(fileobj=source, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("ping")
        info.uname, info.uid = "somebody", 7
        info.pax_headers = {"SCHILY.xattr.security.capability": "\x01\udcff", "comment": "gone"}
        archive.addfile(info)
    source.seek(0)
    made(source, tmp_path)
    (member,) = members(tmp_path / "layer.tar")
    assert (member.uid, member.uname) == (7, "")
    assert member.pax_headers.get("SCHILY.xattr.security.capability") == "\x01\udcff"
    assert "comment" not in member.pax_headers


def test_of_several_links_the_first_name_is_the_file(tmp_path):
    link = (tarfile.LNKTYPE, "z")
    made(packed(("z", b"data", None), ("m", None, link), ("a", None, link), prefix=""), tmp_path)
    with tarfile.open(tmp_path / "layer.tar") as archive:
        kinds = [(member.name, member.type, member.linkname) for member in archive]
        assert archive.extractfile("a").read() == archive.extractfile("z").read() == b"data"
    assert kinds == [("a", tarfile.REGTYPE, ""), ("m", tarfile.LNKTYPE, "a"), ("z", tarfile.LNKTYPE, "a")]


def test_a_link_out_of_the_archive_is_refused(tmp_path):
    with pytest.raises(tarfile.TarError, match="elsewhere"):
        made(packed(("a", None, (tarfile.LNKTYPE, "elsewhere"))), tmp_path)


def test_the_last_of_two_members_of_one_name_counts(tmp_path):
    one = made(packed(("a", b"old", None), ("a", b"new", None)), tmp_path)
    assert one.diff_id == made(packed(("a", b"new", None)), tmp_path).diff_id


@pytest.mark.parametrize(("name", "plain"), [("./a/b/", "a/b"), ("/a", "a"), ("./", ""), ("a//b", "a/b")])
def test_a_name_has_no_marks_of_where_it_was_packed(name, plain):
    assert plain_name(name) == plain
