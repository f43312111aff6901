"""The description of the service, checked against the service by schemathesis with made-up requests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("schemathesis", reason="needs the extra: pip install 'gfm-retriever[dev]'")
pytest.importorskip("fastapi", reason="needs the extra: pip install 'gfm-retriever[serve]'")

from tests.serve.conftest import Serve


@pytest.mark.slow
def test_the_service_does_what_its_description_says(serve: Serve, tmp_path: Path) -> None:
    options = [
        "--phases",
        "coverage,fuzzing",
        "--max-examples",
        "10",
        "--workers",
        "4",
        "--seed",
        "1",
        "--no-color",
    ]
    with serve(max_question=200) as client:
        run = [sys.executable, "-m", "schemathesis.cli", "run", f"{client.base_url}/openapi.json", *options]
        done = subprocess.run(run, cwd=tmp_path, env={**os.environ, "NO_PROXY": "*"}, capture_output=True, check=False)
    output = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, output + done.stderr.decode("utf-8", "replace")
    assert "Tested: 5" in output
