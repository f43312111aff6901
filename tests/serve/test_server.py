"""Where the service is bound to, and how it ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra: pip install 'gfm-retriever[serve]'")

import httpx

from gfm.serve.server import LOOPBACK_NAMES, guarded, is_loopback, serve
from gfm.serve.settings import ServeSettings
from gfm.types import GfmError


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_what_only_this_machine_reaches(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback
    assert bool(guarded(ServeSettings(), host).hosts) is loopback


def test_names_that_were_given_stay() -> None:
    assert guarded(ServeSettings(hosts=("a",)), "127.0.0.1").hosts == ("a",)
    assert guarded(ServeSettings(), "127.0.0.1").hosts == LOOPBACK_NAMES


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(GfmError, match="choose another --host"):
        serve(lambda *_: None, "127.0.0.1", taken.getsockname()[1], 1, print)  # type: ignore[arg-type,return-value]


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_the_command_serves_until_it_is_told_to_stop(z_index: Path, untrained: Path, repository: Path) -> None:
    command = [sys.executable, "-m", "gfm.cli", "serve", str(z_index), "--checkpoint", str(untrained), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(repository), "PYTHONUNBUFFERED": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout
        assert process.stderr
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert address
        health = httpx.get(f"{address[0]}/health", timeout=30, trust_env=False)
        assert health.json()["status"] == "ok"
        process.send_signal(signal.SIGTERM)
        errors = process.stderr.read()
        process.wait(30)
    assert process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM)
    assert "Application shutdown complete" in errors
    assert "Traceback" not in errors
