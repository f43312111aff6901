"""A real server on the loopback interface, and a retriever that waits until it is told to go on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra: pip install 'gfm-retriever[serve]'")

import httpx
import uvicorn

from gfm.index.index import GraphIndex
from gfm.retrieve.base import Retriever
from gfm.retrieve.dense import DenseRetriever
from gfm.retrieve.gnn import GNNRetriever
from gfm.serve.app import make_app
from gfm.serve.settings import ServeSettings
from gfm.types import Query, Retrieval

Serve = Callable[..., AbstractContextManager[httpx.Client]]


@contextmanager
def running(app: Any) -> Iterator[httpx.Client]:
    """A client of an application that runs in a thread."""
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=5))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:  # connections wait in the listener until the server is up
        base = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with httpx.Client(base_url=base, timeout=30, trust_env=False) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
    assert not thread.is_alive()


@pytest.fixture
def loader(z_index: Path, untrained: Path) -> Callable[[], Retriever]:
    """Opens Corpus Z with a network of random weights."""
    return lambda: GNNRetriever.from_pretrained(GraphIndex.open(z_index), untrained)


@pytest.fixture
def serve(loader: Callable[[], Retriever]) -> Serve:
    """Serves Corpus Z, or what another loader opens; further arguments are `ServeSettings`."""

    def start(load: Callable[[], Retriever] = loader, llm: Any = None, **settings: Any) -> Any:
        return running(make_app(load, ServeSettings(**settings), llm))

    return start


class Waiting:
    """A retriever that answers when it is told to.

    Attributes:
        begun: A permit for each question that it has begun to work on.
        go: Set, it answers.
    """

    def __init__(self, index: GraphIndex):
        self.index, self.begun, self.go = index, threading.Semaphore(0), threading.Event()

    def retrieve(self, query: str | Query, top_k: int = 10) -> Retrieval:
        self.begun.release()
        assert self.go.wait(30)
        return DenseRetriever(self.index).retrieve(query, top_k)


@pytest.fixture
def waiting(z_index: Path) -> Iterator[Waiting]:
    """One that is let go at the end in any case."""
    made = Waiting(GraphIndex.open(z_index))
    yield made
    made.go.set()
