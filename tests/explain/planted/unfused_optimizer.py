"""Fault: AdamW goes from parameter to parameter, a dozen operations for each, where one kernel would do."""

import planted_training as training
import torch

opt = training.options(batch=256)
model = training.perceptron(opt, depth=16)
optimizer = torch.optim.AdamW(model.parameters(), 1e-4, foreach=False, fused=False)
inputs, labels = training.vector_batch(opt, model)
for _ in range(opt.steps):
    training.step(opt, model, optimizer, inputs, labels)
