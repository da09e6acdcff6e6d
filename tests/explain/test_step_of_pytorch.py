"""One profiled training of PyTorch on the CPU: classes, FLOP, modules, sums."""

from __future__ import annotations

import pytest

from trainmark.explain.breakdown import breakdown
from trainmark.explain.chrome_trace import read
from trainmark.explain.kernel_classes import classes_of
from trainmark.explain.modules import modules
from trainmark.explain.step_work import of_step

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

STEPS, BATCH, TOKENS, WIDTH, HEADS = 3, 2, 64, 32, 2


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.project = torch.nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        parts = self.project(self.norm(x)).view(BATCH, TOKENS, 3, HEADS, WIDTH // HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return x + mixed.transpose(1, 2).reshape(x.shape)


class Net(torch.nn.Module):
    """Convolutions with stride, dilation and transposition, then attention and a classifier."""

    def __init__(self):
        super().__init__()
        self.convolutions = torch.nn.Sequential(
            torch.nn.Conv2d(3, 16, 5, stride=2, padding=2),
            torch.nn.BatchNorm2d(16),
            torch.nn.ReLU(),
            torch.nn.Conv2d(16, 16, 3, padding=2, dilation=2),
            torch.nn.ConvTranspose2d(16, WIDTH, 2, stride=2),
            torch.nn.Conv2d(WIDTH, WIDTH, 3, stride=2, padding=1),
        )
        self.attention = Attention()
        self.classifier = torch.nn.Linear(WIDTH, 10)

    def forward(self, images):
        features = self.convolutions(images).flatten(2).transpose(1, 2)
        return self.classifier(self.attention(features).mean(1))


def training():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    images, labels = torch.randn(BATCH, 3, 16, 16), torch.randint(10, (BATCH,))

    def step():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    return step


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    step = training()
    step()
    options = torch._C._profiler._ExperimentalConfig(verbose=True)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        record_shapes=True,
        with_stack=True,
        experimental_config=options,
    ) as profiler:
        for number in range(STEPS + 1):
            with torch.profiler.record_function(f"trainmark_step#{number}"):
                step()
    profiler.export_chrome_trace(str(path))
    return read(path)


@pytest.fixture(scope="module")
def classes(profile):
    return classes_of(profile)


@pytest.fixture(scope="module")
def counted():
    """What PyTorch's own counter sees in one step, by operator."""
    from torch.utils.flop_counter import FlopCounterMode

    step = training()
    with FlopCounterMode(display=False) as counter:
        step()
    totals = counter.get_flop_counts()["Global"]
    return {str(operator).partition(".")[2].partition(".")[0]: flop for operator, flop in totals.items()}


def test_classes_and_gaps_add_up_to_the_steps(profile, classes):
    parts = breakdown(profile, classes)
    alone, overlapped = (
        sum(part.alone for part in parts.classes),
        sum(both.nanoseconds for both in parts.overlaps),
    )
    assert len(profile.steps) == STEPS
    assert alone + overlapped + parts.idle == parts.total == profile.steps[-1].end - profile.steps[0].start


def test_little_of_a_training_has_no_class(profile, classes):
    parts = breakdown(profile, classes)
    other = sum(part.busy for part in parts.classes if part.name == "other")
    assert other < 0.03 * parts.busy
    assert {"convolution", "matrix product", "attention", "normalisation", "optimiser"} <= {
        part.name for part in parts.classes
    }


def test_flop_of_convolutions_are_those_that_pytorch_counts(profile, classes, counted):
    assert (
        of_step(profile, classes)["convolution"].flop
        == counted["convolution"] + counted["convolution_backward"]
    )


def test_flop_of_matrix_products_are_those_that_pytorch_counts(profile, classes, counted):
    assert of_step(profile, classes)["matrix product"].flop == counted["mm"] + counted["addmm"]


def test_flop_of_attention_are_those_of_the_pairs_under_the_mask(profile, classes):
    forward = 2 * 2 * BATCH * HEADS * (WIDTH // HEADS) * TOKENS * (TOKENS + 1) // 2
    assert of_step(profile, classes)["attention"].flop == 3 * forward


def test_bytes_of_the_optimizer_follow_from_the_parameters(profile, classes):
    parameters = sum(parameter.numel() for parameter in Net().parameters())
    # momentum *= 0.9 moves two tensors; momentum += gradient and weight -= rate · momentum three each.
    assert of_step(profile, classes)["optimiser"].bytes == pytest.approx(8 * 4 * parameters, rel=0.01)


def test_modules_have_their_forward_and_backward(profile):
    times = {time.name: time for time in modules(profile)}
    attention = times["Net_0 / Attention_0 / Linear_0"]
    assert attention.forward > 0
    assert attention.backward > 0
    types = {name.rpartition(" / ")[2].rpartition("_")[0] for name in times}
    assert {"Conv2d", "ConvTranspose2d", "BatchNorm2d", "LayerNorm", "Linear"} <= types
