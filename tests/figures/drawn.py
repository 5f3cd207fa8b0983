"""Reads a drawing back: what stands where."""

from xml.etree import ElementTree

from disttutor.figures.svg import text_width

SVG = "{http://www.w3.org/2000/svg}"


def root(figure):
    return ElementTree.fromstring(figure.svg)


def texts(figure):
    return ["".join(node.itertext()) for node in root(figure).iter(f"{SVG}text")]


def boxes(figure):
    """(kind, x, y, width, height) of every rectangle that is filled by the pattern of a kind."""
    out = []
    for group in [root(figure), *root(figure).iter(f"{SVG}g")]:
        for node in group.findall(f"{SVG}rect"):
            fill = node.get("fill") or group.get("fill") or ""
            if fill.startswith("url(#"):
                out.append((fill[5:-1], *(float(node.get(k)) for k in ("x", "y", "width", "height"))))
    return out


def outside(figure):
    """Texts and rectangles that reach over the edge of the drawing."""
    page = root(figure)
    width, height = float(page.get("width")), float(page.get("height"))
    lost = []
    for node in page.iter(f"{SVG}text"):
        words, x, size = "".join(node.itertext()), float(node.get("x")), float(node.get("font-size"))
        long = text_width(words, size, node.get("font-weight") == "bold")
        left = x - {"start": 0, "middle": long / 2, "end": long}[node.get("text-anchor", "start")]
        if left < 0 or left + long > width or not size <= float(node.get("y")) <= height - 2:
            lost.append(words)
    for node in page.iter(f"{SVG}rect"):
        if node.get("x") is not None:
            x, y, w, h = (float(node.get(k)) for k in ("x", "y", "width", "height"))
            if x < 0 or y < 0 or x + w > width + 0.01 or y + h > height + 0.01:
                lost.append(ElementTree.tostring(node))
    return lost
