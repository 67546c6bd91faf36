"""Dockerfiles, steps and the profile name no architecture alone: what one has, the others have."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

import hermit

IMAGES = Path(hermit.__file__).parents[1] / "images"
ONE_MACHINE = re.compile(r"x86|amd64|i386|aarch64|arm64|armhf|riscv|ppc64|manylinux\w*_(?!\$)\w*64", re.IGNORECASE)
FILES = sorted(
    path.relative_to(IMAGES)
    for path in IMAGES.rglob("*")
    if path.is_file() and ".cache" not in path.parts and (path.suffix == ".sh" or path.name.endswith("Dockerfile"))
)
# The architectures of Debian whose kernels have what sandboxes need, as the profile spells them.
OWN_CALLS = {"arch_prctl", "riscv_flush_icache", "riscv_hwprobe"}  # no other architecture has them
WANTED = {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"}


@pytest.mark.parametrize("file", FILES, ids=str)
def test_a_dockerfile_or_step_names_no_architecture(file):
    assert ONE_MACHINE.findall((IMAGES / file).read_text(encoding="utf-8")) == []


def test_a_file_that_names_one_would_be_seen():
    for text in ("FROM debian:amd64", "--platform linux/arm64", "manylinux_2_28_x86_64", "/usr/lib/x86_64-linux-gnu"):
        assert ONE_MACHINE.search(text)
    assert len(FILES) >= 12


def test_the_profile_holds_for_more_than_one_architecture_and_no_rule_for_one_alone():
    profile = json.loads((IMAGES / "seccomp.json").read_text(encoding="utf-8"))
    named = set(profile.get("architectures", [])) | {entry["architecture"] for entry in profile.get("archMap", [])}
    assert named >= WANTED
    for rule in profile["syscalls"]:
        conditions = {**rule.get("includes", {}), **rule.get("excludes", {})}
        assert "arches" not in conditions or set(rule["names"]) <= OWN_CALLS, rule["names"][:3]


def test_every_package_is_pinned_for_each_architecture_or_has_one_wheel_for_all():
    machines = tomllib.loads((IMAGES / "pins.toml").read_text(encoding="utf-8"))["python"]["machines"]
    assert {"x86_64", "aarch64"} <= set(machines)
    for lock in ("base/requirements.txt", "judge/requirements.txt"):
        text = (IMAGES / lock).read_text(encoding="utf-8")
        pinned = dict(re.findall(r"^([\w-]+)==[^\n]*\n((?:    --hash[^\n]*\n?)+)", text, re.MULTILINE))
        assert len(pinned) == text.count("==")
        # What is compiled has a wheel for each.
        for name in {"numpy", "scipy", "pandas", "rapidfuzz", "scikit-learn"} & pinned.keys():
            assert pinned[name].count("--hash") == len(machines), name
