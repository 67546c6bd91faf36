"""Two builds of one checkout are one image, whatever the builder stamps on its layers; what differs is named."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from hermit.cli import main
from hermit.environ import snapshot
from hermit.errors import PlaceError
from hermit.oci import engine as engines
from hermit.oci.images import build, checkout, contents, host, site, store, verify

pytestmark = [pytest.mark.docker, pytest.mark.image]
HERMIT, JUDGE = build.PRODUCTS


@pytest.fixture(scope="module")
def images():
    with store.connect(engines.find(snapshot()), environ=snapshot()) as opened:
        yield opened


@pytest.fixture(scope="module")
def building(images):
    said = []
    with site.opened(checkout.here(), images, environ=snapshot(), say=said.append) as opened:
        yield opened


@pytest.fixture(scope="module")
def wanted(building, images):
    found = checkout.inputs(building.checkout)
    missing = [name for name in found.names.values() if images.attributes(name) is None]
    assert missing == [], "make image, from this tree"
    return found


def elsewhere(building, tmp_path):
    """The same build at another time, in another place, of another locale."""
    return replace(building, work=tmp_path, environ={**building.environ, "TZ": "Pacific/Auckland", "LC_ALL": "C"})


@pytest.mark.parametrize("product", build.PRODUCTS, ids=lambda one: one.name)
def test_two_builds_without_a_cache_give_one_image_id(building, wanted, tmp_path, product):
    first = verify.anew(building, product, wanted, whole=False)
    second = verify.anew(elsewhere(building, tmp_path), product, wanted, whole=False)
    assert first.id == second.id
    assert first.layers[0].file != second.layers[0].file


def test_the_judges_packages_built_twice_are_one_layer(building, wanted):
    fresh = replace(building, cached=False)
    assert build.judge(fresh, wanted).layer.diff_id == build.judge(fresh, wanted).layer.diff_id


def test_without_its_canonical_form_the_same_layer_is_another(building, wanted, monkeypatch):
    """What the builder makes does differ: the equality above is the work of the canonical form."""
    clamped = build.code(replace(building, cached=False), HERMIT, wanted, wheel=host.hermit_wheel(building))
    monkeypatch.setattr("hermit.oci.images.layer._clamped", lambda member, epoch: member)
    plain = build.code(replace(building, cached=False), HERMIT, wanted, wheel=host.hermit_wheel(building))
    assert plain.layer.diff_id != clamped.layer.diff_id


def test_the_image_here_is_what_this_checkout_builds(hermit_json):
    code, verdict = hermit_json("image", "verify", "hermit", "--json")
    assert (code, verdict["same"], verdict["differences"]) == (0, True, [])


def test_two_images_are_compared_file_by_file(hermit_json):
    code, verdict = hermit_json("image", "verify", "hermit", "--against", "hermit-judge", "--json")
    assert code == 3
    named = {(one["where"], one["path"]) for one in verdict["differences"]}
    assert ("config", "label org.opencontainers.image.title") in named
    assert any(where == "layers" for where, _ in named)
    assert any(path.endswith("/pytest/__init__.py") for _, path in named)


@pytest.fixture
def hermit_json(capsys):
    def run(*words):
        code = main.run(list(words))
        return code, json.loads(capsys.readouterr().out)

    return run


def test_an_image_says_its_version_its_commit_its_lock_and_its_packages(hermit_json, building):
    for name in ("hermit", "hermit-judge"):
        _, found = hermit_json("image", "inspect", name, "--json")
        labels = found["labels"]
        assert labels["org.opencontainers.image.version"] == building.checkout.version
        assert labels["hermit.lock"] == building.checkout.lock
        assert labels["org.opencontainers.image.revision"].removesuffix("-dirty") in (
            building.checkout.revision().removesuffix("-dirty"),
            "unknown",
        )
        assert found["packages"]["deb"] > 50
        assert found["packages"]["python"] > 30
        assert found["packages"]["source"] == 1
        assert "hermit.intermediate" not in labels


def test_the_sbom_lists_what_the_image_lists(hermit_json, capsys):
    _, sbom = hermit_json("image", "inspect", "hermit", "--sbom")
    main.run(["image", "inspect", "hermit", "--packages"])
    packages = contents.parsed(capsys.readouterr().out)
    assert {one["name"] for one in sbom["packages"]} == {"hermit", *(one.name for one in packages)}
    assert {"torch", "numpy", "bubblewrap", "git", "hermit-oci"} <= {one.name for one in packages}


def test_the_base_without_torch_is_small(images):
    whole, without = (int(word) for word in build.size(images, "hermit").split() if word.isdigit())
    assert without < 700
    assert whole > without


def test_an_image_that_fails_its_test_gets_no_name_and_its_predecessor_keeps_its_own(
    building, wanted, images, tmp_path
):
    before = images.attributes("hermit:latest")["Id"]
    root = tmp_path / "checkout"
    root.mkdir()
    for name in os.listdir(building.checkout.root):
        if name != "images":
            (root / name).symlink_to(building.checkout.root / name)
    (root / "images" / "base").mkdir(parents=True)
    (root / "images" / "base" / "test.sh").write_text("echo planted >&2\nexit 1\n")
    (root / "images" / ".cache").mkdir()
    failing = replace(building, checkout=replace(building.checkout, root=root))
    image = build.final(building, HERMIT, replace(wanted, code="planted"), wheel=host.hermit_wheel(building))
    with pytest.raises(PlaceError, match="planted"):
        build.publish(failing, HERMIT, image)
    assert images.attributes("hermit:latest")["Id"] == before
    assert images.attributes(image.id) is None


def test_every_image_of_ours_is_listed(hermit_json):
    _, found = hermit_json("image", "list", "--json")
    names = {one["name"] for one in found}
    assert {"hermit:latest", "hermit-judge:latest"} <= names
    assert any(name.startswith("hermit-environment:") for name in names)


def test_an_image_that_is_not_here_is_one_refusal(capsys):
    for words in (["inspect", "hermit-absent"], ["verify", "hermit", "--against", "hermit-absent"]):
        assert main.run(["image", *words]) == 3
        assert "hermit-absent does not exist here" in capsys.readouterr().err
