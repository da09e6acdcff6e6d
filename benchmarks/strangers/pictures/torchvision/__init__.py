"""A stand-in for torchvision, which has no build for this torch: random images, a tiny network."""

import sys
import types

import torch
from torch import nn
from torch.utils.data import Dataset

__version__ = "0.0"


def module(name, **contents):
    made = types.ModuleType("torchvision." + name)
    made.__dict__.update(contents)
    sys.modules[made.__name__] = made
    return made


class Images(Dataset):
    """1,024 images to train on, or 256 to test."""

    picture = (1, 28, 28)
    classes = tuple(map(str, range(10)))

    def __init__(self, root=None, train=True, transform=None, **_):
        size = 1024 if train else 256
        made = torch.Generator().manual_seed(0)
        self.data = torch.randint(0, 256, (size, *self.picture[1:]), generator=made, dtype=torch.uint8)
        self.train_data = self.data
        self.targets = self.train_labels = torch.arange(size) % 10
        self._images = torch.rand(size, *self.picture, generator=made)
        self._transform = transform or Unchanged()

    def __len__(self):
        return len(self._images)

    def __getitem__(self, index):
        return self._transform(self._images[index]), int(self.targets[index])


class ColourImages(Images):
    picture = (3, 32, 32)


class FakeData(Dataset):
    def __init__(self, size=1000, image_size=(3, 224, 224), num_classes=10, transform=None):
        self._size, self._image, self._classes = size, torch.rand(image_size), num_classes

    def __len__(self):
        return self._size

    def __getitem__(self, index):
        return self._image.clone(), index % self._classes


def small_network(*_, num_classes=1000, **__):
    network = nn.Sequential()
    network.conv1 = nn.Conv2d(3, 64, 3, stride=4, padding=1)
    network.pool = nn.Sequential(nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    network.fc = nn.Linear(64, num_classes)
    return network


class Unchanged:
    def __init__(self, *_, **__):
        pass

    def __call__(self, image):
        return image


class Lambda:
    def __init__(self, function):
        self.function = function

    def __call__(self, image):
        return self.function(image)


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


def unchanged(name):
    """Whatever else is asked for."""
    if name.startswith("__"):
        raise AttributeError(name)
    return Unchanged


transforms = module("transforms", Compose=Compose, Lambda=Lambda, __getattr__=unchanged)
transforms.transforms = module("transforms.transforms", **vars(transforms))
datasets = module(
    "datasets",
    **{"MNIST": Images, "FashionMNIST": Images, "CIFAR10": ColourImages, "FakeData": FakeData},
)
models = module("models", resnet18=small_network, resnet50=small_network, __getattr__=unchanged)
utils = module("utils", save_image=lambda *_, **__: None, make_grid=lambda images, **_: images)
