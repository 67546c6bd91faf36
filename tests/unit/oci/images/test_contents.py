"""What an image holds, as a list and as an SBOM: every package once, equal for equal images."""

from __future__ import annotations

import json

from hermit.oci.images import contents
from hermit.oci.images.contents import Package, debian, listed, parsed, python, spdx

STATUS = """Package: bash
Status: install ok installed
Installed-Size: 10
Version: 5.2-1+b1

Package: gone
Status: deinstall ok config-files
Version: 1

Package: git
Status: install ok installed
Version: 1:2.39
Description: a tool
 with a longer text
 Version: 9
"""


def test_only_what_is_installed_is_listed():
    assert debian(STATUS) == [Package("deb", "bash", "5.2-1+b1", 10240), Package("deb", "git", "1:2.39", 0)]


def distribution(directory, name, version, **files):
    info = directory / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for path, content in files.items():
        place = directory / path.replace("__", "/")
        place.parent.mkdir(exist_ok=True)
        place.write_text(content)
    names = [path.replace("__", "/") for path in files] + [f"{info.name}/METADATA", f"{info.name}/RECORD"]
    (info / "RECORD").write_text("".join(f"{one},,\n" for one in names))


def test_a_package_is_listed_once_and_the_first_directory_counts(tmp_path):
    distribution(tmp_path / "new", "Some_Thing", "2")
    distribution(tmp_path / "old", "some-thing", "1")
    distribution(tmp_path / "old", "other", "3")
    found = {one.name: one.version for one in python([str(tmp_path / "new"), str(tmp_path / "old")])}
    assert found == {"some-thing": "2", "other": "3"}


def test_a_packages_size_is_that_of_its_files_and_their_byte_code(tmp_path):
    distribution(tmp_path, "thing", "1", thing__a="12345")
    (tmp_path / "thing" / "__pycache__").mkdir()
    (tmp_path / "thing" / "__pycache__" / "a.pyc").write_bytes(bytes(100))
    (one,) = python([str(tmp_path)])
    own = sum(file.stat().st_size for file in (tmp_path / "thing-1.dist-info").iterdir())
    assert one.size == 105 + own


PACKAGES = [
    Package("python", "b", "2", 5),
    Package("deb", "a", "1:1~x+b1", 7),
    Package("source", "c", "3", 0, "sha256:00"),
]


def test_a_list_says_the_same_when_it_is_read_again():
    assert parsed(listed(PACKAGES)) == sorted(
        one if not one.source else Package("source", "c", "3", 0) for one in PACKAGES
    )
    assert listed(reversed(PACKAGES)) == listed(PACKAGES)


def test_the_sbom_names_each_package_and_where_it_comes_from():
    made = spdx(PACKAGES, title="image", version="9", epoch=0)
    assert made["spdxVersion"] == "SPDX-2.3"
    image, *packages = made["packages"]
    assert image["primaryPackagePurpose"] == "CONTAINER"
    locators = [one["externalRefs"][0]["referenceLocator"] for one in packages]
    assert locators == ["pkg:deb/debian/a@1%3A1~x%2Bb1", "pkg:pypi/b@2", "pkg:deb/debian/c@3?arch=source"]
    ids = {one["SPDXID"] for one in made["packages"]} | {"SPDXRef-DOCUMENT"}
    assert len(ids) == len(PACKAGES) + 2
    assert {relation["relatedSpdxElement"] for relation in made["relationships"]} <= ids
    assert len(made["relationships"]) == len(PACKAGES) + 1


def test_equal_images_get_equal_files_and_others_other_names():
    one = spdx(PACKAGES, title="image", version="9", epoch=0)
    assert spdx(list(reversed(PACKAGES)), title="image", version="9", epoch=0) == one
    other = spdx(PACKAGES[:2], title="image", version="9", epoch=0)
    assert other["documentNamespace"] != one["documentNamespace"]


def test_both_files_are_written_from_what_is_installed(tmp_path, monkeypatch):
    (tmp_path / "status").write_text(STATUS)
    monkeypatch.setattr(contents, "DPKG", str(tmp_path / "status"))
    distribution(tmp_path / "lib", "thing", "1")
    source = [{"name": "bubblewrap", "version": "0.12", "digest": "sha256:00"}]
    (tmp_path / "built.json").write_text(json.dumps({"title": "t", "version": "1", "epoch": 0, "source": source}))
    contents.main(str(tmp_path), str(tmp_path / "built.json"), str(tmp_path / "lib"))
    found = {one.name for one in parsed((tmp_path / contents.LIST).read_text())}
    assert {"bash", "git", "thing", "bubblewrap", "pydantic"} <= found
    assert {"bash", "bubblewrap"} <= {
        one["name"] for one in json.loads((tmp_path / contents.SBOM).read_text())["packages"]
    }
