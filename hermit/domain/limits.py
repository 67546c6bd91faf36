"""How much of the machine a sandboxed command may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

MIB = 1024 * 1024
# No machine has more of anything, and the kernel takes a MiB count of this size.
MOST = 1 << 42


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The bounds of one command; ``None`` means that Hermit sets no bound of its own.

    ``memory_mb`` and ``file_mb`` count MiB, ``cpu_s`` and ``wall_s`` seconds. ``memory_mb`` bounds the data of each
    process, ``file_mb`` each file it writes, ``cpu_s`` the processor time of each process, ``pids`` the processes and
    threads of the sandbox together. ``tmp_mb`` bounds ``/tmp`` and ``/dev/shm`` each. ``output_bytes`` is how much of
    each output stream is kept; the rest is read, counted and dropped.

    Raises:
        ValueError: A bound is not a positive number, or is larger than any machine.
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
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value <= MOST:
                raise ValueError(f"limits.{field.name} must be a number above 0 and up to {MOST}, not {value!r:.40}")

    def set_inside(self, *, pids: int | None) -> dict[str, int]:
        """The bounds that the relay sets on the command itself; ``pids`` counts the sandbox's own processes too."""
        held = {"memory_mb": self.memory_mb, "file_mb": self.file_mb, "cpu_s": self.cpu_s, "pids": pids}
        return {name: value for name, value in held.items() if value is not None}

    def held(self, *, pids: str) -> tuple[tuple[str, float, str], ...]:
        """Each bound with what holds it; what holds ``pids`` depends on who started the sandbox."""
        mechanisms = {
            "memory_mb": "rlimit data, each process",
            "file_mb": "rlimit file size",
            "cpu_s": "rlimit cpu, each process",
            "pids": pids,
            "wall_s": "clock of the host",
            "tmp_mb": "size of the file system",
            "output_bytes": "host",
        }
        given = ((name, getattr(self, name), held_by) for name, held_by in mechanisms.items())
        return tuple((name, value, held_by) for name, value, held_by in given if value is not None)
