"""An image that we write: its id is the digest of its config, and an engine can read it."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile

import pytest

from hermit.oci.images.archive import Platform, stacked, stream
from hermit.oci.images.layer import canonical


@pytest.fixture
def layer(tmp_path):
    source = io.BytesIO()
    with tarfile.open(fileobj=source, mode="w") as archive:
        info = tarfile.TarInfo("file")
        info.size = 4
        archive.addfile(info, io.BytesIO(b"data"))
    source.seek(0)
    return canonical(source, str(tmp_path / "layer.tar"), epoch=0)


def image(layer, *, below=("sha256:" + "0" * 64,), settings=None, epoch=86400):
    names = [*("below" for _ in below), "own"]
    platform = Platform("linux", "some-machine")
    return stacked(below, (layer,), platform=platform, settings=settings or {"User": "1"}, names=names, epoch=epoch)


def test_the_id_is_the_digest_of_the_config_and_follows_from_nothing_else(layer):
    one = image(layer)
    assert one.id == "sha256:" + hashlib.sha256(one.config).hexdigest()
    assert image(layer).id == one.id
    assert image(layer, settings={"User": "2"}).id != one.id
    assert image(layer, below=()).id != one.id
    assert image(layer, epoch=0).id != one.id


def test_the_config_names_the_platform_the_time_and_every_layer(layer):
    config = json.loads(image(layer).config)
    assert (config["os"], config["architecture"], config["created"]) == (
        "linux",
        "some-machine",
        "1970-01-02T00:00:00Z",
    )
    assert config["rootfs"]["diff_ids"] == ["sha256:" + "0" * 64, layer.diff_id]
    assert len(config["history"]) == 2


def test_the_stream_is_an_archive_with_its_own_layers_and_the_places_of_those_below(layer):
    made = image(layer)
    with tarfile.open(fileobj=io.BytesIO(b"".join(stream(made)))) as archive:
        (entry,) = json.load(archive.extractfile("manifest.json"))
        assert archive.extractfile(entry["Config"]).read() == made.config
        below, own = entry["Layers"]
        assert below not in archive.getnames()
        content = archive.extractfile(own).read()
    assert hashlib.sha256(content).hexdigest() == layer.diff_id.removeprefix("sha256:")
    assert entry["RepoTags"] is None


def test_a_layer_below_comes_along_where_it_is_handed_over(layer):
    made = image(layer, below=(layer.diff_id,))
    with tarfile.open(fileobj=io.BytesIO(b"".join(stream(made, below=(layer,))))) as archive:
        names = archive.getnames()
    assert names.count(f"{layer.diff_id.removeprefix('sha256:')}/layer.tar") == 2
