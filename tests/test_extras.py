"""Libraries that an extra brings."""

from __future__ import annotations

import pytest

from gfm.extras import extra
from gfm.types import GfmError


def test_a_missing_library_is_named_with_what_installs_it() -> None:
    with pytest.raises(GfmError, match=r"found: No module.*gfm-retriever\[serve\]'"), extra("serve"):
        import nobody_has_this  # noqa: F401


def test_another_error_stays_what_it_is() -> None:
    with pytest.raises(ZeroDivisionError), extra("serve"):
        _ = 1 / 0
