"""A small training that knows nothing of us; prints the loss and a digest of the weights of every step.

Arguments: what it does in the middle of step N (`kill N`, `end N`), or how it trains (`compiled`, `two`).
"""

import os
import signal
import sys
import zlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

what, at = [*sys.argv[1:], "", "0"][:2]
torch.manual_seed(0)
torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
rows = TensorDataset(torch.randn(64, 32), torch.randint(4, (64,)))
halves = [model[:2], model[2:]] if what == "two" else [model]
optimizers = [torch.optim.AdamW(half.parameters(), 1e-3) for half in halves]


def step(inputs, labels):
    for optimizer in optimizers:
        optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    for optimizer in optimizers:
        optimizer.step()
    return loss


def training_batches():
    while True:
        yield from DataLoader(rows, batch_size=16)


train = torch.compile(step, backend="eager") if what == "compiled" else step
for number, batch in enumerate(training_batches()):
    if what == "kill" and number == int(at):
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "end" and number == int(at):
        break
    loss = train(*batch)
    weights = b"".join(part.detach().numpy().tobytes() for part in model.parameters())
    print(loss.item().hex(), zlib.crc32(weights), flush=True)
