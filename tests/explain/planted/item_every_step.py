"""Fault: `.item()` on every gradient's norm in every step, as for a log; the host waits for the device."""

import planted_training as training
import torch

opt = training.options(batch=64)
model = training.convolution_net(opt)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
images, labels = training.image_batch(opt)
norms = []
for _ in range(opt.steps):
    training.step(opt, model, optimizer, images, labels)
    norms.append(sum(parameter.grad.norm().item() for parameter in model.parameters()))
