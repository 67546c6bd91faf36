"""How much of the machine a sandboxed command may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The bounds of one command; ``None`` means that Hermit sets no bound of its own.

    ``memory_mb`` and ``file_mb`` count MiB, ``cpu_s`` and ``wall_s`` seconds. ``memory_mb`` bounds the data of each
    process, ``file_mb`` each file it writes, ``cpu_s`` the processor time of each process, ``pids`` the processes and
    threads of the sandbox together. ``tmp_mb`` bounds ``/tmp`` and ``/dev/shm`` each. ``output_bytes`` is how much of
    each output stream is kept; the rest is read, counted and dropped.

    Raises:
        ValueError: A bound is not a positive number.
    """

    memory_mb: int | None = None
    file_mb: int | None = None
    cpu_s: int | None = None
    pids: int | None = 512
    wall_s: float | None = None
    tmp_mb: int = 1024
    output_bytes: int = 1 * MIB

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name not in ("tmp_mb", "output_bytes"):
                continue
            kinds = (int, float) if field.name == "wall_s" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value < float("inf"):
                raise ValueError(f"limits.{field.name} must be a positive number, not {value!r}")
