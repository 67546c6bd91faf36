from __future__ import annotations

import pytest

from hermit.oci.failure import failure, refusal

SEEN = [
    (
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "may not use the container engine",
        "usermod",
    ),
    (
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "no container engine answers",
        "make engine",
    ),
    (
        "Cannot connect to the Docker daemon at tcp://127.0.0.1:1. Is the docker daemon running?",
        "no container engine answers",
        "make engine",
    ),
    (
        "Unable to find image 'hermit:latest' locally\ndocker: Error response from daemon: Get ...",
        "the image hermit does not exist",
        "make image",
    ),
    (
        "Error response from daemon: no such image: hermit: No such image: hermit:latest",
        "the image hermit does not exist",
        "make image",
    ),
    (
        "docker: Error response from daemon: invalid mount config for type \"bind\": bind source path does not exist: /nope.\nSee 'docker run --help'.",
        "does not exist on the engine's machine",
        "paths",
    ),
    (
        "docker: opening seccomp profile (/nope.json) failed: open /nope.json: no such file or directory.",
        "seccomp profile cannot be read",
        "reinstall",
    ),
    (
        'docker: Error response from daemon: Conflict. The container name "/x" is already in use by container "ab".',
        "another container has the name",
        "wait",
    ),
    (
        "docker: Error response from daemon: mkdir /var/lib/docker/overlay2/x: no space left on device.",
        "disk is full",
        "docker system df",
    ),
]


@pytest.mark.parametrize(("stderr", "what", "cure"), SEEN)
def test_each_refusal_of_an_engine_says_what_to_do(stderr, what, cure):
    error = refusal(stderr, program="docker", image="hermit")
    assert what in error.what
    assert cure in error.cure


def test_a_refusal_that_nobody_knows_keeps_the_engines_own_words():
    error = refusal("docker: Error response from daemon: the moon is full.\nSee 'docker run --help'.\n")
    assert "the moon is full" in error.what


@pytest.mark.parametrize("code", [0, 1, 2, 4, 130, 137])
def test_a_code_of_the_command_is_no_failure_of_the_engine(code):
    assert failure(code, "Cannot connect to the Docker daemon") is None


@pytest.mark.parametrize("code", [126, 127])
def test_a_program_that_the_command_did_not_find_is_not_the_engines_failure(code):
    assert failure(code, "sh: 1: foo: not found") is None


def test_an_image_without_its_entrypoint_is_the_engines_failure():
    words = 'docker: Error response from daemon: OCI runtime create failed: exec: "hermit": executable file not found in $PATH: unknown.'
    error = failure(127, words, image="other")
    assert error is not None
    assert "the image other does not start" in error.what


def test_a_runtime_that_may_not_start_a_container_is_told_in_its_own_words():
    error = failure(
        126, "Error: crun: setrlimit `RLIMIT_NOFILE`: Operation not permitted: OCI permission denied", image="x"
    )
    assert error is not None
    assert "setrlimit" in error.what


def test_code_125_is_always_the_engines_failure():
    assert failure(125, "") is not None
