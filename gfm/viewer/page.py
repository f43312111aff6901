"""An explanation as one HTML file that works offline: the data, the style and the script are inside it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from gfm.text.normalise import clean
from gfm.viewer.layout import Layout, layout

_FOLDER = Path(__file__).parent / "page"
_SCRIPTS = ("dom.js", "labels.js", "graph.js", "moves.js", "detail.js", "sections.js", "page.js")
_HOPS = ("seeds", "1 hop", "2 hops")
# What could end a script element, or be markup to anybody who looks for it.
_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&"})


def page(explanation: dict[str, Any]) -> str:
    """The file, from what `gfm.viewer.graph.explanation` made; the same explanation gives the same page.

    All text of others is data: the script puts it on the page as text, never as markup, and the page's policy lets no
    script run but the one inside it, and nothing be loaded.
    """
    script = "\n".join(['"use strict";', *(_read(name) for name in _SCRIPTS)])
    style = _read("page.css")
    shown = {name: value for name, value in explanation.items() if name not in ("entities", "facts", "paths")}
    return Template(_read("page.html")).substitute(
        title=html.escape(f"{clean(explanation['query']['text'])} (gfm explain)"),
        data=_json({**shown, "layout": _layout(explanation)}),
        script=script,
        style=style,
        script_hash=_hash(script),
        style_hash=_hash(style),
    )


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON of ASCII alone, so without U+2028 and lone surrogates, in which nothing can end a script element."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def _hash(text: str) -> str:
    """What a content security policy calls a script or a style by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}"


def _layout(explanation: dict[str, Any]) -> dict[str, Any]:
    """Places, radii and names of the rings."""
    nodes, links, paths = (explanation["graph"][name] for name in ("nodes", "links", "paths"))
    hops = sorted({node["hop"] for node in nodes if node["kind"] == "entity"})
    names = [_HOPS[hop] if hop < len(_HOPS) else f"{hop} hops" for hop in hops]
    ring = np.array([hops.index(n["hop"]) if n["kind"] == "entity" else len(hops) for n in nodes], dtype=np.int64)
    on_path = {link for path in paths.values() for link, _ in path}
    weight = [20.0 if i in on_path else 1.0 + 2.0 * link["kept"] for i, link in enumerate(links)]
    best = next((hit["id"] for hit in explanation["passages"]), None)
    first = next((i for i, n in enumerate(nodes) if n["kind"] == "passage" and n["id"] == best), -1)
    ends = np.array([(link["source"], link["target"]) for link in links], dtype=np.int64).reshape(-1, 2)
    returned = {hit["id"] for hit in explanation["passages"]}
    shown_large = [n["kind"] == "passage" and n["id"] in returned for n in nodes]
    room = np.array([9.0 if large else 3.0 if n["kept"] else 1.0 for n, large in zip(nodes, shown_large, strict=True)])
    made: Layout = layout(ring, room, ends[:, 0], ends[:, 1], np.array(weight), first)
    passages = ["passages"] if len(made.radii) > len(hops) else []
    return {"places": np.round(made.xy, 4).tolist(), "radii": made.radii, "names": names + passages}
