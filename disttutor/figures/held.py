"""The step curve under a rank's lane: how many micro-batches' activations it holds."""

from disttutor.figures.style import HELD, HELD_LINE
from disttutor.figures.svg import number


def curve(points: list[tuple[float, int]], end: float, left: float, bottom: float, height: float, highest: int,
          apart: float) -> str:
    """The area under a curve of (x, count), each until the next and the last until `end`, in pixels.

    It stands on `bottom`, and `highest` (above 0) is `height` pixels up. Steps less than `apart` pixels from one
    another are drawn as one, as high as the highest of them.
    """
    steps: list[tuple[float, int, int]] = []                # from where on, the highest and the last count there
    for x, count in points:
        if steps and x < steps[-1][0] + apart:
            steps[-1] = (steps[-1][0], max(steps[-1][1], count), count)
        else:
            steps.append((x, count, count))
    path = [f"M{number(left)} {number(bottom)}"]
    for x, most, last in steps:
        path.append(f"H{number(left + x)}")
        path += [f"V{number(bottom - count / highest * height)}" for count in dict.fromkeys((most, last))]
    path += [f"H{number(left + end)}", f"V{number(bottom)}z"]
    return f'<path class="held" d="{"".join(path)}" fill="{HELD}" stroke="{HELD_LINE}" stroke-width="0.8"/>'
