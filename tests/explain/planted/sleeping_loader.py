"""Fault: the loader sleeps over every batch, and has no worker to do it ahead."""

import time

import planted_training as training
import torch
from torch.utils.data import DataLoader, Dataset


class SleepingDataset(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images.cpu(), labels.cpu()

    def __len__(self):
        return opt.steps * opt.batch

    def __getitem__(self, index):
        return self.images[index % opt.batch], self.labels[index % opt.batch]

    def __getitems__(self, indices):
        time.sleep(0.2 if opt.is_small else 0.03)  # a CPU that others use too computes now fast, now slowly
        return [self[index] for index in indices]


opt = training.options(batch=64)
model = training.convolution_net(opt)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, fused=True)
for images, labels in DataLoader(SleepingDataset(*training.image_batch(opt)), opt.batch):
    images = images.to(opt.device, memory_format=torch.channels_last)
    training.step(opt, model, optimizer, images, labels.to(opt.device))
