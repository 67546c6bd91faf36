"""Whether an image is what this checkout builds: built once more, with nothing of an earlier build, and compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermit.oci.images import archive, build, checkout, compare, host
from hermit.oci.images.compare import Difference
from hermit.oci.images.overview import known

if TYPE_CHECKING:
    from hermit.oci.images.build import Product
    from hermit.oci.images.checkout import Inputs
    from hermit.oci.images.layer import Layer
    from hermit.oci.images.site import Site
    from hermit.oci.images.store import Store


@dataclass(frozen=True)
class Verdict:
    """What a comparison came to.

    Args:
        first: The id of the first image.
        second: The id of the second, or of what was built anew.
        differences: In what they differ; of equal ids, nothing.
    """

    first: str
    second: str
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Whether they are one image."""
        return self.first == self.second


def against(store: Store, first: str, second: str, *, directory: str) -> Verdict:
    """Compares two images that the engine has.

    Args:
        store: The engine's images.
        first: One of them.
        second: The other.
        directory: Where there is room for the files of both.

    Raises:
        PlaceError: One of them is not here.
    """
    one, other = known(store, first), known(store, second)
    found = [] if one["Id"] == other["Id"] else compare.configs(one, other)
    mine, theirs = one["RootFS"]["Layers"], other["RootFS"]["Layers"]
    if len(mine) != len(theirs):
        found.append(Difference("layers", "", f"{len(mine)} -> {len(theirs)}"))
    if numbers := compare.layers(mine, theirs):
        with store.layers(first, directory) as here, store.layers(second, directory) as there:
            for number in numbers:
                found += compare.files(f"layer {number + 1}", here[number], there[number])
    return Verdict(one["Id"], other["Id"], tuple(found))


def rebuilt(site: Site, product: Product, *, whole: bool) -> Verdict:
    """Compares the image here with one that is built from this checkout now.

    Args:
        site: The build's surroundings.
        product: Which image.
        whole: Build the environment and the judge's packages anew too, not Hermit's own layer alone.

    Raises:
        PlaceError: The image or what it stands on is not here.
    """
    reference = f"{product.name}:{site.checkout.version}"
    here = known(site.store, reference)
    image = anew(site, product, checkout.inputs(site.checkout), whole=whole)
    if image.id == here["Id"]:
        return Verdict(here["Id"], image.id, ())
    site.store.load(image)
    try:
        found = compare.configs(here, known(site.store, image.id))
    finally:
        site.store.remove(image.id)
    digests, made = here["RootFS"]["Layers"], [*image.below, *(layer.diff_id for layer in image.layers)]
    if numbers := compare.layers(digests, made):
        files = {len(image.below) + number: layer.file for number, layer in enumerate(image.layers)}
        with site.store.layers(reference, str(site.work)) as before:
            for number in numbers:
                if number not in files:  # Debian's own is not made anew
                    found.append(Difference(f"layer {number + 1}", "", f"{digests[number]} -> {made[number]}"))
                    continue
                with open(files[number], "rb") as again:
                    found += compare.files(f"layer {number + 1}", before[number], again)
    return Verdict(here["Id"], image.id, tuple(found))


def anew(site: Site, product: Product, wanted: Inputs, *, whole: bool) -> archive.Image:
    """An image from this checkout, of layers that the builder made without its cache; it is not loaded."""
    fresh = build.without_cache(site)
    kept = build.digests(site.store, wanted.names[product.base])
    made = build.code(fresh, product, wanted, wheel=host.hermit_wheel(fresh))
    own: list[Layer] = [made.layer]
    if whole:
        makers = {"environment": build.environment, "judge": build.judge}
        again = [makers[name](fresh, wanted).layer for name in product.parts if name in makers]
        kept, own = kept[: -len(again)], [*again, made.layer]
    return archive.stacked(
        kept,
        own,
        platform=made.platform,
        settings=made.settings,
        names=product.parts,
        epoch=site.checkout.epoch,
    )
