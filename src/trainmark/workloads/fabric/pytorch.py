"""Times messages between ranks with torch.distributed: ping-pong by pairs, then all-reduce.

It trains nothing, so it is not among the workloads that a suite may name: the folder is no regular package.
Every pair is reported by its lower rank, an all-reduce by the first of its ranks, as notes in the events.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time

import torch
import torch.distributed as dist

from trainmark import probe
from trainmark.workloads.common import torch_ranks
from trainmark.workloads.fabric.schedule import TURNS_PER_LINK, leaders, repeat_by_size, rounds

REFUSED = 3
SIGN_OF_LIFE_SECONDS = 10.0
# What the ranks agree on goes by the host's memory, beside the device's messages.
BACKENDS = {"cpu": "cpu:gloo", "cuda": "cpu:gloo,cuda:nccl"}
NCCL_TESTS = ("all_reduce_perf", "sendrecv_perf")
NCCL_TESTS_SECONDS = 180


def parse(arguments):
    parser = argparse.ArgumentParser(prog="trainmark.workloads.fabric.pytorch", description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cpu")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")], required=True)
    parser.add_argument("--seconds", type=float, default=2.0, help="for each link, and for each all-reduce")
    parser.add_argument("--together", action="store_true", help="the pairs of a round at the same time")
    return parser.parse_args(arguments)


class Ranks:
    """This rank among the others: on which nodes they are, and how to wait for them off the device."""

    def __init__(self, device):
        self.local = int(os.environ.get("LOCAL_RANK", "0"))
        self.device = torch.device(device, self.local if device == "cuda" else None)
        if device == "cuda":
            torch.cuda.set_device(self.device)
        torch_ranks.join(BACKENDS[device])
        self.rank = dist.get_rank()
        self.heard = time.monotonic()
        self.nodes = [None] * dist.get_world_size()
        dist.all_gather_object(self.nodes, node_name())

    def clock(self):
        """Seconds, once the device has done all that it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def wait_for_all(self, run):
        """Also says, now and then, that this rank is alive: most of them have nothing else to say."""
        if time.monotonic() - self.heard > SIGN_OF_LIFE_SECONDS:
            self.heard = time.monotonic()
            run.mark("note", what="alive")
        run.flush()
        dist.all_reduce(torch.zeros(1))


def node_name():
    return os.environ.get("TRAINMARK_NODE") or socket.gethostname()


def ping_pong(ranks, opt, pair):
    """(bytes, seconds one way) of this rank's pair: half of each round trip."""
    begins = ranks.rank == pair[0]
    peer = pair[1] if begins else pair[0]

    def agree(number):
        tensor = torch.tensor([number])
        dist.send(tensor, peer) if begins else dist.recv(tensor, peer)
        return int(tensor)

    def operation(size):
        message = torch.zeros(size, dtype=torch.uint8, device=ranks.device)

        def round_trip():
            if begins:
                dist.send(message, peer)
                dist.recv(message, peer)
            else:
                dist.recv(message, peer)
                dist.send(message, peer)

        return round_trip

    for size, times in repeat_by_size(opt.sizes, opt.seconds / TURNS_PER_LINK, operation, agree, ranks.clock):
        yield size, [seconds / 2 for seconds in times]


def all_reduce(ranks, opt, members, group):
    """(bytes, seconds) of a sum over these ranks, of which this is one."""

    def agree(number):
        tensor = torch.tensor([number])
        dist.broadcast(tensor, members[0], group=group)
        return int(tensor)

    def operation(size):
        numbers = torch.zeros(max(1, size // 4), device=ranks.device)  # zeros: their sum does not overflow
        return lambda: dist.all_reduce(numbers, group=group)

    yield from repeat_by_size(opt.sizes, opt.seconds / TURNS_PER_LINK, operation, agree, ranks.clock)


def nccl_tests(sizes, gpus):
    """What the programs of nccl-tests print about this node's own GPUs, where they are on the path."""
    for name in NCCL_TESTS:
        program = shutil.which(name)
        if program is None:
            continue
        words = [program, "-b", str(min(sizes)), "-e", str(max(sizes)), "-f", "8", "-g", str(gpus)]
        try:
            done = subprocess.run(words, stdout=subprocess.PIPE, timeout=NCCL_TESTS_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"{name} was left out: {error}", file=sys.stderr)
            continue
        if done.returncode == 0:
            yield name, done.stdout.decode(errors="replace")


def measure(ranks, opt, run):
    everybody, first = list(range(len(ranks.nodes))), leaders(ranks.nodes)
    reducing = [everybody] + ([first] if 1 < len(first) < len(everybody) else [])
    # By all ranks, members or not.
    groups = [dist.new_group(members, backend=BACKENDS[opt.device]) for members in reducing]
    for _ in range(TURNS_PER_LINK):
        for pairs in rounds(ranks.nodes, opt.together):
            for pair in pairs:
                if ranks.rank in pair:
                    for size, times in ping_pong(ranks, opt, pair):
                        if ranks.rank == pair[0]:
                            run.mark("note", what="link", ranks=pair, bytes=size, seconds=rounded(times))
            ranks.wait_for_all(run)
        for members, group in zip(reducing, groups):
            if ranks.rank in members:
                for size, times in all_reduce(ranks, opt, members, group):
                    if ranks.rank == members[0]:
                        run.mark("note", what="all-reduce", ranks=members, bytes=size, seconds=rounded(times))
            ranks.wait_for_all(run)
    if opt.device == "cuda" and ranks.rank in first:
        for name, text in nccl_tests(opt.sizes, ranks.nodes.count(node_name())):
            run.mark("note", what="nccl-tests", program=name, text=text)
    ranks.wait_for_all(run)


def rounded(times):
    return [round(seconds, 9) for seconds in times]


def main():
    opt = parse(sys.argv[1:])
    probe.show_stacks_on_request()  # also of a rank that waits for another which never came
    wanted = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if opt.device == "cuda" and torch.cuda.device_count() < wanted:
        sys.stderr.write(
            f"refused: {node_name()} has {torch.cuda.device_count()} GPUs, but {wanted} ranks are to use one"
            " each; ask for fewer, or for --device cpu.\n"
        )
        sys.exit(REFUSED)
    ranks = Ranks(opt.device)
    run = probe.start(
        unit="messages",
        workload="fabric",
        node=node_name(),
        backend="nccl" if opt.device == "cuda" else "gloo",
        framework_version=torch.__version__,
        device_name=torch.cuda.get_device_name(ranks.device) if opt.device == "cuda" else "cpu",
    )
    measure(ranks, opt, run)
    torch_ranks.leave()
    run.end()


if __name__ == "__main__":
    main()
