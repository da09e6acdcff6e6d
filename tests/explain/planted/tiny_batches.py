"""Fault: two images a step, so that the host cannot launch kernels as fast as the device ends them."""

import planted_training as training
import torch

opt = training.options(batch=2)
model = training.convolution_net(opt, depth=24)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
images, labels = training.image_batch(opt)
for _ in range(opt.steps):
    training.step(opt, model, optimizer, images, labels)
