"""What the programs here have in common: a small network, synthetic data, and a loop without a fault."""

import argparse

import torch
from torch import nn

CLASSES = 10


def options(batch):
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, help="images a step")
    parsed = parser.parse_args()
    parsed.is_small = parsed.device == "cpu"
    parsed.batch = parsed.batch or (8 if parsed.is_small else batch)
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    return parsed


def convolution_net(opt, depth=8):
    """Convolutions of one width with batch norm, for images of 3 x 64 x 64 (on a CPU 16 x 16)."""
    width = 16 if opt.is_small else 128
    layers, channels = [], 3
    for _ in range(depth):
        layers += [nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        channels = width
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES)]
    return nn.Sequential(*layers).to(opt.device, memory_format=torch.channels_last)


def perceptron(opt, depth=8):
    width = 64 if opt.is_small else 4096
    layers = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(width, CLASSES)).to(opt.device)


def image_batch(opt):
    side = 16 if opt.is_small else 64
    images = torch.randn(opt.batch, 3, side, side, device=opt.device).contiguous(
        memory_format=torch.channels_last
    )
    return images, torch.randint(CLASSES, (opt.batch,), device=opt.device)


def vector_batch(opt, model):
    inputs = torch.randn(opt.batch, model[0].in_features, device=opt.device)
    return inputs, torch.randint(CLASSES, (opt.batch,), device=opt.device)


def half(opt):
    """Return the context of the forward pass: bfloat16 on a GPU, which a CPU may only emulate."""
    return torch.autocast(opt.device, torch.bfloat16, enabled=not opt.is_small)


def step(opt, model, optimizer, inputs, labels):
    optimizer.zero_grad()
    with half(opt):
        loss = nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss
