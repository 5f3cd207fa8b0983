"""Reads a drawing back: what stands where."""

import re
from xml.etree import ElementTree

from disttutor.figures.svg import text_width

SVG = "{http://www.w3.org/2000/svg}"
BOX = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-")


def root(figure):
    return ElementTree.fromstring(figure.svg)


def texts(figure):
    return ["".join(node.itertext()) for node in root(figure).iter(f"{SVG}text")]


def boxes(figure):
    """(fill, x, y, width, height) of every rectangle that is filled by the pattern of a kind."""
    out = []
    for group in [root(figure), *root(figure).iter(f"{SVG}g")]:
        for node in group:
            fill = node.get("fill") or group.get("fill") or ""
            if fill.startswith("url(#") and node.tag == f"{SVG}rect":
                out.append((fill[5:-1], *(float(node.get(k)) for k in ("x", "y", "width", "height"))))
            elif fill.startswith("url(#") and node.tag == f"{SVG}path":
                out += [(fill[5:-1], *map(float, found)) for found in BOX.findall(node.get("d"))]
    return out


def subpaths(figure, name):
    """The coordinates of each subpath `M x y L x y` of the paths of that class."""
    paths = [node.get("d") for node in root(figure).iter(f"{SVG}path") if node.get("class") == name]
    return [tuple(map(float, re.findall(r"-?[\d.]+", part))) for path in paths for part in path.split("M") if part]


def outside(figure):
    """Texts and rectangles that reach over the edge of the drawing."""
    page = root(figure)
    width, height = float(page.get("width")), float(page.get("height"))
    lost = []
    for group in [page, *page.iter(f"{SVG}g")]:
        for node in group.findall(f"{SVG}text"):
            words = "".join(node.itertext())
            size, anchor = (node.get(k, group.get(k, "start")) for k in ("font-size", "text-anchor"))
            x, size = float(node.get("x")), float(size)
            long = text_width(words, size, node.get("font-weight") == "bold")
            left = x - {"start": 0, "middle": long / 2, "end": long}[anchor]
            if left < 0 or left + long > width or not size <= float(node.get("y")) <= height - 2:
                lost.append(words)
    shapes = [tuple(float(node.get(k)) for k in ("x", "y", "width", "height")) for node in page.iter(f"{SVG}rect")
              if node.get("x") is not None]
    for x, y, w, h in [*shapes, *(box[1:] for box in boxes(figure))]:
        if x < 0 or y < 0 or x + w > width + 0.01 or y + h > height + 0.01:
            lost.append((x, y, w, h))
    return lost
