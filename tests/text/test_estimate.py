from __future__ import annotations

from gfm.text.estimate import estimate_tokens


def test_estimate_counts_words_and_signs_of_every_script() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("Tarn Mill.") == 4  # 3 · 1.3
    assert estimate_tokens("海港书店") == 6  # 4 · 1.3
    assert estimate_tokens("a" * 80) == 13  # 10 · 1.3
