"""A real HTTP server that speaks OpenAI's chat protocol, and misbehaves on request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """One response.

    Attributes:
        text: Content of the message; whatever is given, so also of a wrong type.
        status: Of the response; other than 200 with ``text`` as the error's message.
        headers: Further ones.
        body: The whole body instead, as it is.
        finish: Why the reply ended.
        refusal: In place of content.
        hang: Seconds until anything is sent.
        cut: Close the connection after so many pieces of a stream.
        usage: Whether tokens are counted: 100 read and 10 written.
    """

    text: Any = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    finish: str = "stop"
    refusal: str | None = None
    hang: float = 0
    cut: int | None = None
    usage: bool = True


Behaviour = Callable[[dict[str, Any], int], "Answer | str"]


class FakeLLM:
    """What the server was asked, and how it answers.

    Attributes:
        requests: Bodies in the order in which they came.
        keys: Authorization header of each.
        most_at_once: The most requests that were under way together.
        behave: Gets a body and the number of the request (from 0), gives the answer.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.most_at_once = 0
        self.behave: Behaviour = lambda body, n: ""
        self.url = ""
        self.over = threading.Event()
        self._open = 0
        self._lock = threading.Lock()

    def answers(self, *answers: Answer | str) -> None:
        """Give these one after another, the last of them for ever."""
        self.behave = lambda body, n: answers[min(n, len(answers) - 1)]

    @contextmanager
    def taken(self, body: dict[str, Any], key: str) -> Iterator[int]:
        """One request under way; gives its number."""
        with self._lock:
            self.requests.append(body)
            self.keys.append(key)
            self._open += 1
            self.most_at_once = max(self.most_at_once, self._open)
            number = len(self.requests) - 1
        try:
            yield number
        finally:
            with self._lock:
                self._open -= 1

    def said(self, n: int = -1) -> str:
        """The last message of a request."""
        content: str = self.requests[n]["messages"][-1]["content"]
        return content


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one packet a response
    fake: FakeLLM

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.fake.taken(body, self.headers.get("Authorization", "")) as number:
            given = self.fake.behave(body, number)
            answer = Answer(given) if isinstance(given, str) else given
            if answer.hang and self.fake.over.wait(answer.hang):
                return
            try:
                if body.get("stream") and answer.status == 200 and answer.body is None:
                    self._stream(answer)
                else:
                    self._send(answer)
            except (BrokenPipeError, ConnectionResetError):
                pass  # the client has lost patience

    def _send(self, answer: Answer) -> None:
        message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
        value: dict[str, Any] = {
            "id": "r",
            "object": "chat.completion",
            "created": 0,
            "model": "fake",
            "choices": [{"index": 0, "message": message, "finish_reason": answer.finish}],
        }
        if answer.usage:
            value["usage"] = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        if answer.status != 200:
            value = {"error": {"message": answer.text, "type": "fake", "code": answer.headers.get("x-code")}}
        data = json.dumps(value).encode() if answer.body is None else answer.body
        self.send_response(answer.status)
        for name, header in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, header)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, answer: Answer) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        pieces = [answer.text[i : i + 7] for i in range(0, len(answer.text), 7)]
        for piece in pieces[: answer.cut]:
            self._event({"delta": {"content": piece}, "finish_reason": None})
        if answer.cut is not None:
            self.close_connection = True
            return
        self._event({"delta": {}, "finish_reason": answer.finish})
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _event(self, choice: dict[str, Any]) -> None:
        chunk = {"id": "r", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
        self._chunk(b"data: " + json.dumps({**chunk, "choices": [{"index": 0, **choice}]}).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()


@contextmanager
def serve() -> Iterator[FakeLLM]:
    """A server on a free port of this machine."""
    fake = FakeLLM()
    handler = type("Handler", (_Handler,), {"fake": fake})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    fake.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class FakeClock:
    """Time that passes only while somebody waits for it.

    Attributes:
        waits: Seconds of each wait.
    """

    def __init__(self) -> None:
        self.time = 1000.0
        self.waits: list[float] = []

    def now(self) -> float:
        """Seconds."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        import anyio

        self.waits.append(seconds)
        self.time += seconds
        await anyio.sleep(0)


def facts(*triples: Sequence[str], entities: Sequence[tuple[str, str]] = ()) -> str:
    """A reply as it ought to be, of (head, relation, tail, evidence) rows."""
    rows = [dict(zip(("head", "relation", "tail", "evidence"), t, strict=True)) for t in triples]
    return json.dumps({"entities": [{"name": n, "type": t} for n, t in entities], "triples": rows}, ensure_ascii=False)
