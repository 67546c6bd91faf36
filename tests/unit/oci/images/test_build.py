"""Two builds of one checkout are one image, whatever the builder stamps on its layers; what differs is named."""

from __future__ import annotations

import io
import json
import re
import shutil
import tarfile
from dataclasses import replace
from types import SimpleNamespace

import pytest

from hermit.cli import main
from hermit.environ import snapshot
from hermit.errors import PlaceError
from hermit.oci import engine as engines
from hermit.oci.images import archive, build, checkout, contents, host, layer, overview, site, store, verify

pytestmark = [pytest.mark.docker, pytest.mark.image]
HERMIT = build.PRODUCTS[0]


@pytest.fixture(scope="module")
def images():
    with store.connect(engines.find(snapshot()), environ=snapshot()) as opened:
        yield opened


@pytest.fixture
def building(images):
    said = []
    with site.opened(checkout.here(), images, environ=snapshot(), say=said.append) as opened:
        yield opened


@pytest.fixture
def wanted(building, images):
    found = checkout.inputs(building.checkout)
    missing = [name for name in found.names.values() if images.attributes(name) is None]
    assert missing == [], "make image, from this tree"
    return found


def elsewhere(building, tmp_path):
    """The same build at another time, in another place, of another locale, with nothing of an earlier one."""
    environ = {**building.environ, "TZ": "Pacific/Auckland", "LC_ALL": "C"}
    return replace(building, work=tmp_path, environ=environ, cached=False)


@pytest.mark.parametrize("product", build.PRODUCTS, ids=lambda one: one.name)
def test_the_image_here_built_once_more_is_the_same_image(building, tmp_path, product):
    verdict = verify.rebuilt(elsewhere(building, tmp_path), product, whole=False)
    # A commit since the image was built may have changed nothing that goes into it.
    named = {(one.where, one.path) for one in verdict.differences} - {("config", f"label {overview.REVISION}")}
    assert named == set()
    assert verdict.same or verdict.differences


def test_the_classic_builder_makes_the_same_image(building, tmp_path, monkeypatch):
    monkeypatch.setattr(site, "builder", lambda place: (place.store.engine.program, False))
    verdict = verify.rebuilt(elsewhere(building, tmp_path), HERMIT, whole=False)
    assert {one.path for one in verdict.differences} <= {f"label {overview.REVISION}"}


def test_the_judges_packages_installed_once_more_are_the_same_layer(building, wanted, images, tmp_path):
    before = build.digests(images, wanted.names["judge"])[-1]
    assert build.judge(elsewhere(building, tmp_path), wanted).layer.diff_id == before


def test_without_its_canonical_form_the_layer_is_another(building, wanted, images, tmp_path, monkeypatch):
    """What the builder makes does differ: the equality above is the work of the canonical form."""
    before = build.digests(images, wanted.names["judge"])[-1]
    monkeypatch.setattr("hermit.oci.images.layer._clamped", lambda member, epoch: member)
    assert build.judge(replace(building, work=tmp_path), wanted).layer.diff_id != before


def test_two_images_are_compared_file_by_file(hermit_json, images, tmp_path):
    made = []
    for number, word in enumerate((b"one", b"two")):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as opened:
            for name, content in (("same", b"same"), ("differs", word)):
                info = tarfile.TarInfo(name)
                info.size = len(content)
                opened.addfile(info, io.BytesIO(content))
        packed.seek(0)
        own = layer.canonical(packed, str(tmp_path / f"{number}.tar"), epoch=0)
        platform = archive.Platform(*images.engine.platform.split("/"))
        settings = {"User": "1", "Labels": {"hermit.test": word.decode()}}
        image = archive.stacked((), (own,), platform=platform, settings=settings, names=("one",), epoch=0)
        made.append(images.load(image))
    try:
        code, verdict = hermit_json("image", "verify", made[0], "--against", made[1], "--json")
        same, equal = hermit_json("image", "verify", made[0], "--against", made[0], "--json")
    finally:
        for one in made:
            images.remove(one)
    assert (code, verdict["same"], same, equal["same"]) == (3, False, 0, True)
    named = {(one["where"], one["path"]) for one in verdict["differences"]}
    assert named == {("config", "label hermit.test"), ("layer 1", "differs")}


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
        assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?|unknown", labels[overview.REVISION])
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


def test_where_one_image_fails_its_test_neither_gets_a_name(building, images, tmp_path, monkeypatch):
    names = [f"{one.name}:latest" for one in build.PRODUCTS]
    before = [images.attributes(name)["Id"] for name in names]
    failing = replace(HERMIT, parts=(*HERMIT.parts[:-1], "planted"))
    passing = replace(build.PRODUCTS[1], parts=(*build.PRODUCTS[1].parts[:-1], "planted"))
    monkeypatch.setattr(build, "PRODUCTS", (failing, passing))
    monkeypatch.setattr(build, "_current", lambda *_: False)
    made = []

    def refuse(place, product, image):
        made.append(image.id)
        return PlaceError("planted") if product is failing else None

    monkeypatch.setattr(build, "refusal", refuse)
    with pytest.raises(PlaceError, match="planted"):
        build.build(building)
    assert [images.attributes(name)["Id"] for name in names] == before
    assert len(made) == 2
    assert [images.attributes(one) for one in made] == [None, None]


def test_a_change_of_the_source_alone_makes_the_last_layers_anew_and_no_other(
    building, wanted, images, tmp_path, monkeypatch
):
    copy, said, made = tmp_path / "checkout", [], {}
    shutil.copytree(checkout.here().root / "hermit", copy / "hermit", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(checkout.here().images, copy / "images", symlinks=True, ignore=shutil.ignore_patterns(".cache"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(checkout.here().root / name, copy)
    shutil.copytree(host.tools(building), copy / "images" / ".cache" / host.tools(building).name)
    with (copy / "hermit" / "errors.py").open("a") as file:
        file.write(f"# {tmp_path}\n")
    monkeypatch.setattr(build, "refusal", lambda *_: None)
    monkeypatch.setattr(build, "name", lambda _, product, image: made.update({product.name: image.id}))
    monkeypatch.setattr(build, "drop_superseded", lambda *_: None)
    try:
        with site.opened(checkout.at(copy), images, environ=snapshot(), say=said.append) as opened:
            build.build(opened)
        for product in build.PRODUCTS:
            *below, last = build.digests(images, made[product.name])
            assert tuple(below) == build.digests(images, wanted.names[product.base])
            assert last != build.digests(images, product.name)[-1]
    finally:
        for one in made.values():
            images.remove(one)
    assert len(said) == 1
    assert re.fullmatch(r"hermit \S+ is ready after \d+ s: docker run --rm hermit check", said[0])


def test_an_image_without_what_its_test_asks_for_is_refused(building, images):
    environment = checkout.inputs(building.checkout).names["environment"]
    refused = build.refusal(building, HERMIT, SimpleNamespace(id=images.attributes(environment)["Id"]))
    assert refused is not None
    assert "FAIL" in refused.what


def test_every_image_of_ours_is_listed(hermit_json):
    _, found = hermit_json("image", "list", "--json")
    names = {one["name"] for one in found}
    assert {"hermit:latest", "hermit-judge:latest"} <= names
    assert any(name.startswith("hermit-environment:") for name in names)


def test_an_image_that_is_not_here_is_one_refusal(capsys):
    for words in (["inspect", "hermit-absent"], ["verify", "hermit", "--against", "hermit-absent"]):
        assert main.run(["image", *words]) == 3
        assert "hermit-absent does not exist here" in capsys.readouterr().err
