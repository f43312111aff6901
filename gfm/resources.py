"""Where the files that travel with the package are: inside it in a wheel, at the top of the repository in a clone."""

from __future__ import annotations

from pathlib import Path

from gfm.types import GfmError

_PACKAGE = Path(__file__).parent


def demo_folder() -> Path:
    """The demo set: corpus.jsonl, queries.jsonl and qrels/test.tsv.

    Raises:
        GfmError: It is in neither place.
    """
    return _find("demo_data", "data/demo", "corpus.jsonl")


def config_folder() -> Path:
    """The Hydra configurations.

    Raises:
        GfmError: They are in neither place.
    """
    return _find("configs", "configs", "infer.yaml")


def _find(inside: str, beside: str, file: str) -> Path:
    """The folder ``inside`` the package, or ``beside`` it, that holds ``file``."""
    places = (_PACKAGE / inside, _PACKAGE.parent / beside)
    for place in places:
        if (place / file).is_file():
            return place
    raise GfmError(
        f"expected {file} in {places[0]} or {places[1]}, found neither; install gfm again: pip install "
        "--force-reinstall --no-deps gfm-retriever, or run from a whole checkout"
    )
