"""A host that publishes what others made is known by its name, its neighbours by theirs, and nobody else."""

from __future__ import annotations

import pytest

from hermit.run.doctor import publishers
from hermit.run.doctor.publishers import PUBLISHERS, REASONS


@pytest.mark.parametrize(
    ("host", "kind"),
    [
        ("github.com", publishers.CODE),
        ("raw.githubusercontent.com:443", publishers.CODE),
        ("*.GitHubUserContent.com", publishers.CODE),
        ("gitlab.example.com", publishers.CODE),
        ("datasets-server.huggingface.example", publishers.DATA),
        ("www.kaggle.com", publishers.DATA),
        ("files.pythonhosted.example", publishers.PACKAGES),
        ("pypi.mirror.example.org:8080", publishers.PACKAGES),
        ("*.google.com", publishers.SEARCH),
        ("drive.google.com", publishers.STORE),
        ("*.amazonaws.com", publishers.STORE),
        ("bucket.s3.eu-west-1.amazonaws.com", publishers.STORE),
        ("web.archive.org", publishers.ARCHIVE),
        ("cdn.jsdelivr.net", publishers.COPIES),
    ],
)
def test_a_host_of_the_table_is_known_with_its_kind(host: str, kind: str) -> None:
    assert publishers.kind_of(host) == kind


@pytest.mark.parametrize(
    "host",
    [
        *("api.openai.com", "api.anthropic.com", "mygithub.example.com", "notgithub.com", "github-com.org"),
        *("bedrock-runtime.us-east-1.amazonaws.com", "generativelanguage.googleapis.com", "127.0.0.1:80", "[::1]:80"),
    ],
)
def test_a_host_that_only_looks_like_one_is_not(host: str) -> None:
    assert publishers.kind_of(host) == ""


def test_each_host_stands_once_and_each_kind_has_its_reason() -> None:
    hosts = [each.host for each in PUBLISHERS]
    assert len(hosts) == len(set(hosts)) > 70
    assert {each.kind for each in PUBLISHERS} == set(REASONS)
    assert {*publishers.LABELS.values()} <= set(REASONS)
    assert all(host == host.lower() and "." in host and not host.startswith(".") for host in hosts)
