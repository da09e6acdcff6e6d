"""Training BERT in OneFlow: the model, and main; data and step are those of all transformers."""

from trainmark.workloads.transformers.frameworks import oneflow as transformer  # joins the ranks

# isort: split
import oneflow as flow
from oneflow import nn

from trainmark.workloads.bert.shared import INITIAL_DEVIATION, NORM_EPSILON, SEGMENTS, SPEC

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
        self.gelu = nn.GELU()

    def forward(self, x, mask):
        query, key, value = transformer.split_heads(self.qkv(x), self.heads)
        attended = transformer.attention(query, key, value, mask)
        x = self.norm1(x + self.out(transformer.join_heads(attended)))
        return self.norm2(x + self.down(self.gelu(self.up(x))))


class Bias(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(flow.zeros(width))


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
        self.blocks = nn.ModuleList([Block(opt) for _ in range(shape.layers)])
        self.pooler, self.next_sentence = nn.Linear(width, width), nn.Linear(width, 2)
        self.transform, self.transform_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=NORM_EPSILON)
        self.head = Bias(shape.vocabulary)  # on top of the token embedding's matrix
        self.gelu = nn.GELU()
        transformer.draw(self, INITIAL_DEVIATION)

    def forward(self, tokens, segments, lengths, positions):
        """Return hidden states at the `positions` of each sequence; at all where they are None."""
        places = flow.arange(tokens.shape[1], device=tokens.device)
        x = self.token_embedding(tokens) + self.position_embedding(places) + self.segment_embedding(segments)
        x = self.embedding_norm(x)
        mask = None
        if self.padded:
            seen = places < flow.clamp(lengths, min=1).unsqueeze(1)
            mask = ((1.0 - seen.to(flow.float32)) * transformer.UNSEEN).unsqueeze(1).unsqueeze(1)
        for block in self.blocks:
            x = block(x, mask)
        sentence = self.next_sentence(flow.tanh(self.pooler(x[:, 0])))
        if positions is not None:
            index = positions.to(flow.int64).unsqueeze(2).expand(-1, -1, x.shape[2]).contiguous()
            x = flow.gather(x, 1, index)
        return self.transform_norm(self.gelu(self.transform(x))), sentence

    def logits(self, hidden):
        """Return those of the MLM head."""
        return flow.matmul(hidden, self.token_embedding.weight.transpose(0, 1)) + self.head.bias


class Pretraining(nn.Module):
    """The network with the losses of both heads: `forward` returns a micro-batch's share of the loss."""

    def __init__(self, opt, network):
        super().__init__()
        self.network, self.all_tokens = network, opt.predictions == "all"

    def forward(self, tokens, segments, lengths, positions, labels, next_sentence, masked, sequences):
        if self.all_tokens:
            positions, labels = None, labels_of_all(tokens, positions, labels)
        hidden, sentence = self.network(tokens, segments, lengths, positions)
        loss = transformer.entropy_sum(self.network.logits(hidden), labels) / masked
        return loss + transformer.entropy_sum(sentence, next_sentence) / sequences

    @staticmethod
    def normalizers(tokens, segments, lengths, positions, labels, next_sentence):
        """Return by what a step's losses are divided: masked tokens, and sequences with a next sentence."""
        counted = ((part >= 0).to(flow.float32).sum() for part in (labels, next_sentence))
        return tuple(flow.clamp(number, min=1.0) for number in counted)

    def evaluate(self, tokens, segments, lengths, positions, labels, next_sentence):
        hidden, sentence = self.network(tokens, segments, lengths, positions)
        logits = self.network.logits(hidden)
        return transformer.counts(
            transformer.entropy_sum(logits, labels),
            (labels >= 0).sum(),
            (flow.argmax(logits, dim=-1) == labels.to(flow.int64)).sum(),
            (flow.argmax(sentence, dim=-1) == next_sentence.to(flow.int64)).sum(),
            (next_sentence >= 0).sum(),
        )


def labels_of_all(tokens, positions, labels):
    """Return a label for each token, -1 for those that are not masked; so are positions that fill up."""
    places = flow.arange(tokens.shape[1], device=tokens.device)
    hits = (positions.to(flow.int64).unsqueeze(2) == places).to(flow.int64)
    # No token is masked twice, and a place without a label adds nothing.
    return (hits * (labels.to(flow.int64) + 1).unsqueeze(2)).sum(dim=1) - 1


def build(opt):
    return Pretraining(opt, Bert(opt))


if __name__ == "__main__":
    SPEC.main(transformer, build)
