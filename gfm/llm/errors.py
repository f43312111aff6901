"""What can go wrong between a request and a reply."""

from __future__ import annotations

from gfm.types import GfmError


class RequestError(GfmError):
    """One request came to nothing; another may do better."""


class ServerError(GfmError):
    """No request can do better: a refused key, an unknown model, a server that is gone or asks to come back later."""


class BrokenOffError(RequestError):
    """A reply that was being streamed ended too soon; what came until then was handed on."""
