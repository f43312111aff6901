"""The service: an application over one index."""

# No `from __future__ import annotations`: FastAPI reads the annotations of what is made inside functions here.
import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from gfm import __version__
from gfm.extras import extra
from gfm.llm.errors import RequestError, ServerError
from gfm.llm.port import LLM
from gfm.retrieve.base import Retriever, within
from gfm.retrieve.gnn import GNNRetriever
from gfm.serve import work
from gfm.serve.gate import Gate
from gfm.serve.limits import Limits
from gfm.serve.live import Live
from gfm.serve.metrics import CONTENT_TYPE, Metrics
from gfm.serve.requests import Health, request_models
from gfm.serve.responses import REFUSED, SHOWN, add_handlers, as_bytes, json_response
from gfm.serve.settings import ServeSettings
from gfm.types import GfmError

with extra("serve"):
    from fastapi import FastAPI
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

_LOG = logging.getLogger(__name__)


class Service:
    """What stands behind the routes.

    Args:
        load: Opens the index and makes a retriever that threads may share.
        settings: The limits.
        llm: Writes the answers; without one they are sentences of the sources.
    """

    def __init__(self, load: Callable[[], Retriever], settings: ServeSettings, llm: LLM | None):
        self.live, self.settings, self.llm = Live(load), settings, llm
        self.gates = {"search": Gate(settings.concurrency, settings.queue, "search")}
        if llm is not None:  # whoever waits for a model shall not keep searches waiting
            self.gates["ask"] = Gate(llm.settings.concurrency, settings.queue, "ask")
        self.metrics = Metrics(self.live, self.gates)

    async def done(self, gate: str, what: Callable[..., work.Done], body: Any, *args: Any) -> Response:
        """The response to a request, worked out in a thread."""

        def job() -> tuple[bytes, dict[str, float]]:
            try:
                retriever = within(self.live.retriever, body.filters)
            except GfmError as error:  # filters that no document fits, or could fit
                raise HTTPException(404, str(error)[:SHOWN]) from error
            row, seconds = what(retriever, body.question, body.top_k, *args)
            return as_bytes(row), seconds

        data, seconds = await self.gates[gate].run(job, self.settings.timeout)
        self.metrics.stages(seconds)
        return json_response(data)

    def ask(self, retriever: Retriever, question: str, top_k: int, max_tokens: int) -> work.Done:
        """An answer; what hinders it becomes the status of the response."""
        try:
            return work.ask(retriever, question, top_k, max_tokens, self.llm)
        except (RequestError, ServerError) as error:
            _LOG.error("the language model did not answer: %s", error)
            raise HTTPException(502, "the language model did not answer; the server's log says why") from error
        except GfmError as error:  # a budget without room for a passage
            raise HTTPException(422, str(error)) from error

    def health(self) -> Health:
        """What is served."""
        live = self.live
        return Health(
            status="stale" if live.stale else "ok",
            generation=live.generation,
            reloads=live.reloads,
            version=__version__,
            counts=live.retriever.index.manifest["counts"],
        )

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """Look after the generation in force for as long as the application runs."""
        watching = asyncio.create_task(self._watch())
        yield
        watching.cancel()
        for gate in self.gates.values():
            gate.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self.settings.reload)
            await asyncio.to_thread(self.live.refresh)


def make_app(load: Callable[[], Retriever], settings: ServeSettings | None = None, llm: LLM | None = None) -> FastAPI:
    """An application; `uvicorn` or any other ASGI server runs it.

    Args:
        load: Opens the index and makes the retriever: ``lambda: GNNRetriever.from_pretrained(GraphIndex.open(path))``.
            Called now, and again when a new generation of the index is in force.
        settings: The limits.
        llm: Writes the answers of ``/ask``; without one they are sentences of the sources.

    Raises:
        GfmError: The index does not open, or the libraries of the extra ``serve`` are missing.
    """
    settings = settings or ServeSettings()
    service, models = Service(load, settings, llm), request_models(settings)
    app = FastAPI(
        title="gfm",
        version=__version__,
        description="Retrieval over a graph of facts.",
        lifespan=service.lifespan,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
    )
    add_handlers(app)
    app.add_middleware(Limits, settings=settings, metrics=service.metrics)
    post = partial(app.post, responses=REFUSED, response_model=dict[str, Any])

    @post("/search")
    async def search(body: models.Search) -> Response:  # type: ignore[name-defined]
        """Passages for a question, what led to them, and the context for a language model."""
        return await service.done("search", work.search, body, body.max_tokens)

    @post("/ask", responses={**REFUSED, 502: REFUSED[500]})
    async def ask(body: models.Ask) -> Response:  # type: ignore[name-defined]
        """An answer with citations of its sources."""
        gate = "search" if llm is None else "ask"
        return await service.done(gate, service.ask, body, body.max_tokens)

    if isinstance(service.live.retriever, GNNRetriever):

        @post("/explain")
        async def explain(body: models.Explain) -> Response:  # type: ignore[name-defined]
            """Why: the scored graph that the passages of `/search` were cut from."""
            return await service.done("search", work.explain, body)

    @app.get("/health")
    async def health() -> Health:
        """Whether it works, and which generation of the index is served."""
        return service.health()

    @app.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
    async def metrics() -> Response:
        """Numbers in Prometheus' text format."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    return app
