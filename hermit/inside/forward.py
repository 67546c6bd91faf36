"""The ports of the sandbox's own loopback that lead to services of the host.

A socket belongs to the network namespace it was made in, whoever holds it. So the relay makes the listening sockets
here, hands their descriptors to the host, and closes its own: the host accepts on them and carries the bytes, and no
process inside could accept in its place or read along.
"""

from __future__ import annotations

import _socket
import sys

MOST_AT_ONCE = 250  # the kernel passes 253 descriptors in one message
BACKLOG = 128
# A name that no list holds: nobody can own one below `invalid` (RFC 2606), and a refused name is never looked up.
NOBODY = "hermit-check.invalid"


def hand_over(ports: list[int], channel_descriptor: int) -> None:
    """Makes a listening socket for each port, hands them to the host in order, and waits until it serves them.

    Raises:
        OSError: A port is taken, or the host did not answer.
    """
    channel = _socket.socket(fileno=channel_descriptor)
    for start in range(0, len(ports), MOST_AT_ONCE):
        listeners = [listener(port) for port in ports[start : start + MOST_AT_ONCE]]
        numbers = b"".join(each.fileno().to_bytes(4, sys.byteorder) for each in listeners)
        channel.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
        for each in listeners:
            each.close()
        if channel.recv(1) != b"A":
            raise OSError("the host does not serve the forwarded ports")
    channel.close()


def listener(port: int) -> _socket.socket:
    """A socket that listens on this port of the loopback."""
    made = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    made.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", port))
    made.listen(BACKLOG)
    return made


def refusal(port: int) -> tuple[str, bool, str]:
    """Whether the proxy on this port refuses a host that is on no list."""
    asked = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    try:
        asked.settimeout(5)
        asked.connect(("127.0.0.1", port))
        asked.sendall(f"CONNECT {NOBODY}:443 HTTP/1.1\r\nHost: {NOBODY}:443\r\n\r\n".encode())
        answer = asked.recv(64).split(b"\r\n")[0].decode("ascii", "replace")
    except OSError as error:
        answer = f"no answer: {error.strerror or 'too late'}"
    finally:
        asked.close()
    return "an unlisted host is refused", answer.startswith("HTTP/1.1 403"), answer
