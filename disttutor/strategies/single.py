"""One process: the oracle that every other strategy is held against.

What is split: nothing. What is kept whole: everything. What is sent: nothing.

With `accumulate=k` it works through the k shares of the batch one after the other, with the dropout stream that each
share would have on a rank of its own. So it is the oracle of k ranks even where one undivided batch is not (dropout,
BatchNorm's statistics within a share).
"""

from disttutor.strategies.strategy import Strategy


class Single(Strategy):
    """Training in one process. The arguments are those of `Strategy`."""
