from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest

from hermit.config.load import load
from hermit.errors import ConfigError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from hermit.config.schema import RunConfig


HOME = MappingProxyType({"HOME": "/home/somebody"})


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., RunConfig]:
    """Loads this text as ``run.yaml`` of the test's directory, with these overrides."""

    def read(
        text: str | bytes,
        *overrides: str,
        environ: Mapping[str, str] = HOME,
    ) -> RunConfig:
        path = tmp_path / "run.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load(path, overrides, environ=environ)

    return read


@pytest.fixture
def refused(tmp_path: Path, read: Callable[..., RunConfig]) -> Callable[..., str]:
    """The message that this text is refused with, without the test's directory in it."""

    def refused(text: str | bytes, *overrides: str) -> str:
        with pytest.raises(ConfigError) as caught:
            read(text, *overrides)
        assert caught.value.exit_code == ExitCode.CONFIG
        return str(caught.value).replace(f"{tmp_path}/", "")

    return refused
