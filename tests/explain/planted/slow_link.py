"""Fault: none here. Two ranks average the gradients of a perceptron, over a link that the test makes slow."""

import planted_training as training
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

opt = training.options(batch=64)
dist.init_process_group("nccl" if opt.device == "cuda" else "gloo")
model = training.perceptron(opt)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
inputs, labels = training.vector_batch(opt, model)
parallel = DistributedDataParallel(model)
for _ in range(opt.steps):
    training.step(opt, parallel, optimizer, inputs, labels)
dist.destroy_process_group()
