"""Debian's packages are pinned by the digests of their archives: another archive of the same version is refused."""

from __future__ import annotations

import io
import tarfile
from types import SimpleNamespace

import pytest

from hermit.errors import PlaceError
from hermit.oci.images import host, lock
from hermit.oci.images.contents import DPKG
from hermit.oci.images.layer import Layer

LOCK = "# head\nbash 5.2 amd64=aa arm64=bb\ndata 1:3 all=cc\nplain 7\n"
STATUS = "Package: {}\nStatus: install ok installed\nInstalled-Size: 1\nVersion: {}\n"


@pytest.fixture
def compared(tmp_path):
    """Compares a root filesystem of these packages with the lock; returns what was said."""

    def compare(versions, digests, *, refuse=False):
        place, said = tmp_path / "rootfs.tar", []
        files = {DPKG: "\n".join(STATUS.format(*pair) for pair in versions.items())}
        if digests is not None:
            files[host.DIGESTS] = digests
        with tarfile.open(place, "w") as archive:
            for name, text in files.items():
                info = tarfile.TarInfo(name.lstrip("/"))
                info.size = len(text)
                archive.addfile(info, io.BytesIO(text.encode()))
        (tmp_path / "base").mkdir(exist_ok=True)
        (tmp_path / host.DEBIAN_LOCK).write_text(LOCK)
        site = SimpleNamespace(checkout=SimpleNamespace(images=tmp_path), say=said.append)
        host.compare_with_lock(site, Layer(str(place), "sha256:0", 1), refuse=refuse)
        return said

    return compare


HERE = {"bash": "5.2", "data": "1:3", "plain": "7"}


@pytest.mark.parametrize(
    "digests", ["bash 5.2 amd64=aa\ndata 1:3 all=cc\nplain 7 amd64=dd\n", "bash 5.2 arm64=bb\n", None]
)
def test_packages_with_the_digests_of_the_lock_are_taken_in_silence(compared, digests):
    assert compared(HERE, digests, refuse=True) == []


@pytest.mark.parametrize("refuse", [False, True])
@pytest.mark.parametrize(
    ("digests", "name"),
    [
        ("bash 5.2 amd64=a0\ndata 1:3 all=cc\n", "bash"),
        ("bash 5.2 arm64=aa\ndata 1:3 all=cc\n", "bash"),
        ("bash 5.2 amd64=aa\ndata 1:3 all=c0\n", "data"),
        ("bash 5.2 amd64=aa\n", "data"),
    ],
)
def test_another_archive_of_the_same_version_is_refused_whether_versions_may_differ_or_not(
    compared, digests, name, refuse
):
    with pytest.raises(PlaceError, match=f"of the same versions: {name}$") as caught:
        compared(HERE, digests, refuse=refuse)
    assert "another mirror" in caught.value.cure


def test_another_version_has_another_digest_and_is_said_or_refused(compared):
    digests = "bash 5.3 amd64=a0\ndata 1:3 all=cc\n"
    (said,) = compared({**HERE, "bash": "5.3"}, digests)
    assert "bash 5.2 -> 5.3" in said
    with pytest.raises(PlaceError, match=r"1 of Debian's packages differ"):
        compared({**HERE, "bash": "5.3"}, digests, refuse=True)


def test_the_list_is_written_with_each_architectures_digest_while_the_version_stays():
    found = host.listed("bash 5.2 amd64=a1\ndata 1:4 all=c1\n")
    text = lock.debian({"data": "1:4", "bash": "5.2"}, found=found, before=host.listed(LOCK))
    head = "\n".join(lock.HEADS[host.DEBIAN_LOCK])
    assert text == f"{head}\nbash 5.2 amd64=a1 arm64=bb\ndata 1:4 all=c1\n"
    assert host.listed(text) == {"bash": ("5.2", {"amd64": "a1", "arm64": "bb"}), "data": ("1:4", {"all": "c1"})}


def test_every_package_of_the_lock_here_has_a_digest():
    from hermit.oci.images import checkout

    lines = host.listed((checkout.here().images / host.DEBIAN_LOCK).read_text(encoding="utf-8"))
    assert len(lines) > 100
    assert [name for name, (_, hashes) in lines.items() if not any(len(one) == 64 for one in hashes.values())] == []
