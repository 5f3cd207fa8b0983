"""All number cards, lesson by lesson: the numbers are drawn anew each time, and the library computes the answer."""

from disttutor.cards.card import Card
from disttutor.cards.numbers import (
    batches,
    collectives,
    data_parallel,
    links,
    machines,
    memory,
    mesh,
    pipelines,
    scaling,
    stages,
    tensor,
    zero,
)

_TOPICS = (collectives, links, data_parallel, batches, memory, zero,
           tensor, pipelines, stages, mesh, scaling, machines)

NUMBER_CARDS: tuple[Card, ...] = tuple(sorted((card for topic in _TOPICS for card in topic.cards),
                                              key=lambda card: card.lesson))
