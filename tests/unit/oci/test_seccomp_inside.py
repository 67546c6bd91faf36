"""What the profile refuses, tried from inside by a process that owns every namespace it has; and what it lets work."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from hermit.domain.bind import Bind
from hermit.oci.argv import Container, run_arguments
from hermit.proc import capture

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.docker, pytest.mark.image]

# Name, number on x86-64, number in the table that newer architectures share.
TABLE = """
acct 163 89; add_key 248 217; adjtimex 159 171; bpf 321 280; chroot 161 51; clock_adjtime 305 266; clock_settime 227 112
delete_module 176 106; fanotify_init 300 262; fanotify_mark 301 263; finit_module 313 273; fsconfig 431 431; fsmount 432 432
fsopen 430 430; fspick 433 433; get_mempolicy 239 236; init_module 175 105; io_uring_enter 426 426; io_uring_register 427 427
io_uring_setup 425 425; kcmp 312 272; kexec_file_load 320 294; kexec_load 246 104; keyctl 250 219; mbind 237 235
memfd_secret 447 447; migrate_pages 256 238; mount_setattr 442 442; move_mount 429 429; move_pages 279 239
open_by_handle_at 304 265; open_tree 428 428; perf_event_open 298 241; pidfd_getfd 438 438; process_madvise 440 440
process_mrelease 448 448; process_vm_readv 310 270; process_vm_writev 311 271; ptrace 101 117; quotactl 179 60; reboot 169 142
request_key 249 218; set_mempolicy 238 237; setdomainname 171 162; sethostname 170 161; setns 308 268; settimeofday 164 170
swapoff 168 225; swapon 167 224; syslog 103 116; userfaultfd 323 282; vhangup 153 58
"""
CALLS = {
    name: (int(x86), int(shared))
    for name, x86, shared in (row.split() for line in TABLE.strip().splitlines() for row in line.split(";"))
}
# Of these the kernel itself asks first for a privilege on the whole machine, or a setting of the machine refuses them:
# only the text of the profile (test_seccomp.py) shows that they are not let through.
KERNEL_ASKS_FIRST = {"acct", "swapoff", "swapon", "syslog", "vhangup", "fanotify_init", "quotactl"}
MACHINE_MAY_REFUSE = {
    *("bpf", "delete_module", "finit_module", "init_module", "io_uring_enter", "io_uring_register", "io_uring_setup"),
    *("kexec_file_load", "kexec_load", "perf_event_open", "userfaultfd", "settimeofday", "clock_settime"),
    *("adjtimex", "clock_adjtime"),
}

# A child in new namespaces of every kind, which it owns: the place of a nested sandbox, and the best one to attack from.
PROBE = """
import ctypes, errno, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
column = 0 if os.uname().machine == "x86_64" else 1
def call(number, *arguments):
    ctypes.set_errno(0)
    code = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(one) for one in arguments])
    return "ok" if code >= 0 else errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))
NEW = {"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}
def owner():
    # Without a user and a group the kernel makes no further namespace.
    for file, words in (("uid_map", f"{uid} {uid} 1"), ("setgroups", "deny"), ("gid_map", f"{gid} {gid} 1")):
        with open("/proc/self/" + file, "w") as opened: opened.write(words)
    answers = {name: call(numbers[column], *([0] * 6 if name in ("mbind", "move_pages") else [1, 1, 0, 0, 0]))
               for name, numbers in json.loads(sys.argv[1]).items()}
    answers["setns of its own"] = call((308, 268)[column], os.open("/proc/self/ns/uts", os.O_RDONLY), 0)
    for name, kind in {"packet": (17, 3, 0), "netfilter": (16, 3, 12), "vsock": (40, 1, 0), "alg": (38, 5, 0), "raw": (2, 3, 1)}.items():
        answers["socket " + name] = call((41, 198)[column], *kind)
    for kind in ("mount", "cgroup", "uts", "ipc", "pid", "net", "user"):  # the last one takes what the others need
        answers["unshare " + kind] = call((272, 97)[column], NEW[kind])
    return answers
uid, gid = os.getuid(), os.getgid()
reader, writer = os.pipe()
child = libc.syscall(ctypes.c_long((56, 220)[column]), ctypes.c_long(sum(NEW.values()) | 17), 0, 0, 0, 0)
if child == 0:
    os.write(writer, json.dumps(owner()).encode())
    os._exit(0)
os.close(writer)
print(os.fdopen(reader).read())
os.waitpid(child, 0)
"""

ORDINARY = """
import asyncio, mmap, multiprocessing, os, sqlite3, subprocess, sys, tempfile, threading
from multiprocessing import shared_memory
import numpy, pandas, scipy.linalg, torch
class Squares(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return torch.tensor(index * index)
def square(x): return x * x
async def shell():
    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)
    return (await child.communicate(b"through"))[0]
if __name__ == "__main__":
    assert numpy.linalg.inv(numpy.eye(200) * 2)[0, 0] == 0.5
    assert abs(scipy.linalg.det(numpy.eye(50)) - 1) < 1e-9
    frame = pandas.DataFrame({"a": range(1000), "b": list("xy") * 500})
    frame.to_csv("/tmp/f.csv"); assert pandas.read_csv("/tmp/f.csv").groupby("b").a.sum().sum() == 499500
    assert sorted(int(x) for x in torch.utils.data.DataLoader(Squares(), num_workers=2)) == [x * x for x in range(8)]
    layer = torch.nn.Linear(8, 1); layer(torch.ones(4, 8)).sum().backward()
    torch.save(layer.state_dict(), "/tmp/t.pt"); torch.load("/tmp/t.pt", weights_only=True)
    with multiprocessing.get_context("spawn").Pool(2) as pool: assert pool.map(square, range(3)) == [0, 1, 4]
    block = shared_memory.SharedMemory(create=True, size=4096); block.buf[0] = 7; block.close(); block.unlink()
    done = threading.Event(); threading.Thread(target=done.set).start(); assert done.wait(60)
    assert asyncio.run(shell()) == b"through"
    base = sqlite3.connect("/tmp/base"); base.execute("pragma journal_mode=wal"); base.execute("create table t(x)"); base.commit()
    os.mkfifo("/tmp/fifo"); os.posix_fallocate(os.open("/tmp/file", os.O_RDWR | os.O_CREAT), 0, 4096)
    mmap.mmap(-1, 1 << 20).madvise(mmap.MADV_DONTNEED)
    subprocess.run(["git", "init", "-q", "/tmp/git"], check=True)
    print("worked")
"""
NODE = """
const {Worker, isMainThread, parentPort} = require("worker_threads");
const fs = require("fs"), {execFileSync} = require("child_process"), crypto = require("crypto");
fs.writeFileSync("/tmp/n", "x".repeat(1e6)); if (fs.readFileSync("/tmp/n").length !== 1e6) throw 1;
if (execFileSync("/usr/bin/echo", ["a"]).toString() !== "a\\n") throw 2;
crypto.pbkdf2("a", "b", 1000, 16, "sha256", () => {
  const one = new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", {eval: true});
  one.on("message", (said) => { if (said !== 42) throw 3;
    require("net").createServer().listen(0, "127.0.0.1", function () { this.close(); console.log("worked"); }); });
});
"""
COMPILE = (
    "printf '#include <stdio.h>\\nint main(void){puts(\"worked\");}' > /tmp/a.c && gcc -O2 -o /tmp/a /tmp/a.c && /tmp/a"
)


# The programs of this machine in the place of the image's.
MACHINE = Bind("/usr", "/usr")


def inside(*command: str, seccomp: str = "", mounts: tuple[Bind, ...] = ()) -> str:
    """Runs a program in a container with Hermit's options; with the filter switched off where one is named."""
    container = Container(image="hermit", command=command[1:], memory_mb=3072, pids=256, mounts=mounts)
    argv = run_arguments(container)
    if seccomp:
        argv[argv.index(f"seccomp={container.seccomp}")] = f"seccomp={seccomp}"
    argv[2:2] = ["--entrypoint", command[0]]
    if mounts[:1] == (MACHINE,):
        argv.remove("--init")  # the engine puts it below /usr, which is this machine's and read-only here
        argv[argv.index("/tmp:mode=1777,size=1024m")] += ",exec"  # the engine's default runs nothing there
    finished = capture(argv, timeout_s=180)
    assert finished.code == 0, finished.stderr.decode()
    return finished.stdout.decode()


@pytest.fixture(scope="module")
def answers() -> dict[str, str]:
    """What each call answers under the profile."""
    return json.loads(inside("python", "-c", PROBE, json.dumps(CALLS)))


@pytest.fixture(scope="module")
def unfiltered() -> dict[str, str]:
    """What each call answers where only the profile is missing."""
    return json.loads(inside("python", "-c", PROBE, json.dumps(CALLS), seccomp="unconfined"))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_beyond_a_sandbox_is_refused_to_the_owner_of_every_namespace(answers: dict[str, str], name: str) -> None:
    assert answers[name] == "EPERM"


def test_no_namespace_but_a_users_is_made_by_unshare_and_none_is_entered(answers: dict[str, str]) -> None:
    kinds = {name: answer for name, answer in answers.items() if name.startswith(("unshare ", "setns "))}
    assert kinds.pop("unshare user") == "ok"
    assert set(kinds.values()) == {"EPERM"}
    assert len(kinds) == 7


def test_sockets_below_the_internet_protocols_cannot_be_made(answers: dict[str, str]) -> None:
    for kind in ("packet", "netfilter", "vsock", "alg"):
        assert answers[f"socket {kind}"] == "EPERM", kind
    assert answers["socket raw"] == "ok"  # of a network namespace of its own, with nothing in it


def test_planted_failure_without_the_profile_each_call_reaches_the_kernel(unfiltered: dict[str, str]) -> None:
    refused = {name for name, answer in unfiltered.items() if answer == "EPERM"}
    assert refused <= KERNEL_ASKS_FIRST | MACHINE_MAY_REFUSE
    for name in (
        "keyctl",
        "add_key",
        "request_key",
        "ptrace",
        "setns",
        "chroot",
        "open_tree",
        "fsopen",
        "kcmp",
        "mbind",
    ):
        assert unfiltered[name] != "EPERM", name
    for kind in ("mount", "uts", "ipc", "pid", "net"):
        assert unfiltered[f"unshare {kind}"] == "ok", kind
    assert unfiltered["setns of its own"] == "ok"
    assert unfiltered["socket packet"] == unfiltered["socket netfilter"] == "ok"


def test_scientific_packages_threads_processes_and_databases_work(tmp_path: Path) -> None:
    program = tmp_path / "ordinary.py"
    program.write_text(ORDINARY)
    tmp_path.chmod(0o755)
    assert inside("python", "/opt/ordinary.py", mounts=(Bind(str(program), "/opt/ordinary.py"),)) == "worked\n"


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=name)
        for name, command in (("node", ("node", "-e", NODE)), ("gcc", ("sh", "-c", COMPILE)))
        if shutil.which(name) and os.path.realpath(shutil.which(name) or "").startswith("/usr/")
    ],
)
def test_programs_of_this_machine_work_under_the_profile(command: tuple[str, ...]) -> None:
    assert inside(*command, mounts=(MACHINE,)) == "worked\n"


WALK = """
import json, os, sys
write, read = [], []
for top, directories, files in os.walk("/proc"):
    if top == "/proc":
        directories[:] = [name for name in directories if not name.isdigit() and name not in ("self", "thread-self")]
    for path in (os.path.join(top, name) for name in files):
        for flags, found in ((os.O_WRONLY, write), (os.O_RDONLY, read)):
            try:
                descriptor = os.open(path, flags | os.O_NONBLOCK)
            except OSError:
                continue
            try:
                if flags == os.O_RDONLY:
                    os.read(descriptor, 1)
                found.append(path)
            except OSError:
                pass
            finally:
                os.close(descriptor)
print(json.dumps({"write": write, "read": read}))
"""


def seen(*options: str) -> dict[str, set[str]]:
    """What of /proc, processes apart, can be opened for writing and read from in a container with these options."""
    argv = ["docker", "run", "--rm", "--network", "none", "--read-only", *options, "--entrypoint", "python"]
    finished = capture([*argv, "hermit", "-c", WALK], timeout_s=120)
    assert finished.code == 0, finished.stderr.decode()
    return {kind: set(paths) for kind, paths in json.loads(finished.stdout).items()}


CLOSED = ("--user", "1000:1000", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
UNMASKED = ("--security-opt", "systempaths=unconfined")


def test_an_unmasked_proc_shows_an_unprivileged_user_its_own_keyring_and_no_setting_to_write() -> None:
    masked, whole = seen(*CLOSED), seen(*CLOSED, *UNMASKED)
    assert whole["read"] - masked["read"] <= {"/proc/keys"}
    # It opens; the kernel asks for a capability when something is written.
    assert whole["write"] - masked["write"] <= {"/proc/sys/kernel/ns_last_pid"}


def test_planted_failure_root_in_an_unmasked_proc_can_write_kernel_settings() -> None:
    options = ("--user", "0", *CLOSED[2:])
    assert len(seen(*options, *UNMASKED)["write"] - seen(*options)["write"]) > 100
