"""What goes into an image decides what is built anew, and nothing else does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import hermit
from hermit.errors import ConfigError, PlaceError
from hermit.oci.images import checkout

ROOT = Path(hermit.__file__).parents[1]


@pytest.fixture
def copy(tmp_path):
    """A checkout that may be changed."""
    for name in ("hermit", "images"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(".cache", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def digests(copy, **options):
    found = checkout.inputs(checkout.at(copy), **options)
    return {name: getattr(found, name) for name in ("bubblewrap", "rootfs", "environment", "judge", "code")}


@pytest.mark.parametrize(
    ("file", "stays"),
    [
        ("hermit/errors.py", {"bubblewrap", "rootfs", "environment", "judge"}),
        ("images/judge/requirements.txt", {"bubblewrap", "rootfs", "environment"}),
        ("images/base/requirements.txt", {"bubblewrap", "rootfs"}),
        ("images/base/steps/environment.sh", {"bubblewrap", "rootfs"}),
        ("images/base/steps/bubblewrap.sh", set()),
        ("images/base/debian.lock", {"bubblewrap", "rootfs", "environment", "judge"}),
        ("images/checks.sh", {"bubblewrap", "rootfs", "environment", "judge"}),
    ],
)
def test_a_change_rebuilds_its_own_part_and_those_above_it(copy, file, stays):
    before = digests(copy)
    with (copy / file).open("a") as opened:
        opened.write("\n# changed\n")
    after = digests(copy)
    assert {name for name in before if before[name] == after[name]} == stays


def test_what_pins_debian_rebuilds_everything(copy):
    before = digests(copy)
    pins = copy / "images" / "pins.toml"
    pins.write_text(pins.read_text().replace('"git", ', '"git", "less", '))
    after = digests(copy)
    assert {name for name in before if before[name] == after[name]} == {"bubblewrap"}


def test_another_base_image_is_another_input(copy):
    assert set(digests(copy, base="sha256:1").values()).isdisjoint(digests(copy).values())


def test_byte_code_and_what_lies_beside_the_source_change_nothing(copy):
    before = digests(copy)
    (copy / "hermit" / "__pycache__").mkdir()
    (copy / "hermit" / "__pycache__" / "errors.cpython-311.pyc").write_bytes(b"x")
    (copy / "notes.txt").write_text("x")
    assert digests(copy) == before


def test_the_lock_follows_from_every_list_that_pins_a_package(copy):
    for name in checkout.LOCKS:
        before = checkout.at(copy).lock
        with (copy / name).open("a") as opened:
            opened.write("\n")
        assert checkout.at(copy).lock != before, name


def test_an_installed_hermit_says_that_it_has_no_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(checkout.hermit, "__file__", str(tmp_path / "site-packages" / "hermit" / "__init__.py"))
    with pytest.raises(PlaceError, match="installed without the files its images are built from") as refused:
        checkout.here()
    assert "make image" in refused.value.cure
    assert str(tmp_path) in refused.value.where


def test_pins_that_cannot_be_read_are_named(copy):
    (copy / "images" / "pins.toml").write_text("[")
    with pytest.raises(ConfigError, match="pins of the images cannot be read"):
        checkout.at(copy)


def test_a_lock_file_is_read_by_normal_names():
    assert checkout.locked("Some_Thing==1.2 \\\n    --hash=sha256:0\nother==3\n# no==1\n") == {
        "some-thing": "1.2",
        "other": "3",
    }
