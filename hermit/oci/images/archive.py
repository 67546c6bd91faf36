"""An image written by ourselves: its config and manifest, and the stream an engine loads it from.

No builder here writes equal images from equal inputs, so the builder only makes the files. What holds them is made here:
the id of an image is the digest of its config, and that names its layers by theirs.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hermit.oci.images.layer import BLOCK, Layer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True)
class Platform:
    """Operating system and architecture, as an image's config spells them."""

    system: str
    architecture: str


@dataclass(frozen=True)
class Image:
    """An image that no engine has to know yet.

    Args:
        config: Its config, the bytes that its id is the digest of.
        below: The layers of the image it stands on, by their digests, lowest first.
        layers: Its own layers.
    """

    config: bytes
    below: tuple[str, ...]
    layers: tuple[Layer, ...]

    @property
    def id(self) -> str:
        """The id an engine gives it."""
        return f"sha256:{hashlib.sha256(self.config).hexdigest()}"


def stacked(
    below: Sequence[str],
    layers: Sequence[Layer],
    *,
    platform: Platform,
    settings: Mapping[str, Any],
    names: Sequence[str],
    epoch: int,
) -> Image:
    """An image of layers upon layers.

    Args:
        below: The digests of the layers it stands on.
        layers: Its own layers.
        platform: What it runs on.
        settings: Its ``config``: user, variables, entrypoint, labels.
        names: What each layer is, from the lowest of all, for its history.
        epoch: The time it is said to be made at, in seconds since 1970.
    """
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))
    digests = [*below, *(layer.diff_id for layer in layers)]
    document = {
        "architecture": platform.architecture,
        "os": platform.system,
        "created": created,
        "config": dict(settings),
        "rootfs": {"type": "layers", "diff_ids": digests},
        "history": [{"created": created, "created_by": f"hermit image build: {name}"} for name in names],
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return Image(text.encode(), tuple(below), tuple(layers))


def stream(image: Image, *, below: Sequence[Layer] = ()) -> Iterator[bytes]:
    """The archive that an engine loads this image from.

    Args:
        image: The image.
        below: The layers it stands on. An engine that keeps layers by their digest needs none that it has.
    """
    digests = [*image.below, *(layer.diff_id for layer in image.layers)]
    config_name = f"{image.id.removeprefix('sha256:')}.json"
    places = [f"{digest.removeprefix('sha256:')}/layer.tar" for digest in digests]
    manifest = json.dumps([{"Config": config_name, "RepoTags": None, "Layers": places}]).encode()
    yield from _member(config_name, image.config)
    for layer in (*below, *image.layers):
        yield from _file_member(f"{layer.diff_id.removeprefix('sha256:')}/layer.tar", layer.file)
    yield from _member("manifest.json", manifest)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _member(name: str, content: bytes) -> Iterator[bytes]:
    yield _header(name, len(content))
    yield content
    yield bytes(-len(content) % tarfile.BLOCKSIZE)


def _file_member(name: str, path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        file.seek(0)
        yield _header(name, size)
        while block := file.read(BLOCK):
            yield block
    yield bytes(-size % tarfile.BLOCKSIZE)


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    return info.tobuf(tarfile.PAX_FORMAT)
