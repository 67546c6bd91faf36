"""The strict sandbox shows the adapter and its template, and says so in a form the front door reads."""

from __future__ import annotations

import json

from hermit.domain import spec, strict
from hermit.domain.network import Network
from hermit.domain.sandbox import Enforce


def test_a_strict_sandbox_shows_the_adapter_and_the_template_and_nothing_else() -> None:
    made = strict.sandbox("/adapter", template="/template")
    assert [(bind.source, bind.writable) for bind in made.mounts] == [("/adapter", False), ("/template", False)]
    assert (made.network, made.allowed_hosts, made.forwards) == (Network.ISOLATED, (), ())
    assert (made.env, made.env_allow, made.packages, made.framework) == ((), (), (), False)
    assert made.enforce is Enforce.REQUIRED
    assert not made.recorded


def test_the_variable_holds_the_same_sandbox_for_the_front_door() -> None:
    for enforce in Enforce:
        made = strict.sandbox("/the adapter", enforce=enforce)
        text = strict.to_environment(made)
        assert "\n" not in text
        assert spec.parsed(text.encode()) == made
        assert json.loads(text)["enforce"] == enforce.value
