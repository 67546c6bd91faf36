"""`hermit image`: each command line that cannot be done is one clear message, before anything is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from hermit.cli import console
from hermit.oci.images import checkout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine on which no engine is installed."""
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize(
    "words",
    [
        ["build"],
        ["list"],
        ["inspect"],
        ["verify"],
        ["verify", "a", "--against", "b"],
        ["pull", "a"],
        ["push", "a", "b"],
        ["prune"],
        ["lock"],
    ],
)
def test_without_an_engine_each_command_is_one_refusal(hermit: Callable[..., Any], words: list[str]) -> None:
    said = hermit("image", *words)
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith("hermit: PATH: no container engine is installed\n  -> make engine")


@pytest.mark.parametrize("words", [["build"], ["lock"], ["verify"]])
def test_without_a_checkout_what_needs_one_says_so(
    hermit: Callable[..., Any], words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(checkout.hermit, "__file__", str(tmp_path / "site-packages" / "hermit" / "__init__.py"))
    said = hermit("image", *words)
    assert said.code == 3
    assert "installed without the files its images are built from" in said.err
    assert "hermit image pull" in said.err


def test_an_image_that_no_checkout_builds_is_compared_with_another_or_not_at_all(hermit: Callable[..., Any]) -> None:
    said = hermit("image", "verify", "mine")
    assert said.code == 2
    assert "this checkout builds hermit and hermit-judge, not mine" in said.err
    assert "--against" in said.err


def test_a_table_clips_nothing_however_narrow_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    console.print_rows(("name", "id"), [("hermit-environment:5aa1e83259e5", "6f4882aa1197"), ("[x]", "")])
    name = "hermit-environment:5aa1e83259e5"
    assert capsys.readouterr().out.splitlines() == [f"{'name':<{len(name)}}  id", f"{name}  6f4882aa1197", "[x]"]
