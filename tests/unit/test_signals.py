"""A process that stands for a command takes its signals, and gives them back at the end."""

from __future__ import annotations

import os
import select
import signal
import time

import pytest

from hermit import signals
from hermit.errors import Interrupted


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


class Gave:
    """What came of signals to a run."""

    def __init__(self) -> None:
        self.stopped = 0
        self.left = 0

    def stop(self) -> None:
        self.stopped += 1

    def leave(self) -> None:
        self.left += 1


@pytest.mark.parametrize("number", signals.GIVING_UP)
def test_the_first_signal_stops_a_run_and_throws_nothing(number: int) -> None:
    gave = Gave()
    with signals.GivenUp(gave.stop, gave.leave) as given_up:
        given_up.in_order = True
        signal.raise_signal(number)
    assert (gave.stopped, gave.left) == (1, 0)


@pytest.mark.parametrize("number", signals.GIVING_UP)
def test_before_the_run_is_in_order_the_first_signal_ends_it_where_it_stands(number: int) -> None:
    gave = Gave()
    with pytest.raises(Interrupted), signals.GivenUp(gave.stop, gave.leave):
        signal.raise_signal(number)
    assert (gave.stopped, gave.left) == (0, 0)


@pytest.mark.parametrize("first", signals.GIVING_UP)
def test_a_second_ctrl_c_ends_the_process_and_no_other_second_signal_does(first: int) -> None:
    gave = Gave()
    with signals.GivenUp(gave.stop, gave.leave) as given_up:
        given_up.in_order = True
        signal.raise_signal(first)
        given_up._first_s = 0.0
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)
        assert gave.left == 0
        signal.raise_signal(signal.SIGINT)
    assert (gave.stopped, gave.left) == (1, 1)


def test_one_press_that_a_terminal_and_a_wrapper_both_pass_on_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    gave = Gave()
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    with signals.GivenUp(gave.stop, gave.leave) as given_up:
        given_up.in_order = True
        for _ in range(3):
            signal.raise_signal(signal.SIGINT)
    assert (gave.stopped, gave.left) == (1, 0)


@pytest.mark.parametrize("number", signals.GIVING_UP)
def test_what_a_run_was_started_to_ignore_does_not_give_it_up(number: int) -> None:
    before, gave = signal.signal(number, signal.SIG_IGN), Gave()
    try:
        with signals.GivenUp(gave.stop, gave.leave) as given_up:
            given_up.in_order = True
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
    assert gave.stopped == 0


def test_after_a_run_each_signal_does_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [signal.getsignal(number) for number in signals.GIVING_UP]
    with signals.GivenUp(Gave().stop, Gave().leave):
        assert [signal.getsignal(number) for number in signals.GIVING_UP] != before
    assert [signal.getsignal(number) for number in signals.GIVING_UP] == before
