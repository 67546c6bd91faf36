"""What the behaviours run inside: agents, and programs that try to stay."""

from __future__ import annotations

AGENTS = '''
import os, signal, subprocess, sys
from hermit import RunOutput

def value(task, adapter):
    print("noise on stdout", flush=True)
    return RunOutput(output={"id": task["id"], "size": len(task.get("text", "")), "cwd": os.getcwd()})

def exception(task, adapter):
    raise ValueError("made to fail")

def leave(task, adapter):
    sys.exit(3)

def leave_at_once(task, adapter):
    os._exit(4)

def killed(task, adapter):
    os.kill(os.getpid(), signal.SIGKILL)

def too_large(task, adapter):
    return RunOutput(output="x" * 200_000)

def not_json(task, adapter):
    return RunOutput(output=object())

def wrong_type(task, adapter):
    return {"output": 1}

FORGER = """
import os, sys
written = []
mine = [os.getppid()]
if sys.argv[1] == 'every process of the sandbox':
    mine = [int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) != os.getpid()]
for pid in mine:
    for number in range(3, 64):
        try:
            target = os.open(f'/proc/{pid}/fd/{number}', os.O_WRONLY | os.O_NONBLOCK)
            os.write(target, b'{"value":{"output":"forged"}}')
            written.append((pid, number))
        except OSError:
            pass
for number in range(3, 64):
    try:
        os.write(number, b'{"value":{"output":"forged"}}')
        written.append((0, number))
    except OSError:
        pass
print(written)
"""

def forged(task, adapter):
    said = subprocess.run([sys.executable, "-c", FORGER, task["scope"]], close_fds=False, capture_output=True, text=True)
    return RunOutput(output="honest", log=said.stdout + said.stderr)

LISTER = """
import os
print([n for n in os.listdir('/proc/self/fd') if int(n) > 2 and os.path.lexists(f'/proc/self/fd/{n}')])
"""

def descriptors(task, adapter):
    seen = subprocess.run([sys.executable, "-c", LISTER], close_fds=False, capture_output=True, text=True)
    return RunOutput(output=seen.stdout, log=seen.stderr)

def forked(task, adapter):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        held = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if int(n) not in (0, 1, 2, writer)
                and os.path.lexists(f"/proc/self/fd/{n}")]
        os.write(writer, str(sum(name.startswith("pipe:") for name in held) - 1).encode())  # the reader is a pipe too
        os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    return RunOutput(output=os.read(reader, 100).decode())
'''

# A grandchild in a session of its own that ignores TERM; it holds a lock for as long as it lives.
STUBBORN = """
import fcntl, os, signal, sys, time
ready, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        held = open(sys.argv[1], "w")
        fcntl.flock(held, fcntl.LOCK_EX)
        os.write(writer, b"x")
        if sys.argv[2] == "quiet":
            os.closerange(0, 3)
        time.sleep(600)
    os._exit(0)
os.read(ready, 1)
print("grandchild holds the lock", flush=True)
if sys.argv[3] == "stay":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)
"""

FORKS = """
import os, time
reader, writer = os.pipe()
started = 0
try:
    for _ in range(64):
        if os.fork() == 0:
            os.read(reader, 1)
            os._exit(0)
        started += 1
except OSError as error:
    print(error.errno, started)
else:
    print(0, started)
os.close(writer)
"""
