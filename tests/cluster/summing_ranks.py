"""A program whose ranks add up their numbers over sockets: rank 0 listens at MASTER_ADDR, the others call."""

from __future__ import annotations

import os
import socket
import time

from trainmark import probe

STEPS = 3


def connected(rank: int, world_size: int, master: tuple[str, int]) -> list[socket.socket]:
    if rank == 0:
        with socket.create_server(master) as listener:
            return [listener.accept()[0] for _ in range(world_size - 1)]
    while True:
        try:
            return [socket.create_connection(master)]
        except ConnectionRefusedError:
            time.sleep(0.1)


def all_reduce(rank: int, peers: list[socket.socket], number: int) -> int:
    """Rank 0 adds and answers."""
    if rank:
        peers[0].sendall(number.to_bytes(8, "big"))
        return received(peers[0])
    total = number + sum(map(received, peers))
    for peer in peers:
        peer.sendall(total.to_bytes(8, "big"))
    return total


def received(peer: socket.socket) -> int:
    return int.from_bytes(peer.recv(8, socket.MSG_WAITALL), "big")


def main() -> None:
    rank = int(os.environ["RANK"])
    master = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    peers = connected(rank, int(os.environ["WORLD_SIZE"]), master)
    run = probe.start()
    for step in range(STEPS):
        total = all_reduce(rank, peers, 10**rank * (step + 1))
        run.step(samples=2, loss=total + rank / 10)
        time.sleep(0.3)  # long enough for a sample of the processors
    run.end()


if __name__ == "__main__":
    main()
