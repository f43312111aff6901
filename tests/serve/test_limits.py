"""Sizes and hosts."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("fastapi", reason="needs the extra: pip install 'gfm-retriever[serve]'")

from collections.abc import Iterator

from tests.serve.conftest import Serve

BODY = {"question": "winter"}


def test_a_body_that_is_too_large_is_refused_however_it_comes(serve: Serve) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b"x" * 10

    with serve(max_body=100) as client:
        assert client.post("/search", json=BODY).status_code == 200
        for content in (b"x" * 101, pieces()):
            response = client.post("/search", content=content)
            assert (response.status_code, set(response.json())) == (413, {"error"})
        assert client.post("/search", json=BODY).status_code == 200


def test_a_body_that_does_not_come_is_not_waited_for(serve: Serve) -> None:
    with serve(timeout=0.2) as client:
        url = client.base_url
        with socket.create_connection((url.host, url.port), timeout=30) as line:
            line.sendall(b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
            assert line.recv(1000).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_goes_leaves_nothing_behind(serve: Serve) -> None:
    with serve() as client:
        url = client.base_url
        with socket.create_connection((url.host, url.port), timeout=30) as line:
            line.sendall(b"POST /search HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
        assert client.post("/search", json=BODY).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("LOCALHOST", 200),
        ("[::1]:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example:8000", 421),
        ("[::1", 421),
    ],
)
def test_a_strange_name_is_refused(serve: Serve, host: str, status: int) -> None:
    with serve(hosts=("localhost", "127.0.0.1", "::1")) as client:
        assert client.get("/health", headers={"host": host}).status_code == status
