"""The command that answers: ask."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gfm.cli.options import Checkpoint, Filters, IndexFolder, RetrieverName, open_index
from gfm.doors import as_typed, say, say_json
from gfm.types import GfmError

# As in gfm/cli/app.py, everything heavy is imported inside the command.
if TYPE_CHECKING:
    from gfm.answer.answer import Answer, Answerer
    from gfm.llm.port import LLM

# \b keeps the line breaks of what follows.
ASK_EXAMPLES = (
    '\b\nExamples:\n  gfm ask my_index "Who built Tarn Mill?"\n'
    '  gfm ask my_index "Who built Tarn Mill?" --llm llm.yaml\n'
    "  gfm ask my_index --chat --llm llm.yaml"
)


def ask(
    index_folder: IndexFolder,
    question: Annotated[
        str | None, typer.Argument(metavar="QUESTION", help="In quotes; after -- where it begins with -.")
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Take questions from standard input, one a line; they build upon each other.")
    ] = False,
    llm: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings of a language model; else the environment's.")
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model, in place of the settings'.")] = None,
    extractive: Annotated[
        bool, typer.Option("--extractive", help="Ask no model: answer with the best sentences of the sources.")
    ] = False,
    threshold: Annotated[
        float | None, typer.Option(metavar="COSINE", help="Least score of the best passage. [0.3]")
    ] = None,
    top_k: Annotated[int, typer.Option(metavar="N", min=1, help="Passages to retrieve.")] = 5,
    max_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Budget of all that a model reads.")] = 3000,
    retriever: RetrieverName = "gfm",
    checkpoint: Checkpoint = None,
    filters: Filters = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, one line for each question.")] = False,
) -> None:
    """Answer a question with checked citations: by a language model, or else in the words of the sources."""
    from gfm.answer.answer import Answerer, AnswerSettings
    from gfm.eval.run import open_retriever

    if (question is None) != chat:
        raise typer.BadParameter("expected either a QUESTION or --chat")
    port = None if extractive else _port(llm, model)
    settings = AnswerSettings(top_k, max_tokens, AnswerSettings().threshold if threshold is None else threshold)
    opened = open_index(index_folder, filters)
    found = open_retriever(opened, {"name": retriever}, str(checkpoint) if checkpoint else None)
    answerer = Answerer(found, port, settings)
    if question is None:
        _chat(answerer, as_json)
        return
    answer = answerer.ask(as_typed(question), None if as_json else _piece)
    _show(answer, as_json, port)
    if answer.broken_off:
        raise GfmError(answer.broken_off)


def _port(file: Path | None, model: str | None) -> LLM | None:
    """The model that is named somewhere; None where none is."""
    if file is None and model is None and not os.environ.get("OPENAI_MODEL"):
        return None
    from gfm.llm.port import LLM
    from gfm.llm.settings import read_settings

    return LLM(read_settings(file, model=model))


def _chat(answerer: Answerer, as_json: bool) -> None:
    """One answer for each line; a question that fails is told, and the next one is taken."""
    from gfm.answer.conversation import Conversation

    talk, failed = Conversation(answerer), 0
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            answer = talk.ask(line.strip(), None if as_json else _piece)
            _show(answer, as_json, answerer.llm)
            problem = answer.broken_off
        except GfmError as error:
            problem = str(error)
        if problem:
            failed += 1
            print(f"error: {' '.join(problem.split())}", file=sys.stderr, flush=True)
    if failed:
        raise GfmError(f"{failed} question(s) without a whole answer, see above; ask them again")


def _piece(text: str) -> None:
    print(text, end="", flush=True)


def _show(answer: Answer, as_json: bool, port: LLM | None) -> None:
    """What follows an answer that was printed as it came; or all of it as one line of JSON."""
    if as_json:
        row: dict[str, Any] = answer.as_json()
        if port is not None:
            row["spent"] = port.spent.as_json(port.settings)
        say_json(row, indent=None)
        return
    say("\n".join(["", *_lines(answer, port), ""]))


def _lines(answer: Answer, port: LLM | None) -> list[str]:
    passages = {hit.item.id: hit.item for hit in answer.retrieval.passages}
    lines = ["", "Sources"] if answer.sources else []
    for source in answer.sources:
        title = passages[source.passage_id].title
        lines.append(
            f"[{source.n}] {f'{title} ' if title else ''}({source.document_id}, characters {source.start}-{source.end})"
        )
    notes = list(answer.notes)
    if answer.searched != answer.question:
        notes.append(f"searched: {answer.searched}")
    if answer.removed:
        numbers = ", ".join(f"[{n}]" for n in answer.removed)
        notes.append(f"taken out: {numbers}, cited by the model although there is no such source")
    notes += [f"no source is cited for: {sentence}" for sentence in answer.uncited]
    notes += [f"no word of it stands in the source that it cites: {sentence}" for sentence in answer.strange]
    if answer.kind == "extractive" and port is None:
        notes.append("these are sentences of the sources; a language model answers with --llm FILE (docs/llm.md)")
    if port is not None:
        notes.append(f"language model: {port.spent.text(port.settings)}")
    return [*lines, *(["", *notes] if notes else [])]
