"""Whoever is inside can ask as it likes: what is no request is refused, what is slow or long ends, and others go on."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
from typing import TYPE_CHECKING, Any

import pytest

from hermit.net import service
from hermit.net.service import Answer, Request, Service, loopback_listener, unix_listener

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST = 1000


def echo(request: Request) -> Answer:
    return Answer(200, {"method": request.method, "path": request.path, "body": request.body.decode("latin-1")})


@pytest.fixture
def port() -> Iterator[int]:
    with loopback_listener() as (listener, number), Service(listener, echo, most_body=MOST):
        yield number


def said(port: int, data: bytes, *, end: bool = True) -> tuple[int, dict[str, Any]]:
    """What is answered to some bytes: the status, and the document."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(data)
        if end:
            sock.shutdown(socket.SHUT_WR)
        response = http.client.HTTPResponse(sock)
        response.begin()
        return response.status, json.loads(response.read())


def test_a_request_is_answered_in_json(port: int) -> None:
    status, document = said(port, b"POST /tool HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
    assert (status, document) == (200, {"method": "POST", "path": "/tool", "body": "{}"})
    assert said(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")[1]["method"] == "GET"
    chunked = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    assert said(port, chunked)[1]["body"] == "{}"


def test_what_follows_a_request_on_its_connection_is_never_read(port: int) -> None:
    request = b"POST /tool HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    assert said(port, request + b"GET /other HTTP/1.1\r\n\r\n")[1]["path"] == "/tool"


def test_whoever_waits_to_be_told_to_go_on_is_told(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        sock.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 100")
        sock.sendall(b"{}")
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400),
        (b"DELETE / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n" + b"x" * 1001, 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000000\r\n\r\n" + b"x" * 2000, 413),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"x" * 300_000, 431),
        (b"POST / HTTP/1.1\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_refused_and_the_next_is_answered(port: int, data: bytes, status: int) -> None:
    found, document = said(port, data, end=False)
    assert (found, document["failed"]) == (status, "request")
    assert said(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 200


def test_one_that_never_ends_is_given_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PATIENCE_S", 1.0)
    assert said(port, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{", end=False)[0] == 408


def test_connections_that_say_nothing_keep_nobody_else_from_an_answer_for_ever(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PATIENCE_S", 2.0)
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(service.MOST_CONNECTIONS * 2)]
    assert said(port, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 200
    for sock in idle:
        sock.close()


def test_there_are_so_many_answers_at_once_and_no_more() -> None:
    at_once, most, lock, go = 0, 0, threading.Lock(), threading.Event()

    def slow(_request: Request) -> Answer:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
            if at_once == service.MOST_CONNECTIONS:
                go.set()
        go.wait(60)
        with lock:
            at_once -= 1
        return Answer(200, {})

    with loopback_listener() as (listener, number), Service(listener, slow, most_body=MOST):
        threads = [
            threading.Thread(target=said, args=(number, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
            for _ in range(service.MOST_CONNECTIONS + 8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == service.MOST_CONNECTIONS


def test_its_end_breaks_open_connections_off_and_leaves_no_thread() -> None:
    before = threading.active_count()
    with loopback_listener() as (listener, number), Service(listener, echo, most_body=MOST):
        sock = socket.create_connection(("127.0.0.1", number))
        sock.sendall(b"POST / HTTP/1.1\r\n")
    sock.settimeout(60)
    try:
        rest = sock.recv(1)
    except ConnectionResetError:
        rest = b""
    assert rest in (b"", b"H"), "it ended, with or without a last answer"
    sock.close()
    assert threading.active_count() == before


def test_a_unix_socket_is_had_below_any_path_and_is_gone_afterwards(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    with unix_listener(str(deep)) as (listener, path), Service(listener, echo, most_body=MOST):
        assert path == f"{deep}/{service.SOCKET}"
        assert os.stat(path).st_mode & 0o777 == 0o600
        place = os.open(deep, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(f"/proc/self/fd/{place}/{service.SOCKET}")
            sock.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert sock.recv(100).startswith(b"HTTP/1.1 200")
        os.close(place)
    assert os.listdir(deep) == []
