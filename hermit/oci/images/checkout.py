"""The checkout that images are built from: its pins, its version, and the digests of what goes into each image."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hermit
from hermit.errors import ConfigError, PlaceError
from hermit.proc import capture

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PINS = "images/pins.toml"
ANSWER_S = 30.0
SHORT = 12
# What decides which packages an image holds.
LOCKS = (
    PINS,
    "images/base/debian.lock",
    "images/base/requirements.txt",
    "images/base/tools.txt",
    "images/judge/requirements.txt",
)
SOURCE = ("hermit", "pyproject.toml", "README.md", "LICENSE", "images/seccomp.json")
STEPS = "base/steps"


@dataclass(frozen=True)
class Checkout:
    """A checkout of Hermit.

    Args:
        root: Its directory.
        pins: What ``images/pins.toml`` says.
        version: Hermit's version in it.
    """

    root: Path
    pins: Mapping[str, Any]
    version: str

    @property
    def images(self) -> Path:
        """Where the images are described."""
        return self.root / "images"

    @property
    def cache(self) -> Path:
        """Where downloads and the log of a build are kept."""
        return self.images / ".cache"

    @property
    def epoch(self) -> int:
        """The one time stamp of everything that is built, in seconds since 1970."""
        return int(self.pins["debian"]["source_date_epoch"])

    @property
    def lock(self) -> str:
        """The digest of everything that pins a package."""
        return digest(lines_of(self.root, LOCKS))

    def revision(self) -> str:
        """The last commit that changed what goes into an image; ``unknown`` without git.

        ``-dirty`` follows it where the checkout differs from it.
        """
        git = ["git", "-C", str(self.root)]
        try:
            commit = capture([*git, "log", "-1", "--format=%H", "--", "images", *SOURCE], timeout_s=ANSWER_S)
            changed = capture([*git, "status", "--porcelain", "--", "images", *SOURCE], timeout_s=ANSWER_S)
        except (OSError, TimeoutError):
            return "unknown"
        if commit.code != 0 or not commit.stdout.strip():
            return "unknown"
        return commit.stdout.decode().strip() + ("-dirty" if changed.stdout.strip() else "")


@dataclass(frozen=True)
class Inputs:
    """The digests of what each image is made from, and with that the names they are kept under."""

    bubblewrap: str
    rootfs: str
    environment: str
    judge: str
    code: str

    @property
    def names(self) -> dict[str, str]:
        """The image that each part is kept as."""
        return {
            "rootfs": f"hermit-rootfs:{self.rootfs}",
            "environment": f"hermit-environment:{self.environment}",
            "judge": f"hermit-judge-environment:{self.judge}",
        }


def here() -> Checkout:
    """The checkout that this Hermit is imported from.

    Raises:
        PlaceError: It is installed without one.
        ConfigError: Its pins cannot be read.
    """
    root = Path(hermit.__file__).resolve().parents[1]
    if not (root / PINS).is_file():
        cure = "clone Hermit's repository and run `make image` in it, or get the image with `hermit image pull`"
        raise PlaceError(
            "this Hermit was installed without the files its images are built from", where=str(root), cure=cure
        )
    return at(root)


def at(root: Path) -> Checkout:
    """The checkout in this directory.

    Raises:
        ConfigError: Its pins cannot be read.
    """
    try:
        pins = tomllib.loads((root / PINS).read_text(encoding="utf-8"))
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the pins of the images cannot be read: {error}", where=str(root / PINS)) from None
    return Checkout(root, pins, project["project"]["version"])


def inputs(checkout: Checkout, *, base: str = "") -> Inputs:
    """The digests of what goes into each image.

    Args:
        checkout: The checkout.
        base: The id or name of an image that is completed in place of one made from Debian's packages.
    """
    root, pins = checkout.root, checkout.pins
    origin = [platform.machine(), base, str(checkout.epoch), pins["debian"]["suite"]]
    made_by = ("rootfs.Dockerfile", "steps/packages.sh") if base else ("steps/rootfs.sh",)
    debian = lines_of(root, [f"images/base/{name}" for name in made_by])
    built = [*pins["debian"]["builder"], *pins["bubblewrap"]["files"].values()]
    recipe = lines_of(root, ["images/base/bubblewrap.Dockerfile", f"images/{STEPS}/bubblewrap.sh"])
    bubblewrap = digest("\n".join([*origin, debian, *built, recipe]))
    rootfs = digest("\n".join([bubblewrap, *pins["debian"]["packages"]]))
    packages = ["images/base/requirements.txt", "images/base/tools.txt", "images/base/environment.Dockerfile"]
    environment = digest(rootfs + lines_of(root, [*packages, f"images/{STEPS}/environment.sh"]))
    judge_files = ["images/judge/requirements.txt", "images/judge/Dockerfile", "images/judge/steps/packages.sh"]
    judge = digest(environment + lines_of(root, judge_files))
    tests = ["images/base/Dockerfile", "images/checks.sh", "images/base/test.sh", "images/judge/test.sh"]
    code = digest(
        environment
        + judge
        + lines_of(root, [*SOURCE, *LOCKS, *tests, f"images/{STEPS}/hermit.sh", f"images/{STEPS}/wheel.sh"])
    )
    return Inputs(bubblewrap, rootfs, environment, judge, code)


def lines_of(root: Path, paths: Iterable[str]) -> str:
    """One line for each file of these paths, its digest and its name, in an order that no locale changes."""
    files: list[str] = []
    for path in paths:
        if not (root / path).is_dir():
            files.append(path)
            continue
        for directory, below, names in os.walk(root / path, followlinks=True):
            # What tools leave in a checkout is no part of it, and not in the wheel.
            below[:] = [name for name in below if name != "__pycache__" and not name.startswith(".")]
            files += [os.path.relpath(os.path.join(directory, name), root) for name in names]
    kept = sorted(file for file in files if not file.endswith(".pyc"))
    return "".join(f"{hashlib.sha256((root / file).read_bytes()).hexdigest()}  {file}\n" for file in kept)


def digest(text: str) -> str:
    """A short digest of a text, as the tags of our images carry it."""
    return hashlib.sha256(text.encode()).hexdigest()[:SHORT]


def locked(text: str) -> dict[str, str]:
    """The packages of a lock file with hashes: their names, normalised, and their versions."""
    return {normal(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s\\;]+)", text, re.MULTILINE)}


def normal(name: str) -> str:
    """The name of a Python package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
