"""What the relay tries, from inside, before the command starts. Each check has a name and says what it saw.

A check is a function that returns whether the sandbox is closed there, and what it saw. One that cannot be tried fails.
"""

from __future__ import annotations

import _ctypes
import _socket
import errno
import os

import network
import unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

Seen = tuple[bool, str]
Result = tuple[str, bool, str]

CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
# What a sandbox can write beside what it was granted, and what has to be mounted there: each is its own and bounded,
# or belongs to the kernel.
OWN_WRITABLE = {"/tmp": "tmpfs", "/dev/shm": "tmpfs", "/proc": "proc", "/dev/pts": "devpts"}  # noqa: S108
# The devices every program may expect, by their numbers: a name alone could stand for the disk.
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9), "tty": (5, 0)}
DEVICE_LINKS = ("core", "fd", "ptmx", "stderr", "stdin", "stdout")
DEVICE_DIRECTORIES = ("pts", "shm")
QUEUES = ("shm", "sem", "msg")
TYPE_BITS, LINK, DIRECTORY, CHARACTERS = 0o170000, 0o120000, 0o040000, 0o020000  # `stat` costs more than all of them
MOST_TRIED = 16
CLONE_NEWCGROUP = 0x02000000


def run(orders: dict[str, Any]) -> list[Result]:
    """Every check the orders ask for, in order; none where nothing is confined."""
    if not orders["confined"]:
        return []
    return [tried(name, check, given) for name, check, given in plan(orders)]


def tried(name: str, check: Callable[..., Seen], given: tuple[Any, ...]) -> Result:
    """What a check saw; one that breaks has not shown that anything is closed."""
    try:
        return (name, *check(*given))
    except (OSError, ValueError, LookupError) as failure:
        return name, False, f"it could not be tried: {type(failure).__name__}: {failure}"


def plan(orders: dict[str, Any]) -> list[tuple[str, Callable[..., Seen], tuple[Any, ...]]]:
    """The checks and what each is given. An order that an older host does not know to give leaves its check out."""
    status = fields_of(read("/proc/self/status"))
    mounted = mounts_of(read("/proc/self/mountinfo"))
    targets = [target for target, *_ in mounted]
    asked = {
        "descriptors": ("declared descriptors only", descriptors),
        "settings": ("kernel settings closed", settings),
        "granted": ("grants are what was opened", same),
        "read_only": ("grants for reading read-only", unwritable),
        "sockets": ("no socket of the host", absent),
        "probes": ("secrets absent", absent),
    }
    return [
        ("unprivileged user", unprivileged, (status["Uid"],)),
        ("unprivileged group", unprivileged, (status["Gid"],)),
        ("no group of the host", groups, (status,)),
        *((f"no capability: {name}", capability, (status[name],)) for name in CAPABILITIES),
        ("no new privileges", privileges, (status,)),
        *((f"own namespaces: {name}", namespace, (name, link)) for name, link in orders["namespaces"].items()),
        *own_proc(orders, status, mounted),
        ("own init", init, ()),
        ("no terminal", terminal, ()),
        ("host name fixed", host_name, ()),
        ("no System V objects", system_v, ()),
        ("read-only but for grants", writable, (mounted, orders["writable"])),
        ("root sealed", sealed, ()),
        *((f"scratch fresh: {path}", fresh, (path, targets)) for path in scratch(orders)),
        ("known devices only", devices, (targets,)),
        *([("no control group namespace", control_groups, ())] if "root" in orders else []),
        *((name, check, (orders[key],)) for key, (name, check) in asked.items() if key in orders),
        *(
            [("secrets absent by any other name", unseen.unseen, (orders["secrets"], mounted))]
            if "secrets" in orders
            else []
        ),
        *(network.plan(orders) if orders["network"] == "isolated" else ()),
    ]


def own_proc(orders: dict[str, Any], status: dict[str, str], mounted: list[Mount]) -> list[tuple[str, Any, Any]]:
    """What ``/proc`` has to be: the sandbox's own, or the one of the sandbox around it, where no other can be had."""
    if "lent_proc" not in orders:
        return [("own processes", processes, ()), ("own /proc", proc, (status, mounted))]
    import around  # noqa: PLC0415 - few sandboxes lie inside one of root's

    return around.plan(orders, status, mounted)


def read(path: str) -> bytes:
    """The whole of a file; cheaper than a file object, which every start would pay for."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)


def fields_of(status: bytes) -> dict[str, str]:
    """What the kernel says of a process, by name."""
    return dict(line.split(":\t", 1) for line in status.decode().splitlines() if ":\t" in line)


Mount = tuple[str, bytes, bytes, bool, bytes]


def mounts_of(mountinfo: bytes) -> list[Mount]:
    """Every mount: where it is, which directory of its file system it shows, of which kind, if it is writable, and of what."""
    found = []
    for line in mountinfo.splitlines():
        fields = line.split(b" ")
        kind = fields[fields.index(b"-", 6) + 1]
        target, root = os.fsdecode(unescape(fields[4])), unescape(fields[3])
        found.append((target, root, kind, b"rw" in fields[5].split(b","), fields[2]))
    return found


def unescape(field: bytes) -> bytes:
    """A path of mountinfo as it is: blanks, tabs, newlines and backslashes stand there in octal."""
    if b"\\" in field:
        for code in (b"040", b"011", b"012", b"134"):
            field = field.replace(b"\\" + code, bytes([int(code, 8)]))
    return field


def inside(path: str, roots: Iterable[str]) -> bool:
    """Whether a path lies below one of the roots."""
    return any(path.startswith(root.rstrip("/") + "/") for root in roots)


def unprivileged(ids: str) -> Seen:
    """None of the four, real, effective, saved and of the file system, is root's."""
    return "0" not in ids.split(), " ".join(ids.split())


def groups(status: dict[str, str]) -> Seen:
    """No group of the host has a name inside; one that has none is shown as the overflow group."""
    overflow = read("/proc/sys/kernel/overflowgid").decode().strip()
    named = set(status["Groups"].split()) - {overflow, *status["Gid"].split()}
    return not named, ", ".join(sorted(named)) or "none"


def capability(mask: str) -> Seen:
    """A set of capabilities is empty."""
    return not int(mask, 16), mask


def privileges(status: dict[str, str]) -> Seen:
    """No program that the command starts gains privileges."""
    return status["NoNewPrivs"] == "1", f"NoNewPrivs {status['NoNewPrivs']}"


def namespace(name: str, outer: str) -> Seen:
    """A namespace is not the host's."""
    own = os.readlink(f"/proc/self/ns/{name}")
    return own != outer, own if own != outer else f"shared with the host: {own}"


def processes() -> Seen:
    """The relay is the only process there is."""
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return seen == [os.getpid()], f"{len(seen)} visible"


def proc(status: dict[str, str], mounted: list[Mount]) -> Seen:
    """``/proc`` was mounted for this sandbox: it knows this process by the number it has inside, and by no other."""
    own = str(os.getpid())
    numbers = (os.readlink("/proc/self"), *status["NSpid"].split())
    whole = [(root, kind) for target, root, kind, *_ in mounted if target == "/proc"] == [(b"/", b"proc")]
    mount = "mounted whole" if whole else "not a mount of its own"
    return whole and set(numbers) == {own}, f"{mount}, shows process {own} as {', '.join(numbers)}"


def init() -> Seen:
    """The relay is the sandbox's init: it has no parent inside, and nobody inside can end it."""
    number, parent = os.getpid(), os.getppid()
    return (number, parent) == (1, 0), f"process {number}, parent {parent}"


def terminal() -> Seen:
    """No terminal controls this session: nothing can be typed into the caller's."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as refused:
        return refused.errno in (errno.ENXIO, errno.ENOENT), said(refused)
    return False, "/dev/tty can be opened"


def host_name() -> Seen:
    """The host name cannot be set; the one that is there is tried, so nothing changes where it can."""
    name = os.uname().nodename
    try:
        _socket.sethostname(name)
    except PermissionError:
        return True, name
    return False, f"{name} can be changed"


def system_v() -> Seen:
    """No shared memory, semaphore or message queue of System V exists yet: each file is its header alone."""
    found = []
    for name in QUEUES:
        try:
            found += [name] * (read(f"/proc/sysvipc/{name}").count(b"\n") - 1)
        except FileNotFoundError:  # the kernel has none of them
            continue
    return not found, ", ".join(found) or "none"


def writable(mounted: list[Mount], granted: list[str]) -> Seen:
    """Nothing is writable but what was granted, what is the sandbox's own, and devices."""
    found = []
    for target, _, kind, changeable, _ in mounted:
        if changeable and target not in granted and not inside(target, granted):
            own = OWN_WRITABLE.get(target) == kind.decode()
            device = target.startswith("/dev/") and target[5:] in DEVICES
            if not (own or device):
                found.append(target)
    return not found, ", ".join(found) or f"{len(granted)} granted"


def create(directory: str) -> OSError | None:
    """Why no file can be made in a directory, ``None`` if it can; the file never has a name, and is gone at once."""
    try:
        os.close(os.open(directory, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as refused:
        return refused
    return None


def sealed() -> Seen:
    """No file can be made at the root."""
    refused = create("/")
    return refused is not None and refused.errno == errno.EROFS, said(refused) if refused else "a file can be made in /"


def unwritable(granted: list[str]) -> Seen:
    """No file can be made in a directory that was granted for reading; the first few are tried."""
    found, tries = [], 0
    for path in granted:
        refused = create(path)
        if refused is not None and refused.errno == errno.ENOTDIR:
            continue
        if refused is None or refused.errno not in (errno.EROFS, errno.EACCES):
            found.append(f"{path}: {said(refused) if refused else 'a file can be made'}")
        tries += 1
        if tries == MOST_TRIED:
            break
    return not found, ", ".join(found) or f"{tries} tried"


def same(expected: list[tuple[str, int, int]]) -> Seen:
    """Each granted place shows the very file that the host opened for it, whatever has that file's name by now."""
    found = []
    for path, device, inode in expected:
        shown = os.stat(path)
        if (shown.st_dev, shown.st_ino) != (device, inode):
            found.append(path)
    return not found, ", ".join(found[:MOST_TRIED]) or f"{len(expected)} compared"


def scratch(orders: dict[str, Any]) -> list[str]:
    """The directories in memory that no grant replaces; none where the host does not say what it granted."""
    if "read_only" not in orders:
        return []
    granted = (*orders["writable"], *orders["read_only"])
    return [path for path in ("/tmp", "/dev/shm") if path not in granted]  # noqa: S108 - the sandbox's own


def fresh(directory: str, targets: list[str]) -> Seen:
    """A directory in memory holds nothing but the way to what is shown below it."""
    paths = [f"{directory}/{name}" for name in os.listdir(directory)]
    found = [path for path in paths if not shown(path, targets)]
    return not found, ", ".join(found[:MOST_TRIED]) or f"{len(paths)} shown below it"


def shown(path: str, targets: list[str]) -> bool:
    """Whether something is mounted at a path or below it."""
    return path in targets or any(target.startswith(path + "/") for target in targets)


def devices(targets: list[str]) -> Seen:
    """``/dev`` has the few harmless devices, by number, and no terminal; what was granted there is not a device."""
    found = [f"/dev/{name}" for name in os.listdir("/dev") if not expected(name, targets)]
    found += [f"/dev/pts/{name}" for name in os.listdir("/dev/pts") if name != "ptmx"]
    return not found, ", ".join(found) or ", ".join(DEVICES)


def expected(name: str, targets: list[str]) -> bool:
    """Whether an entry of ``/dev`` is what it has to be."""
    entry = os.lstat(f"/dev/{name}")
    kind = entry.st_mode & TYPE_BITS
    if name in DEVICES:
        return kind == CHARACTERS and (os.major(entry.st_rdev), os.minor(entry.st_rdev)) == DEVICES[name]
    if name in DEVICE_LINKS:
        return kind == LINK
    return kind == DIRECTORY and (name in DEVICE_DIRECTORIES or shown(f"/dev/{name}", targets))


def control_groups() -> Seen:
    """No namespace of control groups can be made, by whose file system root's own bounds could be lifted.

    The kernel refuses it here for want of a capability; the filter answers before that, and with another word.
    """
    integer = type("integer", (_ctypes._SimpleCData,), {"_type_": "i"})  # noqa: SLF001 - `ctypes` costs as much as a sandbox
    flags = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    function = type("function", (_ctypes.CFuncPtr,), {"_flags_": flags, "_restype_": integer})
    program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this program
    made = function(_ctypes.dlsym(program, "unshare"))(CLONE_NEWCGROUP)
    number = _ctypes.get_errno()
    return made != 0 and number == errno.ENOSPC, os.strerror(number) if made else "one was made"


def descriptors(declared: list[int]) -> Seen:
    """No descriptor is open but the declared ones and the three streams."""
    # The listing's own descriptor is among the names, and closed when they are looked at.
    opened = [int(name) for name in os.listdir("/proc/self/fd") if exists(f"/proc/self/fd/{name}")]
    found = sorted(set(opened) - {0, 1, 2, *declared})
    return not found, ", ".join(map(str, found)) or f"{len(opened)} open"


def settings(paths: list[str]) -> Seen:
    """No setting of the kernel can be opened for writing; nothing is written where one can."""
    found = []
    for path in paths:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK))
        except OSError as refused:
            if refused.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOENT):
                continue
            found.append(f"{path}: {said(refused)}")
        else:
            found.append(path)
    return not found, ", ".join(found) or f"{len(paths)} tried"


def absent(paths: list[str]) -> Seen:
    """The paths that must not exist do not."""
    found = [path for path in paths if exists(path)]
    return not found, ", ".join(found) or f"{len(paths)} paths absent"


def exists(path: str) -> bool:
    """Whether anything has this name, a dangling link included; a name that may not be looked up counts."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def said(refused: OSError) -> str:
    """The kernel's reason."""
    return refused.strerror or str(refused)
