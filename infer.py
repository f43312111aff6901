"""Ask an index: ``python infer.py index=INDEX question="…"``, or ``queries=queries.jsonl run_out=run.json``."""

from dataclasses import fields
from typing import Any

from omegaconf import OmegaConf

from gfm.doors import hydra_door


@hydra_door("infer", plain=("index", "queries", "checkpoint", "run_out", "json_out", "filters"), texts=("question",))
def main(config: Any) -> None:
    """Compose, call, report."""
    # Here, not above: help and a mistyped override then answer at once, before torch is loaded.
    from gfm.context import build_context
    from gfm.eval.run import Inference, infer
    from gfm.report import as_text

    settings = OmegaConf.to_container(config, resolve=True)
    job = Inference(**{field.name: settings[field.name] for field in fields(Inference)})
    for count, result in enumerate(infer(job), start=1):  # noqa: B007 (told below)
        if job.question is not None or not (job.run_out or job.json_out):
            print(as_text(result, build_context(result, config.max_tokens)), end="\n\n")
    for path in filter(None, (job.run_out, job.json_out)):
        print(f"wrote {path}: {count} question(s)")


if __name__ == "__main__":
    main()
