"""What the relay does when the host asks, and when the host has gone."""

from __future__ import annotations

import os

import pytest


@pytest.mark.parametrize(("said", "signals"), [(b"T", [15, 9]), (b"K", [9, 9]), (b"", [9])])
def test_the_relay_terms_and_kills_as_it_is_asked_and_kills_when_the_host_is_gone(inside, monkeypatch, said, signals):
    relay = inside("relay")
    sent = []
    monkeypatch.setattr(relay.family, "signal_all", sent.append)
    reader, writer = os.pipe()
    os.write(writer, said)
    os.close(writer)
    relay.listen(reader)
    os.close(reader)
    assert sent == signals
