"""The address that this rank was given, and what keeps it from being reached at any other.

Most frameworks can be told where to listen. TensorFlow, Paddle and OneFlow listen at every address of the
machine; a filter on such a socket then drops what was sent to another address than the rank's own.

Runs inside every framework's interpreter: standard library only, Python 3.7+.
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


class Doorkeeper:
    """While it is there, a socket that listens at every address soon is closed to strangers."""

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
            close_to_strangers(self._address)

    def _look_again(self):
        while not self._over.wait(LOOK_SECONDS):
            close_to_strangers(self._address)


def close_to_strangers(address):
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), borrowed(int(name)) as found:
            if listens_everywhere(found):
                accept_only(found, address)


@contextlib.contextmanager
def borrowed(number):
    """The socket behind a file descriptor, which stays its owner's; OSError where there is none."""
    found = socket.socket(fileno=number)
    try:
        yield found
    finally:
        found.detach()


def listens_everywhere(found):
    is_tcp = found.family in (socket.AF_INET, socket.AF_INET6) and found.type == socket.SOCK_STREAM
    listens = is_tcp and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return bool(listens) and found.getsockname()[0] in EVERYWHERE


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
    program = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in instructions))
    given = struct.pack("@HP", len(instructions), ctypes.addressof(program))
    listening.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, given)
