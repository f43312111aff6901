"""How long it takes to add one document to an index, to delete it again, and what memory that needs.

    python scripts/bench_add.py CORPUS [CORPUS ...] [--passages 10000] [--encoder hashing:384] [--work FOLDER]
        [--cache FILE]
    python scripts/bench_add.py --grow 1000

The first form builds an index of the corpora, joined, in FOLDER (once; facts by spaCy), then adds and deletes a
document of three sentences, each time in a new process, as `gfm add` does. The second adds one-line documents one at a
time to an index of nothing else: the last should take no more than three times as long as the tenth.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from gfm.extract.spacy_facts import SpacyExtractor
from gfm.index.builder import build_index
from gfm.index.documents import read_documents
from gfm.index.index import GraphIndex
from gfm.index.living import Change, change_documents
from gfm.index.recipe import BuildSettings
from gfm.memory import peak_memory
from gfm.text.encoder import HashingEncoder, load_encoder
from gfm.types import Document

NEW = Document(
    "bench/new",
    "Tarn Mill",
    "Tarn Mill is a water mill in Norway. It was built by Orla Venn, who was born in Port Isk and lived in London. "
    "The mill burned in 1911 and was opened again by the National Trust.",
)


def joined(corpora: list[Path], limit: int) -> list[Document]:
    """The documents of several corpora under ids that are unique, at most ``limit``."""
    found = [replace(d, id=f"{i}/{d.id}") for i, path in enumerate(corpora) for d in read_documents(path).documents]
    return found[:limit]


def line(what: str, wall: float, cpu: float, change: Change) -> str:
    """One measurement as a line."""
    stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in change.seconds.items())
    work = f"extracted {change.extracted}, encoded {change.encoded}"
    memory = f"peak memory {peak_memory() / 1e9:.2f} GB"
    return f"{what}: {wall:.2f} s wall, {cpu:.2f} s of processor ({stages}); {work}; {memory}\n"


def once(path: Path, what: str, cache: Path | None) -> None:
    """Add or delete the document and print the line; what is imported, and the models, count apart."""
    manifest = GraphIndex.open(path).manifest
    encoder, extractors = load_encoder(manifest["encoder"]["name"]), [SpacyExtractor()]
    encoder.encode(["a"])
    start, cpu = time.perf_counter(), time.process_time()
    put, gone = ([NEW], []) if what == "add" else ([], [NEW.id])
    change = change_documents(path, put, gone, encoder=encoder, extractors=extractors, cache_path=cache)
    sys.stdout.write(line(what, time.perf_counter() - start, time.process_time() - cpu, change))


def grow(count: int) -> None:
    """Add documents of one line, one at a time."""
    with tempfile.TemporaryDirectory() as name:
        path, encoder = Path(name) / "index", HashingEncoder(384)
        lines = [Document(f"d{i:05}", f"Mill {i}", f"Mill {i} stands by Brook {i % 97}.") for i in range(count + 1)]
        build_index(lines[:1], path, encoder, [], BuildSettings())
        seconds = []
        for document in lines[1:]:
            start = time.perf_counter()
            change_documents(path, [document], encoder=encoder)
            seconds.append(time.perf_counter() - start)
    first, last = median(seconds[5:15]), median(seconds[-10:])
    sys.stdout.write(
        f"document 10: {first:.3f} s, document {count}: {last:.3f} s ({last / first:.1f} times); "
        f"peak memory {peak_memory() / 1e9:.2f} GB\n"
    )


def main() -> None:
    """Build, then add and delete three times over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", type=Path)
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--encoder", default="hashing:384")
    parser.add_argument("--work", type=Path, default=Path("bench_add"))
    parser.add_argument("--cache", type=Path, help="the cache, where that is not the index's own")
    parser.add_argument("--grow", type=int, default=0)
    parser.add_argument("--once", choices=["add", "delete"], help="used by the script itself")
    chosen = parser.parse_args()
    if chosen.grow:
        grow(chosen.grow)
    elif chosen.once:
        once(chosen.work / "index", chosen.once, chosen.cache)
    else:
        chosen.work.mkdir(parents=True, exist_ok=True)
        if not (chosen.work / "index" / "CURRENT").is_file():
            documents = joined(chosen.corpora, chosen.passages)
            encoder = load_encoder(chosen.encoder)
            build_index(documents, chosen.work / "index", encoder, [SpacyExtractor()], cache_path=chosen.cache)
        counts = GraphIndex.open(chosen.work / "index").manifest["counts"]
        sys.stdout.write(f"{chosen.work}: {', '.join(f'{n} {name}' for name, n in counts.items())}\n")
        for what in ("add", "delete") * 3:
            command = [sys.executable, __file__, "--work", str(chosen.work), "--once", what]
            command += ["--cache", str(chosen.cache)] if chosen.cache else []
            sys.stdout.write(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main()
