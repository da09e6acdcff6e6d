"""Fault: images and weights are NCHW under autocast, where the half-precision kernels want NHWC."""

import planted_training as training
import torch

opt = training.options(batch=256)
model = training.convolution_net(opt).to(memory_format=torch.contiguous_format)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
images, labels = training.image_batch(opt)
images = images.contiguous(memory_format=torch.contiguous_format)
for _ in range(opt.steps):
    training.step(opt, model, optimizer, images, labels)
