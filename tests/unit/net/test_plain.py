"""One request and one answer of plain HTTP, each read and written anew."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest

from .conftest import listening, port_of, read_all, until

POST = "POST http://api.example.com:PORT/ HTTP/1.1\r\nHost: api.example.com:PORT\r\n"


@pytest.fixture
def scripted(front):
    """Opens the proxy in front of a server whose one connection ``serve`` handles."""
    with contextlib.ExitStack() as stack:

        def start(serve):
            listener = stack.enter_context(listening())

            def accept():
                with contextlib.suppress(OSError), listener.accept()[0] as sock:
                    serve(sock)

            thread = threading.Thread(target=accept)
            thread.start()
            stack.callback(thread.join)
            stack.callback(listener.shutdown, socket.SHUT_RDWR)
            stack.callback(front.bridge.close)
            front.open(f"api.example.com:{port_of(listener)}")
            return POST.replace("PORT", str(port_of(listener))).encode()

        yield start


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(front, scripted):
    heard = []

    def serve(sock):
        heard.append(sock.recv(4096))
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        heard.append(sock.recv(4096))
        sock.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    head = scripted(serve)
    with front.connect() as sock:
        sock.sendall(head + b"Expect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"body")
        assert read_all(sock).startswith(b"HTTP/1.1 204 ")
    assert heard[1] == b"body"


def test_an_answer_to_head_has_a_length_and_no_body(front):
    front.open("api.example.com:PORT")
    front.origin.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
    answer = front.say("HEAD http://api.example.com:PORT/ HTTP/1.1\r\nHost: api.example.com:PORT\r\n\r\n")
    assert b"content-length: 99\r\n" in answer
    assert answer.endswith(b"\r\n\r\n")


def test_a_refusal_of_head_has_no_body(front):
    front.open("api.example.com")
    assert front.say("HEAD http://b.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n").endswith(
        b"Connection: close\r\n\r\n"
    )


def test_events_of_a_stream_are_passed_on_as_they_come(front, scripted):
    step = threading.Semaphore(0)

    def serve(sock):
        sock.recv(4096)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for number in range(3):
            sock.sendall(b"data: %d\n\n" % number)
            assert step.acquire(timeout=20)

    head = scripted(serve)
    with front.connect() as sock:
        sock.sendall(head + b"Content-Length: 0\r\n\r\n")
        came = b""
        for number in range(3):
            while b"data: %d\n\n" % number not in came:
                came += sock.recv(4096)
            step.release()


@pytest.mark.parametrize(
    "body",
    [
        b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcX",
        b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"Content-Length: 9\r\n\r\nabc",
    ],
)
def test_a_body_that_is_malformed_or_ends_early_is_broken_off_at_the_server(front, scripted, body):
    heard = []

    def serve(sock):
        try:
            while piece := sock.recv(4096):
                heard.append(piece)
        except ConnectionResetError:
            heard.append("reset")

    head = scripted(serve)
    assert front.say(head + body).startswith(b"HTTP/1.1 502 ")
    front.bridge.close()
    until(lambda: heard[-1:] == ["reset"])
    assert b"0\r\n\r\n" not in b"".join(heard[:-1])


def test_a_body_ends_where_its_length_says_for_the_server_too(front):
    front.open("api.example.com:PORT")
    front.say(POST + "Content-Length: 3\r\n\r\nabcGET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n")
    assert front.came()[0].endswith(b"\r\n\r\nabc")


def test_a_header_that_would_strip_the_framing_does_not(front):
    front.open("api.example.com:PORT")
    front.say(POST + "Connection: content-length, host\r\nContent-Length: 3\r\n\r\nabc")
    came = front.came()[0].lower()
    assert b"content-length: 3\r\n" in came
    assert came.count(b"host: ") == 1


def test_an_early_answer_is_passed_on_though_the_body_is_not_read(front, scripted):
    def serve(sock):
        sock.recv(4096)
        sock.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        sock.recv(1)

    head = scripted(serve)
    with front.connect() as sock:
        sock.sendall(head + b"Content-Length: 1000000\r\n\r\nabc")
        assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_a_server_whose_client_has_gone_is_let_go(front, scripted):
    asked, gone = threading.Event(), threading.Event()

    def serve(sock):
        sock.recv(4096)
        asked.set()
        with contextlib.suppress(ConnectionResetError):
            sock.recv(4096)
        gone.set()

    head = scripted(serve)
    sock = front.connect()
    sock.sendall(head + b"Content-Length: 0\r\n\r\n")
    assert asked.wait(20)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    sock.close()
    assert gone.wait(20)


def test_an_answer_in_chunks_reaches_a_client_of_http_1_0_without_them(front):
    front.open("api.example.com:PORT")
    front.origin.answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    answer = front.say("GET http://api.example.com:PORT/ HTTP/1.0\r\n\r\n")
    assert answer.endswith(b"\r\n\r\nabc")
    assert b"chunked" not in answer
