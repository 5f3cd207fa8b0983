"""What widgets with links into the lessons share: how their browser code is put together, and what they leave in a
notebook for where there is no kernel."""

from importlib import resources
from pathlib import Path
from typing import Any


def script(*names: str) -> str:
    """One module of the files `names` beside this one, which can also open lessons; the last one exports `render`."""
    opener = (resources.files("disttutor.cards") / "open_lesson.js").read_text(encoding="utf-8")
    return "\n".join([opener, *(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names)])


def with_fallback(bundle: Any, html: str, plain: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A widget's MIME bundle with HTML and text beside it: JupyterLab shows the widget while it can."""
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
    return {**data, "text/html": html, "text/plain": plain}, metadata
