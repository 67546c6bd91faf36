"""What an agent has of its adapter: texts to read, and tools that run in a strict sandbox of their own.

It is used inside the agent's sandbox, where the adapter is frozen and read-only. Without an adapter there is a session too,
an empty one: an agent that is written for both needs no second way.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from hermit.adapter import files as adapter_files
from hermit.adapter import manifest
from hermit.adapter.exports import Exported, exported
from hermit.run.adapter_code import AdapterError, call_adapter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermit.adapter.exports import AdapterTool, Role, Skill
    from hermit.adapter.manifest import Manifest


class Session:
    """An adapter as an agent uses it.

    Args:
        adapter: The adapter's directory, as ``run`` gets it; ``None`` for none.
    """

    def __init__(self, adapter: str | os.PathLike[str] | None) -> None:
        self._directory = None if adapter is None else os.fspath(adapter)

    @property
    def context(self) -> str:
        """What every task begins with: ``ADAPTER.md``, then what else the adapter exports as context; empty without one."""
        return "\n\n".join(text.strip("\n") for text in self._exported.context.values() if text.strip())

    @property
    def skills(self) -> Mapping[str, Skill]:
        """What can be looked up, by name: each has a ``description``, a ``text``, and ``files`` beside it."""
        return self._exported.skills

    @property
    def roles(self) -> Mapping[str, Role]:
        """Who an agent can be, or hand work to, by name: each has a ``description``, a ``text`` and ``settings``."""
        return self._exported.roles

    @property
    def tools(self) -> Mapping[str, AdapterTool]:
        """What can be called, by name: each has a ``description``, and says what it ``takes`` and ``gives``."""
        return self._exported.tools

    @property
    def problems(self) -> tuple[tuple[str, str], ...]:
        """What of the adapter could not be had: a path and why."""
        return self._exported.problems

    def read(self, path: str) -> bytes:
        """What a file of the adapter holds.

        Raises:
            AdapterError: There is none.
        """
        data = self._files.get(path)
        if data is None:
            raise AdapterError(f"the adapter has no file {path!r}")
        return data

    def call(self, tool: str, argument: Any = None, *, timeout_s: float | None = None) -> Any:
        """Calls a tool with one value of JSON, in a strict sandbox, and returns what it returns.

        Args:
            tool: Its name.
            argument: What it gets.
            timeout_s: Seconds it may take; a minute unless given, and never more.

        Raises:
            AdapterError: There is no such tool, it failed, or took too long.
            SandboxError: The strict sandbox failed.
            PlaceError: None can be started here.
        """
        if tool not in self.tools or self._manifest is None or self._directory is None:
            known = ", ".join(sorted(self.tools)) or "none"
            raise AdapterError(f"the adapter has no tool {tool!r}; it has {known}")
        file = os.path.join(self._directory, self._manifest.exports.tools)
        return call_adapter(file, tool, argument=argument, timeout_s=timeout_s)

    @functools.cached_property
    def _files(self) -> adapter_files.Files:
        return adapter_files.Files() if self._directory is None else adapter_files.read(self._directory).files

    @functools.cached_property
    def _manifest(self) -> Manifest | None:
        """The manifest; ``None`` without an adapter.

        Raises:
            AdapterError: The directory is no adapter.
        """
        if self._directory is None:
            return None
        data = self._files.get(manifest.FILE)
        if data is None:
            raise AdapterError(f"{self._directory} is no adapter: it has no {manifest.FILE}")
        found, problems = manifest.read(data)
        if found is None:
            raise AdapterError(f"{self._directory} is no adapter: {problems[0]}")
        return found

    @functools.cached_property
    def _exported(self) -> Exported:
        if self._manifest is None:
            return Exported({}, {}, {}, {})
        return exported(self._files, self._manifest.exports)
