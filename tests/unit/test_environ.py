"""The host's variables."""

from __future__ import annotations

from hermit import environ


def test_a_snapshot_does_not_change_with_the_environment(monkeypatch):
    monkeypatch.setenv("HERMIT_TEST_VARIABLE", "before")
    taken = environ.snapshot()
    monkeypatch.setenv("HERMIT_TEST_VARIABLE", "after")
    assert taken["HERMIT_TEST_VARIABLE"] == "before"
