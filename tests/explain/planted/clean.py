"""Control: no fault. The batch stays on the device, channels-last, bfloat16, a fused optimizer."""

import planted_training as training
import torch

opt = training.options(batch=256)
model = training.convolution_net(opt)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
images, labels = training.image_batch(opt)
for _ in range(opt.steps):
    training.step(opt, model, optimizer, images, labels)
