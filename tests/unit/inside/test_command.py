"""How a command is started, ended and counted."""

from __future__ import annotations

import errno
import os
import signal
import sys
import time
from types import SimpleNamespace

import pytest

JOB = {"argv": ["prog", "x"], "worker": "", "cwd": "/grant"}


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file", "prog"), "127 prog: No such file"),
        (FileNotFoundError(errno.ENOENT, "No such file"), "127 prog: No such file"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/grant"), "126 /grant: No such file"),
        (PermissionError(errno.EACCES, "Permission denied", "prog"), "126 prog: Permission denied"),
        (OSError(errno.E2BIG, "Argument list too long"), "126 prog: Argument list too long"),
        (FileNotFoundError(errno.ENOENT, "No such file", b"\xff"), "127 \udcff: No such file"),
        (ValueError("bad"), "126 prog: ValueError: bad"),
    ],
)
def test_why_a_program_did_not_start_begins_with_the_code_a_shell_gives(inside, failure, words):
    assert inside("command").reason(failure, JOB) == words


def test_a_worker_that_did_not_start_is_named(inside):
    assert inside("command").reason(ImportError("x"), {**JOB, "argv": [], "worker": "m:f"}) == "126 m:f: ImportError: x"


def test_every_descriptor_but_the_streams_and_those_named_is_closed(inside, child):
    command = inside("command")

    def closed():
        kept = os.dup2(1, 200)
        os.dup2(1, 201)
        os.dup2(1, 30)
        report = sys._getframe(1).f_locals["writer"]
        command.close_all_but(kept, report)
        return sorted(number for number in (0, 1, 2, 30, 200, 201) if is_open(number))

    assert child(closed) == "[0, 1, 2, 200]"


def is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def test_limits_are_set_soft_and_hard_and_no_core_is_written(inside, child):
    limits = inside("limits")
    import resource

    names = ("RLIMIT_CORE", "RLIMIT_DATA", "RLIMIT_FSIZE", "RLIMIT_CPU", "RLIMIT_NPROC")

    def bounds():
        limits.apply({"memory_mb": 900, "file_mb": 2, "cpu_s": 7, "pids": 3000})
        return [resource.getrlimit(getattr(resource, name)) for name in names]

    mib = 1 << 20
    assert child(bounds) == repr([(0, 0), (900 * mib, 900 * mib), (2 * mib, 2 * mib), (7, 8), (3000, 3000)])


def test_a_bound_that_is_already_lower_stays(inside, child):
    limits = inside("limits")
    import resource

    def bounds():
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        limits.apply({"file_mb": 2})
        return resource.getrlimit(resource.RLIMIT_FSIZE)

    assert child(bounds) == "(5000, 5000)"


def test_what_is_not_bounded_is_left_alone(inside, child):
    limits = inside("limits")
    import resource

    def unchanged():
        before = resource.getrlimit(resource.RLIMIT_DATA)
        limits.apply({})
        return resource.getrlimit(resource.RLIMIT_DATA) == before

    assert child(unchanged) == "True"


def test_orphans_are_adopted_found_ended_and_reaped(inside, child):
    family = inside("family")

    def ended():
        family.adopt()
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.write(writer, str(os.getpid()).encode())
                time.sleep(60)
            os._exit(0)
        orphan = int(os.read(reader, 20))
        found = orphan in family.descendants()
        family.end_all()
        return found, family.descendants(), os.path.exists(f"/proc/{orphan}")

    assert child(ended) == "(True, [], False)"


def test_ending_nothing_ends_at_once(inside, child):
    assert child(inside("family").end_all) == "None"


def test_an_init_signals_everybody_in_its_namespace_whatever_proc_shows(inside, monkeypatch):
    family, sent = inside("family"), []
    monkeypatch.setattr(family, "descendants", lambda: [7, 8])
    for own, expected in ((5, [(7, 15), (8, 15)]), (1, [(-1, 15)])):
        kernel = SimpleNamespace(getpid=lambda own=own: own, kill=lambda *given: sent.append(given))
        monkeypatch.setattr(family, "os", kernel)
        family.signal_all(15)
        assert sent == expected
        sent.clear()


def test_an_init_that_is_alone_has_nobody_to_signal(inside, monkeypatch):
    family = inside("family")

    def nobody(*_):
        raise ProcessLookupError

    monkeypatch.setattr(family, "os", SimpleNamespace(getpid=lambda: 1, kill=nobody))
    family.signal_all(9)


def test_a_process_that_is_gone_has_no_parent(inside):
    assert inside("family").parent_of("999999999") is None


def test_a_name_with_brackets_and_blanks_does_not_hide_a_parent(inside, child):
    family = inside("family")

    def parent():
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write("a) Z 1 (")
        return family.parent_of(str(os.getpid())) == os.getppid()

    assert child(parent) == "True"


def test_a_process_that_hides_its_descriptors_cannot_be_dumped(inside, child):
    family = inside("family")
    import ctypes

    def dumpable():
        family.hide_descriptors()
        return ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)

    assert child(dumpable) == "0"


def test_a_prctl_that_the_kernel_refuses_is_an_error(inside):
    with pytest.raises(OSError, match="prctl"):
        inside("family").prctl(99999, 0)


def test_an_event_is_one_line_whatever_its_words_hold(inside):
    relay = inside("relay")
    reader, writer = os.pipe()
    relay.Report(writer).say(("check", "a\tb\nc"), ("\udcff", "\u2603"))
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == b"check\ta b c\n\\udcff\t\xe2\x98\x83\n"
