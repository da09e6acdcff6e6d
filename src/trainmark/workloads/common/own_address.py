"""The address that this rank was given, and what keeps it from being reached at any other.

Most frameworks can be told where to listen. TensorFlow, Paddle and OneFlow listen at every address of the
machine; a filter on such a socket then drops what was sent to another address than the rank's own.
"""

import contextlib
import ctypes
import os
import socket
import struct
import sys
import threading

EVERYWHERE = {"0.0.0.0", "::"}
LOOK_SECONDS = 0.05  # for so long a new socket may be open to all
SO_ATTACH_FILTER = 26
NETWORK_HEADER = 0x100000000 - 0x100000  # where a filter finds the IP header
LOAD_BYTE, LOAD_WORD, AND, UNLESS_EQUAL, RETURN = 0x30, 0x20, 0x54, 0x15, 0x06


def own_address():
    """As the launcher gave it; None where it gave none, or a name, which may mean another address here."""
    peers = os.environ.get("TRAINMARK_PEERS", "").split(",")
    rank = int(os.environ.get("RANK", "0"))
    address = peers[rank].rpartition(":")[0] if rank < len(peers) else ""
    try:
        socket.inet_pton(socket.AF_INET, address)
    except OSError:
        return None
    return address


class AddressGuard:
    """While it is active, a socket that listens at every address soon hears only what is sent to this one."""

    def __init__(self):
        self._address = own_address() if sys.platform == "linux" else None
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look_again, daemon=True)

    def __enter__(self):
        if self._address is not None:
            self._watch.start()

    def __exit__(self, *error):
        if self._address is not None:
            self._over.set()
            self._watch.join()
            restrict_listeners(self._address)

    def _look_again(self):
        while not self._over.wait(LOOK_SECONDS):
            restrict_listeners(self._address)


def restrict_listeners(address):
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), borrowed(int(name)) as listener:
            if listens_everywhere(listener):
                accept_only(listener, address)


@contextlib.contextmanager
def borrowed(number):
    """The socket behind a file descriptor, which stays its owner's; OSError where there is none."""
    borrowed_socket = socket.socket(fileno=number)
    try:
        yield borrowed_socket
    finally:
        borrowed_socket.detach()


def listens_everywhere(candidate):
    is_tcp = candidate.family in (socket.AF_INET, socket.AF_INET6) and candidate.type == socket.SOCK_STREAM
    listens = is_tcp and candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return bool(listens) and candidate.getsockname()[0] in EVERYWHERE


def accept_only(listening, address):
    """Packets to another address than this one are dropped, as if nobody listened there."""
    (wanted,) = struct.unpack("!I", socket.inet_aton(address))
    instructions = [
        (LOAD_BYTE, 0, 0, NETWORK_HEADER),
        (AND, 0, 0, 0xF0),
        (UNLESS_EQUAL, 0, 3, 0x40),  # IPv4, else skip three
        (LOAD_WORD, 0, 0, NETWORK_HEADER + 16),  # where it is sent to
        (UNLESS_EQUAL, 0, 1, wanted),
        (RETURN, 0, 0, 0xFFFFFFFF),
        (RETURN, 0, 0, 0),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in instructions))
    given = struct.pack("@HP", len(instructions), ctypes.addressof(program))
    listening.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, given)
