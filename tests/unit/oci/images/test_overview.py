"""What is left over goes, and what an image in use stands on stays."""

from __future__ import annotations

import pytest

from hermit.errors import PlaceError
from hermit.oci.images import overview
from hermit.oci.images.overview import pruned

IMAGES = {
    "hermit:1": ["debian", "env", "code"],
    "hermit:latest": ["debian", "env", "code"],
    "hermit-judge:1": ["debian", "env", "judge", "code"],
    "hermit:0": ["debian", "env", "old"],
    "hermit-rootfs:a": ["debian"],
    "hermit-rootfs:b": ["another"],
    "hermit-environment:a": ["debian", "env"],
    "hermit-environment:b": ["another", "env"],
    "hermit-judge-environment:a": ["debian", "env", "judge"],
    "hermit-builder:x": ["compiler"],
    "somebody:1": ["debian"],
}


class Store:
    """An engine's images, as far as they are asked for."""

    def __init__(self):
        self.images, self.pruned = dict(IMAGES), False

    def prune(self):
        self.pruned = True

    def listed(self):
        return [{"Id": name, "Size": 1, "RepoTags": [name], "Labels": None} for name in self.images]

    def attributes(self, name):
        return {"RootFS": {"Layers": self.images[name]}} if name in self.images else None

    def remove(self, name):
        return bool(self.images.pop(name, None))


def test_what_no_image_of_this_version_stands_on_goes():
    store = Store()
    gone = pruned(store, version="1", everything=False)
    assert sorted(gone) == ["hermit-builder:x", "hermit-environment:b", "hermit-rootfs:b", "hermit:0"]
    assert set(store.images) == set(IMAGES) - set(gone)
    assert store.pruned


def test_all_of_ours_goes_where_that_is_asked_for_and_nobody_elses():
    store = Store()
    pruned(store, version="1", everything=True)
    assert set(store.images) == {"somebody:1"}


def test_what_cannot_be_removed_is_not_said_to_be():
    store = Store()
    store.remove = lambda _: False
    assert pruned(store, version="1", everything=True) == []


def test_only_images_of_ours_are_listed():
    assert {one.name for one in overview.listed(Store())} == set(IMAGES) - {"somebody:1"}


def test_an_image_that_holds_no_list_says_who_makes_one():
    store = Store()
    store.file = lambda *_: None
    with pytest.raises(PlaceError, match=r"holds no /opt/hermit/share/sbom\.spdx\.json"):
        overview.document(store, "hermit:1", sbom=True)
