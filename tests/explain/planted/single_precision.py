"""Fault: float32 throughout, and TF32 off, where bfloat16 was meant."""

import planted_training as training
import torch
from torch import nn

opt = training.options(batch=2048)
torch.backends.cuda.matmul.allow_tf32 = False
model = training.perceptron(opt)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
inputs, labels = training.vector_batch(opt, model)
for _ in range(opt.steps):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
