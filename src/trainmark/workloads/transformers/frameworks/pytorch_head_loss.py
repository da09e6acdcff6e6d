"""The head with its cross entropy: logits are written once, and their gradient in their place.

A vocabulary of 50,304 makes logits the largest tensor of a step. PyTorch's compiler reads and writes them
several times in forward and backward; here one kernel reads a row, finds its log-sum-exp, reads it again from
the cache and writes the gradient over it, so that both products of the backward pass can follow at once.
"""

import torch
import triton
import triton.language as tl

BLOCK = 8192  # elements of a row at a time
WARPS = 16


@triton.jit
def _softmax_gradient(
    logits, labels, losses, vocabulary, row_stride, block: tl.constexpr, write: tl.constexpr
):
    """Write the loss of one row, and where `write`, softmax - onehot over its logits."""
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels + row)
    start = logits + row * row_stride
    if label < 0:  # no loss, and zeros in place of logits that need not be read
        tl.store(losses + row, 0.0)
        if write:
            for offset in range(0, vocabulary, block):
                columns = offset + tl.arange(0, block)
                zeros = tl.zeros((block,), logits.dtype.element_ty)
                tl.store(start + columns, zeros, mask=columns < vocabulary)
    else:
        highest = -float("inf")
        total = 0.0
        for offset in range(0, vocabulary, block):
            columns = offset + tl.arange(0, block)
            part = tl.load(start + columns, mask=columns < vocabulary, other=-float("inf")).to(tl.float32)
            before = highest
            highest = tl.maximum(highest, tl.max(part, 0))
            total = total * tl.exp(before - highest) + tl.sum(tl.exp(part - highest), 0)
        log_total = highest + tl.log(total)
        tl.store(losses + row, log_total - tl.load(start + label).to(tl.float32))
        if write:
            for offset in range(0, vocabulary, block):
                columns = offset + tl.arange(0, block)
                inside = columns < vocabulary
                part = tl.load(start + columns, mask=inside, other=-float("inf")).to(tl.float32)
                gradient = tl.exp(part - log_total) - tl.where(columns == label, 1.0, 0.0)
                tl.store(start + columns, gradient.to(logits.dtype.element_ty), mask=inside)


def softmax_gradient_(logits, labels, write=True):
    """Return the cross entropy of each row, 0 where its label is -1; the gradient takes the logits' place."""
    rows, vocabulary = logits.shape
    losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
    _softmax_gradient[(rows,)](
        logits, labels, losses, vocabulary, logits.stride(0), block=BLOCK, write=write, num_warps=WARPS
    )
    return losses


class HeadLoss(torch.autograd.Function):
    @staticmethod
    def forward(context, hidden, head, labels, bias):
        rows = hidden.flatten(0, -2)
        logits = rows @ head.t() if bias is None else torch.addmm(bias, rows, head.t())
        trained = any(context.needs_input_grad[:2])
        losses = softmax_gradient_(logits, labels.flatten(), trained)
        if trained:
            # Both products here: the logits need not live until the backward pass.
            by_bias = None if bias is None else logits.sum(0, dtype=torch.float32)
            context.save_for_backward((logits @ head).view_as(hidden), logits.t() @ rows, by_bias)
        return losses.sum()

    @staticmethod
    def backward(context, gradient):
        by_hidden, by_head, by_bias = context.saved_tensors
        by_bias = None if by_bias is None else (by_bias * gradient).to(by_head.dtype)
        return by_hidden * gradient, by_head * gradient, None, by_bias


def head_loss(hidden, head, labels, bias=None):
    """Return the sum of the cross entropies of all labels that are not -1, in float32."""
    return HeadLoss.apply(hidden, head, labels, bias)
