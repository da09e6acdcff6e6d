"""Some hundred steps on a GPU: ours learn as PyTorch's do from the same weights on the same images.

`-s` shows the curves.
"""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

from trainmark.workloads.resnet50 import pytorch  # noqa: E402
from trainmark.workloads.resnet50.shared import program  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")

STEPS, BATCH, SIZE, CLASSES, SEEDS = 300, 128, 128, 100, range(4)
WINDOW = 25  # steps whose losses are averaged, lest the batch shows more than the training
RATE, RISING = 0.02, 50
CALM = 0.2  # of the last norm in every block: else the first steps are a throw of dice


def kinds():
    """One coarse picture a class; an image of it is shifted and has noise over it."""
    made = torch.Generator().manual_seed(7)
    coarse = torch.randn(CLASSES, 3, 8, 8, generator=made)
    return torch.nn.functional.interpolate(coarse, (SIZE, SIZE), mode="bicubic").cuda()


def drawn(pictures, generator):
    labels = torch.randint(0, CLASSES, (BATCH,), generator=generator, device="cuda")
    shift = torch.randint(0, SIZE, (2,), generator=generator, device="cuda").tolist()
    noise = torch.randn(BATCH, 3, SIZE, SIZE, generator=generator, device="cuda")
    images = pictures[labels].roll(shift, (2, 3)) + noise
    return images.contiguous(memory_format=torch.channels_last), labels


def learnt(engine, seed, pictures):
    """The losses of every window, and the share of fresh images that are told right afterwards."""
    words = f"--device cuda --precision amp --layout NHWC --cuda-graph --batch {BATCH} --image-size {SIZE}"
    training = pytorch.Training(
        program.parse_options([*words.split(), "--seed", str(seed), "--engine", engine], "p")
    )
    weights = training.tensors()
    for name, tensor in weights.items():
        if name.endswith("norm3.scale"):
            tensor.fill(CALM)
    training.load(weights)
    source = torch.Generator("cuda").manual_seed(seed)
    losses = []
    for step in range(STEPS):
        rate = RATE * min(1.0, (step + 1) / RISING)
        losses.append(training.step(*drawn(pictures, source), rate).clone())
    right = sum(training.evaluate(*drawn(pictures, source))()[0] for _ in range(8))
    return torch.stack(losses).view(-1, WINDOW).mean(1).cpu(), right / (8 * BATCH)


def test_curves_differ_no_more_than_those_of_two_seeds():
    pictures = kinds()
    curves = {
        (engine, seed): learnt(engine, seed, pictures) for engine in ("stock", "fused") for seed in SEEDS
    }
    for (engine, seed), (losses, right) in curves.items():
        print(engine, seed, " ".join(f"{loss:.3f}" for loss in losses), f"right {right:.3f}")

    def apart(one, two):
        return (curves[one][0] - curves[two][0]).abs().mean().item()

    seeds = max(apart(("stock", one), ("stock", two)) for one, two in itertools.combinations(SEEDS, 2))
    engines = [apart(("stock", seed), ("fused", seed)) for seed in SEEDS]
    print("two seeds apart", round(seeds, 4), "two engines apart", [round(each, 4) for each in engines])
    assert max(engines) <= seeds
    losses = curves["fused", 0][0]
    assert losses[-1] < 0.8 * losses[0]  # it did learn
