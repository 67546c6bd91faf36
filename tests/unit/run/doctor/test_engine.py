"""An engine's API is judged by what it and its client say of their versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.oci.engine import Engine
from hermit.run.doctor import engine
from hermit.run.doctor.finding import Level

if TYPE_CHECKING:
    from pathlib import Path


def said(client: str, server: str, least: str = "1.24") -> dict[str, Any]:
    return {"Client": {"ApiVersion": client}, "Server": {"ApiVersion": server, "MinAPIVersion": least}}


@pytest.mark.parametrize(
    ("document", "level", "words"),
    [
        (said("1.41", "1.41", "1.12"), Level.FIT, "1.41 is spoken; the engine knows 1.12 to 1.41"),
        (said("1.45", "1.52"), Level.FIT, "1.45 is spoken"),
        (said("1.52", "1.41"), Level.WITHOUT, "1.52 is spoken; the engine knows 1.24 to 1.41"),
        (said("1.41", "1.60", "1.44"), Level.WITHOUT, "the engine knows 1.44 to 1.60"),
        (said("1.40", "1.40", "1.12"), Level.WITHOUT, "tried with 1.41 and newer"),
        ({}, Level.WITHOUT, "names no version"),
        ({"Client": None, "Server": {"ApiVersion": "x"}}, Level.WITHOUT, "names no version"),
        (said("1.41.1", "1.41"), Level.WITHOUT, "names no version"),
    ],
)
def test_the_version_that_is_spoken_is_one_that_both_know(document: dict[str, Any], level: Level, words: str) -> None:
    found = engine.api(document)
    assert (found.level, words in found.found) == (level, True)
    assert found.ok or found.cure


def test_podman_needs_no_api() -> None:
    assert engine.api({}, podman=True).ok


def test_no_engine_is_one_finding_and_not_needed(tmp_path: Path) -> None:
    (found,) = engine.probes({"PATH": str(tmp_path)})
    assert (found.id, found.level, bool(found.cure)) == ("container_engine", Level.WITHOUT, True)


@pytest.mark.parametrize(
    ("traits", "level", "words"),
    [
        ((), Level.FIT, "is its caller's"),
        (("userns",), Level.FIT, "by --userns host"),
        (("rootless",), Level.WITHOUT, "the root of its containers"),
    ],
)
def test_whose_files_a_container_leaves_is_told(traits: tuple[str, ...], level: Level, words: str) -> None:
    found = engine.users(Engine("docker", "1", "1", "linux/amd64", traits=frozenset(traits)))
    assert (found.id, found.level, words in found.found) == ("engine_users", level, True)
    assert found.ok or found.cure


def test_the_rules_that_are_lifted_for_our_containers_are_named() -> None:
    found = engine.modules(Engine("docker", "1", "1", "linux/amd64", traits=frozenset({"apparmor", "selinux"})))
    assert (found.id, found.ok) == ("engine_security_modules", True)
    assert "--security-opt apparmor=unconfined --security-opt label=disable" in found.found
    assert "none" in engine.modules(Engine("docker", "1", "1", "linux/amd64")).found


@pytest.mark.image
def test_the_engine_of_this_machine_is_found_with_its_api_and_the_image() -> None:
    from hermit.environ import snapshot

    found = {finding.id: finding for finding in engine.probes(snapshot())}
    assert list(found) == ["container_engine", "engine_api", "engine_users", "engine_security_modules", "image"]
    assert found["image"].ok
