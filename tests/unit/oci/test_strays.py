"""What is left of the dead is removed, and nothing else."""

from __future__ import annotations

import secrets
import subprocess

import pytest

from hermit.oci import container as containers
from hermit.oci import strays
from hermit.proc import capture

OWN = dict(containers.labels("/runs/one"))


@pytest.fixture(scope="module")
def gone() -> str:
    """The number of a process that has ended."""
    with subprocess.Popen(["true"]) as child:
        child.wait()
    return str(child.pid)


@pytest.mark.parametrize(
    ("changes", "dead"),
    [
        ({}, False),
        ({containers.STARTED_LABEL: "1"}, True),
        ({containers.OWNER_LABEL: "gone"}, True),
        ({containers.OWNER_LABEL: "gone", containers.HOST_LABEL: "another-machine"}, False),
        ({containers.OWNER_LABEL: "gone", containers.PROCESSES_LABEL: "1"}, False),
        ({containers.OWNER_LABEL: "no number"}, False),
        ({containers.OWNER_LABEL: ""}, False),
        ({containers.BOOT_LABEL: "an earlier life"}, True),
        ({containers.BOOT_LABEL: "an earlier life", containers.HOST_LABEL: "another-machine"}, False),
        ({containers.BOOT_LABEL: ""}, False),
    ],
)
def test_an_owner_is_dead_only_where_that_can_be_proven(changes, dead, gone):
    labels = {**OWN, **{name: gone if value == "gone" else value for name, value in changes.items()}}
    assert strays.dead(labels) is dead


def test_a_container_without_labels_is_nobodys(gone):
    assert not strays.dead({})
    assert not strays.dead({containers.OWNER_LABEL: gone})


@pytest.mark.docker
@pytest.mark.image
def test_a_container_of_a_dead_owner_is_removed_and_those_of_others_stay(engine, gone):
    made = {}
    try:
        for kind, changes in {
            "dead": {containers.OWNER_LABEL: gone},
            "alive": {containers.OWNER_LABEL: "1", containers.STARTED_LABEL: containers.started(1) or ""},
            "elsewhere": {containers.OWNER_LABEL: gone, containers.HOST_LABEL: "another-machine"},
        }.items():
            labels = [word for name, value in {**OWN, **changes}.items() for word in ("--label", f"{name}={value}")]
            name = f"hermit-stray-{secrets.token_hex(4)}"
            made[kind] = capture([engine.program, "create", "--name", name, *labels, "hermit"], timeout_s=60)
        removed = strays.prune(engine)
        ids = {kind: finished.stdout.decode().strip() for kind, finished in made.items()}
        assert ids["dead"] in removed
        assert not {ids["alive"], ids["elsewhere"]} & set(removed)
        listed = capture([engine.program, "ps", "--all", "--quiet", "--no-trunc"], timeout_s=60).stdout.decode()
        assert [ids[kind] in listed for kind in ("dead", "alive", "elsewhere")] == [False, True, True]
    finally:
        for finished in made.values():
            containers.remove(engine, finished.stdout.decode().strip())
