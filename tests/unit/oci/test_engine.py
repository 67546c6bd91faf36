"""Finding an engine, with clients that are scripts."""

from __future__ import annotations

import json

import pytest

from hermit.errors import PlaceError
from hermit.oci import engine as engines
from hermit.oci.engine import Engine, find, image_id, image_label

DOCKER = {
    "Client": {"Version": "28.2.2", "Os": "linux", "Arch": "amd64"},
    "Server": {"Version": "20.10.24+dfsg1", "Os": "linux", "Arch": "arm64"},
}
PODMAN = {"Client": {"Version": "4.3.1", "OsArch": "linux/amd64"}}


@pytest.fixture
def client(tmp_path):
    """Makes a client that answers everything alike; returns the environment that finds it."""

    def make(name, *, stdout="", stderr="", code=0):
        (tmp_path / f"{name}.out").write_text(stdout)
        (tmp_path / f"{name}.err").write_text(stderr)
        script = tmp_path / name
        script.write_text(
            f"#!/bin/sh\n/bin/cat {tmp_path}/{name}.out\n/bin/cat {tmp_path}/{name}.err >&2\nexit {code}\n"
        )
        script.chmod(0o755)
        return {"PATH": str(tmp_path)}

    return make


def test_a_docker_that_answers_is_found_with_its_versions(client, tmp_path):
    environ = client("docker", stdout=json.dumps(DOCKER))
    assert find(environ) == Engine(
        program=f"{tmp_path}/docker", client="28.2.2", server="20.10.24+dfsg1", platform="linux/arm64"
    )


def test_a_podman_without_a_service_answers_for_itself(client):
    engine = find(client("podman", stdout=json.dumps(PODMAN)))
    assert (engine.server, engine.platform, engine.podman) == ("4.3.1", "linux/amd64", True)


def test_podman_is_known_behind_the_client_of_docker(client):
    served = {**DOCKER, "Server": {**DOCKER["Server"], "Components": [{"Name": "Podman Engine", "Version": "4.3.1"}]}}
    assert find(client("docker", stdout=json.dumps(served))).podman
    assert not find(client("docker", stdout=json.dumps(DOCKER))).podman


# Recorded from engines of each kind: what `info` says of how they confine containers.
UBUNTU = {"SecurityOptions": ["name=apparmor", "name=seccomp,profile=builtin", "name=cgroupns"]}
FEDORA = {"SecurityOptions": ["name=seccomp,profile=builtin", "name=selinux", "name=cgroupns"]}
ROOTLESS = {"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless", "name=cgroupns"]}
REMAPPED = {"SecurityOptions": ["name=seccomp,profile=default", "name=userns"]}
OWN_PODMAN = {"host": {"security": {"apparmorEnabled": False, "rootless": True, "selinuxEnabled": True}}}
ROOTS_PODMAN = {"host": {"security": {"apparmorEnabled": True, "rootless": False, "selinuxEnabled": False}}}


@pytest.mark.parametrize(
    ("info", "podman", "traits", "userns"),
    [
        (UBUNTU, False, {"apparmor"}, ""),
        (FEDORA, False, {"selinux"}, ""),
        (ROOTLESS, False, {"rootless"}, ""),
        (REMAPPED, False, {"userns"}, "host"),
        (OWN_PODMAN, True, {"rootless", "selinux"}, "keep-id"),
        (ROOTS_PODMAN, True, {"apparmor"}, ""),
        (ROOTLESS, True, {"rootless"}, "keep-id"),
        ({"SecurityOptions": None}, False, set(), ""),
        ({"host": None}, True, set(), ""),
        ([], False, set(), ""),
    ],
)
def test_what_an_engine_does_to_containers_is_read_from_what_it_says(info, podman, traits, userns):
    engine = Engine("docker", "1", "1", "linux/amd64", podman, engines.traits(info))
    assert engine.traits == traits
    assert engine.userns == userns


def test_only_an_engine_that_maps_its_caller_to_root_is_refused():
    for info in (UBUNTU, FEDORA, REMAPPED, OWN_PODMAN):
        own = info is OWN_PODMAN
        engines.refuse_unfit(Engine("podman" if own else "docker", "1", "1", "linux/amd64", own, engines.traits(info)))
    with pytest.raises(PlaceError, match="the root of its containers") as caught:
        engines.refuse_unfit(Engine("docker", "1", "1", "linux/amd64", False, engines.traits(ROOTLESS)))
    assert "podman" in caught.value.cure


def test_podman_behind_the_client_of_docker_is_refused_for_it_takes_no_profile_from_it():
    with pytest.raises(PlaceError, match="takes no seccomp profile") as caught:
        engines.refuse_unfit(Engine("/usr/bin/docker", "28", "4.3.1", "linux/amd64", podman=True))
    assert "podman's own client" in caught.value.cure


def test_an_engine_that_says_nothing_of_itself_is_found_all_the_same(tmp_path):
    client = tmp_path / "docker"
    client.write_text(f"#!/bin/sh\n[ $1 = version ] || exit 1\necho '{json.dumps(DOCKER)}'\n")
    client.chmod(0o755)
    assert find({"PATH": f"{tmp_path}:/bin"}).traits == frozenset()


def test_podman_is_taken_where_docker_does_not_answer(client):
    client("docker", stdout='{"Server":null}', stderr="Cannot connect to the Docker daemon at x", code=1)
    assert find(client("podman", stdout=json.dumps(PODMAN))).client == "4.3.1"


def test_where_none_answers_the_reason_of_the_first_one_is_given(client):
    client("docker", stderr="permission denied while trying to connect to the Docker daemon socket", code=1)
    with pytest.raises(PlaceError, match="may not use"):
        find(client("podman", stderr="cannot clone: Operation not permitted", code=125))


def test_where_none_is_installed_the_cure_installs_one(tmp_path):
    with pytest.raises(PlaceError) as caught:
        find({"PATH": str(tmp_path)})
    assert "make engine" in caught.value.cure


def test_a_client_that_hangs_is_given_up(client, tmp_path, monkeypatch):
    environ = client("docker")
    (tmp_path / "docker").write_text("#!/bin/sh\nexec /bin/sleep 60\n")
    monkeypatch.setattr(engines, "ANSWER_S", 0.2)
    with pytest.raises(PlaceError, match="does not answer within"):
        find(environ)


@pytest.mark.parametrize("answer", ["", "null", "[]", '{"Client": {}}', "nonsense"])
def test_an_answer_that_is_no_version_is_refused(client, answer):
    with pytest.raises(PlaceError, match="no version"):
        find(client("docker", stdout=answer))


def test_an_image_that_does_not_exist_has_neither_id_nor_label(client, tmp_path):
    client("docker", stderr="Error response from daemon: no such image: x: No such image: x:latest", code=1)
    engine = Engine(f"{tmp_path}/docker", "1", "1", "linux/amd64")
    assert image_id(engine, "x") is None
    assert image_label(engine, "x", label="a") is None


def test_the_label_of_an_image_is_read(client, tmp_path):
    client("docker", stdout='{"a":"b"}\n')
    engine = Engine(f"{tmp_path}/docker", "1", "1", "linux/amd64")
    assert image_label(engine, "x", label="a") == "b"
    assert image_label(engine, "x", label="c") is None


def test_an_image_without_labels_has_none(client, tmp_path):
    client("docker", stdout="null\n")
    assert image_label(Engine(f"{tmp_path}/docker", "1", "1", "linux/amd64"), "x", label="a") is None


def test_an_engine_that_went_away_is_an_error_and_not_a_missing_image(client, tmp_path):
    client("docker", stderr="Cannot connect to the Docker daemon at x", code=1)
    with pytest.raises(PlaceError, match="no container engine answers"):
        image_id(Engine(f"{tmp_path}/docker", "1", "1", "linux/amd64"), "x")
