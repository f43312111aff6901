"""What goes to a client: JSON, and errors that tell nothing of the machine."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from gfm.extras import extra
from gfm.serve.gate import BusyError
from gfm.types import GfmError

with extra("serve"):
    from fastapi import FastAPI, Request
    from fastapi.exceptions import RequestValidationError
    from pydantic import BaseModel
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

_LOG = logging.getLogger(__name__)
_WRONG = "something went wrong; the server's log says what"
RETRY_AFTER = 1  # seconds
SHOWN = 300  # characters of what is wrong with a request


class Problem(BaseModel):
    """Why there is no result."""

    error: str


REFUSED: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": text}
    for status, text in {
        400: "The body is no JSON.",
        404: "No document of the index fits the filters, or none could.",
        408: "The body did not come within the time limit.",
        413: "The body is too large.",
        421: "The service was called by a name that is not its own.",
        422: "A value is missing, unknown or out of its range.",
        500: "Something went wrong; the server's log says what.",
        503: "Too many requests wait; come back after Retry-After seconds.",
        504: "There was no result within the time limit.",
    }.items()
}


def as_bytes(value: Any) -> bytes:
    """JSON in ASCII, so that no character can be one that UTF-8 lacks."""
    return json.dumps(value, sort_keys=True, allow_nan=False).encode("ascii")


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response of plain values, or of JSON that was written already."""
    data = value if isinstance(value, bytes) else as_bytes(value)
    return Response(data, status, headers, media_type="application/json")


def problem(status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """A response that says what is wrong."""
    return json_response({"error": text}, status, headers)


def add_handlers(app: FastAPI) -> None:
    """Every error becomes a `Problem` with the right status."""

    @app.exception_handler(HTTPException)
    async def refused(_: Request, error: HTTPException) -> Response:
        return problem(error.status_code, error.detail, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        found = error.errors()[0]
        place = ".".join(str(part) for part in found["loc"])
        return problem(422, f"{place}: {found['msg']}"[:SHOWN])

    @app.exception_handler(BusyError)
    async def busy(_: Request, error: BusyError) -> Response:
        headers = {"Retry-After": str(RETRY_AFTER)}
        return problem(503, "too many requests wait already; come back later", headers)

    @app.exception_handler(TimeoutError)
    async def slow(_: Request, error: TimeoutError) -> Response:
        return problem(504, "no result within the time limit")

    @app.exception_handler(GfmError)
    async def mendable(_: Request, error: GfmError) -> Response:
        _LOG.error("%s", error)
        return problem(500, _WRONG)

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        return problem(500, _WRONG)  # the server logs the traceback
