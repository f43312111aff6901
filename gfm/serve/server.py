"""Runs the service until it is told to stop."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from gfm.extras import extra
from gfm.serve.settings import ServeSettings
from gfm.types import GfmError

with extra("serve"):
    import uvicorn
    from starlette.types import ASGIApp

_LOG = logging.getLogger(__name__)
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what is bound to a host."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def guarded(settings: ServeSettings, host: str) -> ServeSettings:
    """The settings for a host: on the loopback interface the service answers to that interface's names alone."""
    if settings.hosts or not is_loopback(host):
        return settings
    return replace(settings, hosts=tuple(dict.fromkeys((*LOOPBACK_NAMES, host))))


def serve(app: ASGIApp, host: str, port: int, grace: float, started: Callable[[str], None]) -> None:
    """Answer requests until SIGINT or SIGTERM comes; then those under way are finished.

    Args:
        app: From `make_app`.
        host: Address or name to bind to.
        port: To bind to; 0 for any that is free.
        grace: Seconds that requests under way have after the signal.
        started: Gets the address once connections are taken.

    Raises:
        GfmError: The host and port cannot be bound to.
    """
    if not is_loopback(host):
        _LOG.warning("bound to %s: whoever reaches this machine can ask, and nobody is asked for a password", host)
    with _bound(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{listener.getsockname()[1]}")
        config = uvicorn.Config(
            app, log_level="info", server_header=False, proxy_headers=False, timeout_graceful_shutdown=round(grace)
        )
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def _bound(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError, UnicodeError) as error:
        raise GfmError(
            f"{host}:{port}: expected an address that can be bound to, found: {error}; choose another --host or --port"
        ) from error
