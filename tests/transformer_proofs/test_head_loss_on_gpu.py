"""The head's loss in Triton, against PyTorch's cross entropy in float64."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")

from torch.nn import functional  # noqa: E402

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")

ROWS, WIDTH, VOCABULARY = 96, 64, 10_007  # no multiple of the kernel's blocks


def losses_and_gradients(head_loss, with_bias, kind):
    torch.manual_seed(0)
    sizes = (ROWS, WIDTH), (VOCABULARY, WIDTH), (VOCABULARY,)
    # Logits of size 1, as in training: bfloat16 rounds large ones so that soft-max no longer means much.
    drawn = (torch.randn(size, device="cuda").mul(0.35).to(torch.bfloat16) for size in sizes)
    hidden, head, bias = (tensor.to(kind).requires_grad_() for tensor in drawn)
    labels = torch.randint(0, VOCABULARY, (ROWS,), device="cuda", dtype=torch.int32)
    labels[::5] = -1
    loss = head_loss(hidden, head, labels, bias if with_bias else None)
    (loss / 100).backward()
    return [loss, hidden.grad, head.grad, *([bias.grad] if with_bias else [])]


def reference(hidden, head, labels, bias):
    logits = functional.linear(hidden, head, bias)
    return functional.cross_entropy(logits, labels.long(), ignore_index=-1, reduction="sum")


@pytest.mark.parametrize("with_bias", [False, True])
def test_loss_and_gradients_are_those_of_cross_entropy(with_bias):
    from trainmark.workloads.transformers.frameworks.pytorch_head_loss import head_loss

    expected = losses_and_gradients(reference, with_bias, torch.float64)
    for value, right in zip(
        losses_and_gradients(head_loss, with_bias, torch.bfloat16), expected, strict=True
    ):
        assert (value.double() - right).norm() <= 0.01 * right.norm()  # bfloat16 rounds to 0.4 %
