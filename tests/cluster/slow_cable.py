"""A cable that is late and loses, for kernels without netem: `slow_cable.py CABLE TAP BRIDGE MS LOSS`.

Takes CABLE off the bridge and puts itself between: what the bridge sends to the host waits, what the host
sends passes. `slow_cable.py --whole-frames INTERFACE` makes an interface send frames that can be relayed.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
SIOCETHTOOL = 0x8946
# Set transmit sums, segmentation by the card, segmentation by the kernel.
ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO = 0x17, 0x1F, 0x24
EVERY_PROTOCOL = 3
PACKET_OUTGOING = 4
LARGEST_FRAME = 65536


def send_whole_frames(interface: str) -> None:
    """The kernel makes the sums and the cuts itself, before the frame leaves."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for command in (ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO):
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
            fcntl.ioctl(any_socket, SIOCETHTOOL, request)


def tap(name: str) -> int:
    """An interface whose far end is this process; it goes when we go."""
    opened = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(opened, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return opened


def relay(cable: str, bridge_side: int, delay: float, loss: float) -> None:
    host_side = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(EVERY_PROTOCOL))
    host_side.bind((cable, EVERY_PROTOCOL))
    host_side.setblocking(False)
    waiting: deque[tuple[float, bytes]] = deque()
    ready = selectors.DefaultSelector()
    ready.register(host_side, selectors.EVENT_READ)
    ready.register(bridge_side, selectors.EVENT_READ)
    while True:
        pause = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for key, _ in ready.select(pause):
            # An end that is down, or full, loses the frame as a real cable would.
            with suppress(OSError):
                if key.fileobj is host_side:
                    frame, origin = host_side.recvfrom(LARGEST_FRAME)
                    if origin[2] != PACKET_OUTGOING:
                        os.write(bridge_side, frame)
                else:
                    frame = os.read(bridge_side, LARGEST_FRAME)
                    if random.random() >= loss:
                        waiting.append((time.monotonic() + delay, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            with suppress(OSError):
                host_side.send(waiting.popleft()[1])


def main() -> None:
    if sys.argv[1] == "--whole-frames":
        send_whole_frames(sys.argv[2])
        return
    cable, far_end, bridge, ms, loss = sys.argv[1:]
    bridge_side = tap(far_end)
    for change in ([cable, "nomaster"], [far_end, "master", bridge, "up"]):
        subprocess.run(["ip", "link", "set", *change], check=True)
    print("ready", flush=True)
    relay(cable, bridge_side, float(ms) / 1000, float(loss) / 100)


if __name__ == "__main__":
    main()
