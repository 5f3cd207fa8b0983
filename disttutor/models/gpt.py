"""A small GPT: the decoder-only transformer of GPT-2 (Radford et al., 2019), with layer norm before each part.

Shapes in the comments: B samples, T positions, C channels (the width), H heads of D = C / H channels, V the vocabulary.
"""

import math

import torch
from torch import Tensor, nn

from disttutor.models.checks import divisors, share_of_dropped, sizes
from disttutor.models.seeding import seeded


class Attention(nn.Module):
    """Causal self-attention: every position takes a weighted mean over itself and the positions before it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        B, T, C = x.shape
        q, k, v = self.query_key_value(x).split(C, dim=2)  # each B, T, C
        q, k, v = (part.view(B, T, self.heads, C // self.heads).transpose(1, 2) for part in (q, k, v))  # B, H, T, D
        # softmax(q kᵀ / √D) v, with what lies ahead masked out
        dropout = self.dropout if self.training else 0.0
        x = nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)  # B, H, T, D
        x = x.transpose(1, 2).reshape(B, T, C)  # the heads side by side again
        return self.output(x)  # B, T, C


class FeedForward(nn.Module):
    """Each position by itself: four times as wide, a GELU, and back."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(nn.functional.gelu(self.up(x)))  # B, T, 4C on the way


class Block(nn.Module):
    """One transformer layer: attention and feed-forward, each added to what came in."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads, dropout)
        self.norm2 = nn.LayerNorm(width)
        self.feed_forward = FeedForward(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.norm1(x)))  # B, T, C
        return x + self.dropout(self.feed_forward(self.norm2(x)))  # B, T, C


class SmallGPT(nn.Module):
    """Predict the next token at every position.

    Input [B, T] token numbers with T <= context, output [B, T, vocabulary] logits. It has
    V·C + context·C + layers·(12·C² + 13·C) + 2·C parameters, and V·C more when the output layer is not tied to the
    token table. Tied means one parameter used in two places: its gradient is the sum of both.
    """

    def __init__(
        self,
        vocabulary: int,
        context: int,
        width: int,
        heads: int,
        layers: int,
        *,
        dropout: float = 0.0,
        tied: bool = True,
        seed: int | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Raises ValueError for a size below 1, and for heads that do not divide the width (naming those that do)."""
        super().__init__()
        sizes(vocabulary=vocabulary, context=context, width=width, heads=heads, layers=layers)
        share_of_dropped(dropout)
        if width % heads:
            valid = ", ".join(map(str, divisors(width)))
            raise ValueError(f"{heads} heads cannot share a width of {width} evenly; valid numbers of heads: {valid}")
        with seeded(seed):
            self.tokens = nn.Embedding(vocabulary, width)
            self.positions = nn.Embedding(context, width)
            self.dropout = nn.Dropout(dropout)
            self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, vocabulary, bias=False)
            self._draw_start_weights(layers)
        if tied:
            self.head.weight = self.tokens.weight
        self.to(dtype=dtype)

    def _draw_start_weights(self, layers: int) -> None:
        for name, parameter in self.named_parameters():
            if name.endswith("bias"):
                nn.init.zeros_(parameter)
            elif "norm" not in name:
                # 2·layers branches are added up on the way through: smaller ones keep the sum's size as it was.
                into_sum = name.endswith(("attention.output.weight", "feed_forward.down.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers) if into_sum else 0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = ids
        for layer in self.layers_in_order():
            x = layer(x)
        return x  # B, T, V

    def layers_in_order(self) -> list[nn.Module]:
        """Parts that, one after the other, are the model: the embedding, each block, the head with its norm."""
        return [Embed(self.tokens, self.positions, self.dropout), *self.blocks, nn.Sequential(self.norm, self.head)]


class Embed(nn.Module):
    """The first layer: what each token is, and where it stands."""

    def __init__(self, tokens: nn.Embedding, positions: nn.Embedding, dropout: nn.Dropout) -> None:
        super().__init__()
        self.tokens, self.positions, self.dropout = tokens, positions, dropout

    def forward(self, ids: Tensor) -> Tensor:
        T, context = ids.shape[1], self.positions.num_embeddings
        if T > context:
            raise ValueError(f"{T} tokens do not fit this model: its context is {context}, give at most that many")
        return self.dropout(self.tokens(ids) + self.positions.weight[:T])  # B, T, C
