"""How much of the machine a sandboxed command may use, and which of these bounds ended it."""

from __future__ import annotations

from dataclasses import dataclass, fields

MIB = 1024 * 1024
# Nothing that is confined runs for ever, unless somebody says so.
DAY_S = 24 * 60 * 60
# No machine has more of anything, and the kernel takes a MiB count of this size.
MOST = 1 << 42

DATA_OF_EACH = "rlimit data, each process"
WATCHDOG = "watchdog over the sandbox's processes"

_OPTIONAL = frozenset({"cpus", "memory_mb", "file_mb", "open_files", "cpu_s", "pids", "wall_s", "disk_mb"})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The bounds of one command; ``None`` means that Hermit sets no bound of its own.

    ``memory_mb``, ``file_mb`` and ``disk_mb`` count MiB, ``cpu_s`` and ``wall_s`` seconds. ``memory_mb`` bounds the
    memory of the whole sandbox, ``file_mb`` each file it writes, ``open_files`` the descriptors of each process,
    ``cpus`` the processors they run on, ``cpu_s`` the processor time of each process, ``pids`` the processes and
    threads of the sandbox together.
    ``disk_mb`` bounds the writable scratch, ``/tmp`` and ``/dev/shm`` each; ``tmp_mb`` is an earlier name of it, gives
    way to it, and always reads as the size that holds. ``output_bytes`` is how much of each output stream is kept; the
    rest is read, counted and dropped.

    Raises:
        ValueError: A bound is not a positive number, or is larger than any machine.
    """

    memory_mb: int | None = 4096
    file_mb: int | None = 1024
    open_files: int | None = 1024
    cpus: int | None = None
    cpu_s: int | None = DAY_S
    pids: int | None = 512
    wall_s: float | None = DAY_S
    disk_mb: int | None = None
    tmp_mb: int = 1024
    output_bytes: int = 1 * MIB

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None and field.name in _OPTIONAL:
                continue
            kinds = (int, float) if field.name == "wall_s" else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds) or not 0 < value <= MOST:
                raise ValueError(f"limits.{field.name} must be a number above 0 and up to {MOST}, not {value!r:.40}")
        if self.disk_mb is not None:
            object.__setattr__(self, "tmp_mb", self.disk_mb)

    def set_inside(self, *, pids: int | None, whole: bool = False) -> dict[str, int]:
        """The bounds that the relay sets on the command itself; ``pids`` counts the sandbox's own processes too.

        ``whole`` says that something else bounds the memory of the sandbox as a whole. The kernel's bound on the data
        of a process leaves no trace of whom it refused, so it is a quarter wider then: what fills the memory meets the
        bound that can give evidence first, and one process that asks for far more at once is still refused.
        """
        data = self.memory_mb
        if data is not None and whole:
            data += max(1, data // 4)
        held = {
            "memory_mb": data,
            "file_mb": self.file_mb,
            "open_files": self.open_files,
            "cpu_s": self.cpu_s,
            "pids": pids,
        }
        return {name: value for name, value in held.items() if value is not None}

    def held(self, *, pids: str, memory: str = DATA_OF_EACH) -> tuple[tuple[str, float, str], ...]:
        """Each bound with what holds it; what holds ``pids`` and ``memory`` depends on who started the sandbox."""
        mechanisms = {
            "memory_mb": (self.memory_mb, memory),
            "file_mb": (self.file_mb, "rlimit file size"),
            "open_files": (self.open_files, "rlimit open files, each process"),
            "cpus": (self.cpus, "affinity, which the command may change"),
            "cpu_s": (self.cpu_s, "rlimit cpu, each process"),
            "pids": (self.pids, pids),
            "wall_s": (self.wall_s, "clock of the host"),
            "disk_mb": (self.tmp_mb, "size of the file system"),
            "output_bytes": (self.output_bytes, "host"),
        }
        return tuple((name, value, by) for name, (value, by) in mechanisms.items() if value is not None)


@dataclass(frozen=True)
class Ended:
    """Which bound ended a command, and what was seen of it.

    Args:
        reason: ``memory``, ``cpu``, ``pids``, ``file size``, ``disk`` or ``wall``; ``machine memory`` where the
            machine, not the sandbox, had none left; empty where no bound did.
        evidence: What was counted or measured, in a few words.
    """

    reason: str = ""
    evidence: str = ""

    def __str__(self) -> str:
        return f"{self.reason}: {self.evidence}" if self.reason else ""
