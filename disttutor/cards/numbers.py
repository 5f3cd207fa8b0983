"""All number cards, lesson by lesson: the numbers are drawn anew each time, and the library computes the answer."""

from disttutor.cards import (
    numbers_batches,
    numbers_collectives,
    numbers_data_parallel,
    numbers_links,
    numbers_machines,
    numbers_memory,
    numbers_mesh,
    numbers_pipelines,
    numbers_scaling,
    numbers_stages,
    numbers_tensor,
    numbers_zero,
)
from disttutor.cards.card import Card

_TOPICS = (numbers_collectives, numbers_links, numbers_data_parallel, numbers_batches, numbers_memory, numbers_zero,
           numbers_tensor, numbers_pipelines, numbers_stages, numbers_mesh, numbers_scaling, numbers_machines)

NUMBER_CARDS: tuple[Card, ...] = tuple(sorted((card for topic in _TOPICS for card in topic.cards),
                                              key=lambda card: card.lesson))
