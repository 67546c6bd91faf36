"""What no file of the tree says: the host of a package registry, or a path of the machine it was written on."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Built from pieces, so that this file does not say it either.
HOSTS = (
    ("py", "pi.org"),
    ("python", "hosted.org"),
    ("registry.npm", "js.org"),
    ("docker.", "io/"),
    ("registry-1.docker", ".io"),
    ("hub.docker", ".com"),
    ("gh", "cr.io"),
    ("qu", "ay.io"),
    ("gcr", ".io"),
    ("deb.debian", ".org"),
    ("security.debian", ".org"),
    ("crates", ".io"),
    ("proxy.golang", ".org"),
    ("rubygems", ".org"),
    ("anaconda", ".org"),
    ("huggingface", ".co"),
)
PLACES = (
    ("/wo", "rk/main"),
    ("/wo", "rk/shared"),
    ("/wo", "rk/.lib"),
    ("/opt/whe", "els"),
    ("/root/.py", "env"),
    ("/tmp/br", "iefs"),
)
# A path of the machine starts where no other path goes on: `{root}/work/` is none.
FORBIDDEN = re.compile(
    (
        "|".join(re.escape(head + tail) for head, tail in HOSTS)
        + r"|(?<![\w.*}\])>])(?:"
        + "|".join(re.escape(head + tail) for head, tail in PLACES)
        + ")"
    ).encode()
)
# Test data may hold such a name, where that is what it tests.
ALLOWED: dict[str, str] = {}


def test_no_file_names_a_registry_or_a_path_of_the_machine_it_was_written_on(tracked: list[Path], root: Path) -> None:
    found = []
    for path in tracked:
        name = str(path.relative_to(root))
        for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
            found += [
                f"{name}:{number} {match[0].decode()}" for match in FORBIDDEN.finditer(line) if name not in ALLOWED
            ]
    assert found == []


def test_a_forbidden_name_would_be_seen() -> None:
    for head, tail in (*HOSTS, *PLACES):
        assert FORBIDDEN.search(f"at {head}{tail} there".encode())


def test_no_file_is_larger_than_a_source_file_is(tracked: list[Path], root: Path) -> None:
    large = {str(path.relative_to(root)): path.stat().st_size for path in tracked if path.stat().st_size > 512 * 1024}
    assert large == {}


def test_the_image_has_every_dependency_of_the_package_and_of_what_a_sandbox_can_import(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {
        re.split(r"[^\w-]", line)[0]
        for line in (*project["dependencies"], *project["optional-dependencies"]["sandbox"])
    }
    pinned = re.findall(r"^([\w-]+)==", (root / "images" / "base" / "requirements.txt").read_text(), re.MULTILINE)
    assert wanted <= set(pinned)


def test_tests_mirror_the_package(root: Path) -> None:
    mirrored = {path.name for path in (root / "tests" / "unit").iterdir() if path.is_dir()} - {
        "examples",
        "__pycache__",
    }
    parts = {path.name for path in (root / "hermit").iterdir() if path.is_dir()} - {"__pycache__"}
    assert mirrored <= parts
