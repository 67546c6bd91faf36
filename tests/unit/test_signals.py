"""A process that stands for a command takes its signals, and gives them back at the end."""

from __future__ import annotations

import os
import select
import signal

import pytest

from hermit import signals


@pytest.fixture
def orders() -> list[bytes]:
    """What the relay is asked."""
    return []


def readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 5)[0])


@pytest.mark.parametrize("number", signals.PASSED)
def test_a_signal_comes_out_of_the_descriptor_and_is_passed_on_once_the_command_is_there(orders, number):
    with signals.caught() as caught:
        os.kill(os.getpid(), number)
        assert readable(caught.descriptor)
        assert caught.passed_on(orders.append, ready=True)
    assert orders == [b"S" + bytes([number])]
    assert caught.ended_by == 0


@pytest.mark.parametrize("number", signals.PASSED)
def test_before_the_command_is_there_a_signal_ends_the_start_where_it_would_end_a_program(orders, number):
    with signals.caught() as caught:
        os.kill(os.getpid(), number)
        assert readable(caught.descriptor)
        ends = number != signal.SIGWINCH
        assert caught.passed_on(orders.append, ready=False) is not ends
    assert (orders, caught.ended_by) == ([], number if ends else 0)


def test_signals_that_come_at_once_are_passed_on_in_their_order(orders):
    sent = [signal.SIGUSR1, signal.SIGTERM, signal.SIGTERM, signal.SIGINT]
    with signals.caught() as caught:
        for number in sent:
            os.kill(os.getpid(), number)
        caught.passed_on(orders.append, ready=True)
    assert orders == [b"S" + bytes([number]) for number in sent]


def test_to_be_stopped_by_the_terminal_is_not_taken(orders):
    with signals.caught() as caught:
        os.kill(os.getpid(), signal.SIGTSTP)
        assert caught.passed_on(orders.append, ready=True)
    assert orders == []


def test_what_this_process_ignored_from_the_start_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.caught() as caught:
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert not select.select([caught.descriptor], [], [], 0)[0]
    finally:
        signal.signal(signal.SIGHUP, before)


def test_afterwards_every_signal_does_what_it_did_and_no_descriptor_is_left():
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    descriptors = len(os.listdir("/proc/self/fd"))
    with signals.caught():
        assert signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, signal.SIG_IGN)
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == before
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert signal.set_wakeup_fd(-1) == -1
