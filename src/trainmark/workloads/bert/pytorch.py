"""Training BERT in PyTorch: the model, and main; data and step are those of all transformers."""

import functools

import torch
from torch import nn
from torch.nn import functional

from trainmark.workloads.bert.shared import INITIAL_DEVIATION, NORM_EPSILON, SEGMENTS, SPEC
from trainmark.workloads.transformers.frameworks import pytorch as transformer

# The model


class Block(nn.Module):
    """Post-norm: each half is normed after its sum."""

    def __init__(self, opt):
        super().__init__()
        width, hidden = opt.shape.width, opt.shape.hidden
        self.heads = opt.shape.heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=NORM_EPSILON) for _ in range(2))
        self.attention = functools.partial(transformer.attention(opt), causal=False)

    def forward(self, x, mask):
        parts = self.qkv(x).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        x = self.norm1(x + self.out(self.attention(query, key, value, mask=mask).transpose(1, 2).flatten(2)))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Bias(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))


class Bert(nn.Module):
    """From tokens to the hidden states that the MLM head takes, and to the logits of the next sentence."""

    def __init__(self, opt):
        super().__init__()
        shape = opt.shape
        width = shape.width
        self.padded = opt.padded
        self.token_embedding = nn.Embedding(shape.vocabulary, width)
        self.position_embedding = nn.Embedding(shape.positions, width)
        self.segment_embedding = nn.Embedding(SEGMENTS, width)
        self.embedding_norm = nn.LayerNorm(width, eps=NORM_EPSILON)
        self.blocks = nn.ModuleList(Block(opt) for _ in range(shape.layers))
        self.pooler, self.next_sentence = nn.Linear(width, width), nn.Linear(width, 2)
        self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=NORM_EPSILON)
        self.head = Bias(shape.vocabulary)  # on top of the token embedding's matrix
        self.run_block = transformer.block_runner(opt)

    def initialize(self):
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=INITIAL_DEVIATION)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, tokens, segments, lengths, positions=None):
        """Return hidden states at the `positions` of each sequence; at all without them."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(places) + self.segments(segments)
        x = self.embedding_norm(x)
        mask = (places < lengths.clamp(min=1)[:, None])[:, None, None] if self.padded else None
        for block in self.blocks:
            x = self.run_block(block, x, mask)
        sentence = self.next_sentence(self.pooler(x[:, 0]).tanh())
        if positions is not None:
            x = x.gather(1, positions.long()[:, :, None].expand(-1, -1, x.shape[2]))
        return self.transform_norm(functional.gelu(self.transform(x))), sentence

    def segments(self, segments):
        """Look segments up by a product: the gradient of a look-up adds half of all tokens to one row."""
        weight = self.segment_embedding.weight
        one_hot = segments[:, :, None] == torch.arange(SEGMENTS, device=segments.device)
        return one_hot.to(weight.dtype) @ weight

    @property
    def head_weight(self):
        return self.token_embedding.weight


class Pretraining(nn.Module):
    """The network with the losses of both heads: `forward` returns a micro-batch's share of the loss."""

    def __init__(self, opt, network):
        super().__init__()
        self.network, self.all_tokens = network, opt.predictions == "all"
        self.head_loss = transformer.make_head_loss(opt)

    def forward(self, tokens, segments, lengths, positions, labels, next_sentence, masked, sequences):
        if self.all_tokens:
            positions, labels = None, labels_of_all(tokens, positions, labels)
        hidden, sentence = self.network(tokens, segments, lengths, positions)
        network = self.network
        loss = self.head_loss(hidden, network.head_weight, labels, network.head.bias)
        return loss / masked + sentence_loss(sentence, next_sentence) / sequences

    @staticmethod
    def normalizers(tokens, segments, lengths, positions, labels, next_sentence):
        """Return by what a step's losses are divided: masked tokens, and sequences with a next sentence."""
        return tuple((part >= 0).sum().clamp(min=1) for part in (labels, next_sentence))

    def evaluate(self, tokens, segments, lengths, positions, labels, next_sentence):
        hidden, sentence = self.network(tokens, segments, lengths, positions)
        network = self.network
        logits = functional.linear(hidden, network.head_weight, network.head.bias).float()
        counts = (
            transformer.loss_sum(logits, labels).double(),
            (labels >= 0).sum(),
            (logits.argmax(-1) == labels).sum(),
            (sentence.argmax(-1) == next_sentence).sum(),
            (next_sentence >= 0).sum(),
        )
        return torch.stack(counts)


def labels_of_all(tokens, positions, labels):
    """Return a label for each token, -1 for those that are not masked; so are positions that fill up."""
    return torch.full_like(tokens, -1).scatter_reduce(1, positions.long(), labels, "amax")


def sentence_loss(logits, next_sentence):
    return transformer.loss_sum(logits.float(), next_sentence)


def build(opt):
    return Pretraining(opt, Bert(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
