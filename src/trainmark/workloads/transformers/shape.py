"""The shape of a transformer: what its tensors, its FLOP and its memory follow from."""

from typing import NamedTuple


class Shape(NamedTuple):
    """One size of a family.

    `hidden` is the width inside the MLP, `positions` the longest sequence, `gated` an MLP with three matrices
    (SwiGLU). Attention is `causal` in a decoder. A head that is `tied` shares the token embedding's matrix.
    """

    layers: int
    width: int
    heads: int
    key_value_heads: int
    hidden: int
    vocabulary: int
    positions: int
    causal: bool = True
    gated: bool = False
    tied: bool = True

    @property
    def head_width(self):
        return self.width // self.heads

    @property
    def key_value_width(self):
        return self.key_value_heads * self.head_width
