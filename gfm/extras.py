"""Libraries that not everybody needs: an extra of the package brings them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gfm.types import GfmError


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Stands around the imports of libraries that come with an extra.

    Args:
        name: The extra.

    Raises:
        GfmError: A library is missing, or is a version without what was asked of it.
    """
    try:
        yield
    except ImportError as error:
        raise GfmError(
            f"expected the libraries of the extra {name!r}, found: {error}; install them with: "
            f"pip install 'gfm-retriever[{name}]'"
        ) from error
