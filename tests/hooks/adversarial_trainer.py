"""A trainer that knows nothing of us: optimizers in turn, accumulated gradients, an evaluation an epoch."""

import hashlib

import torch
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, BATCH, ACCUMULATED = 6, 8, 2


def rows(count):
    return TensorDataset(torch.randn(count, 16))


def main():
    torch.manual_seed(0)
    generator, critic = torch.nn.Linear(4, 16), torch.nn.Linear(16, 1)
    optimizers = [torch.optim.Adam(model.parameters()) for model in (critic, generator)]
    evaluated = DataLoader(rows(40), batch_size=8)
    for _ in range(EPOCHS):
        for number, (real,) in enumerate(
            DataLoader(rows(84), batch_size=BATCH, shuffle=True, drop_last=True)
        ):
            fake = generator(torch.randn(len(real), 4))
            (critic(fake).mean() - critic(real).mean()).backward()
            if number % ACCUMULATED == ACCUMULATED - 1:
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
        with torch.no_grad():
            for (real,) in evaluated:
                critic(real)
    weights = torch.cat(
        [parameter.flatten() for parameter in [*generator.parameters(), *critic.parameters()]]
    )
    print("weights", hashlib.sha256(weights.detach().numpy().tobytes()).hexdigest())
    print("random", torch.rand(1).item())


if __name__ == "__main__":
    main()
