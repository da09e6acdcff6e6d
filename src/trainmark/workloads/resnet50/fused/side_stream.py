"""Gradients of weights on a stream beside: only the exchange and the update wait for them.

Such a product fills what small kernels and the gaps between kernels leave of a device.
"""

import torch


def beside(device):
    return Beside(device) if device.type == "cuda" else AT_ONCE


class AtOnce:
    """Nothing beside: work is done where it is begun."""

    def begin(self, work):
        work()

    def turn(self):
        pass


AT_ONCE = AtOnce()


class Beside:
    """What work reads is held until the stream that began it has waited: no one else may write there."""

    def __init__(self, device):
        self.stream = torch.cuda.Stream(device)
        self.now, self.before = [], []

    def begin(self, work):
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            work()
            self.now.append((self.stream.record_event(), work))

    def turn(self):
        """Waits for what was begun before the last turn."""
        for done, _ in self.before:
            torch.cuda.current_stream().wait_event(done)
        self.before, self.now = self.now, []
