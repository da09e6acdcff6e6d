"""A PyTorch trainer that knows nothing of Trainmark: `trainmark run -- python train.py` measures it."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
features = torch.randn(20_000, 64)
labels = (features.sum(dim=1) > 0).long()
loader = DataLoader(TensorDataset(features, labels), batch_size=128, shuffle=True)

model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for epoch in range(100):
    for inputs, targets in loader:
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
