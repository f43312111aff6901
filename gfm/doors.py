"""What the command line and the Hydra scripts share: output that degrades, errors as one line, arguments as typed."""

from __future__ import annotations

import codecs
import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NoReturn, Protocol

from gfm.resources import config_folder
from gfm.types import GfmError

# Dashes, dots, a cross and curly quotes are written by number: they look like other signs.
_PLAIN = {
    "→": "->",
    "←": "<-",
    "—": "-",
    "…": "...",
    "\u2013": "-",
    "\u00b7": "-",
    "\u00d7": "x",
    "\u2018": "'",
    "\u2019": "'",
    "“": '"',
    "”": '"',
}
# Flags of Hydra whose value is the next argument.
_WITH_VALUE = {"--cfg", "-c", "--package", "-p", "--config-path", "-cp", "--config-name", "-cn", "--config-dir", "-cd"}
# What a person mends by naming another path or by making room; any other OSError is a defect and stays a traceback.
_PATH_ERRORS = (PermissionError, NotADirectoryError, IsADirectoryError, FileExistsError)

_ONE_OF = ("run", "multirun", "cfg", "info")  # each is another thing to do
_INTERRUPTED = 130  # 128 and the number of SIGINT, as shells have it
_RAISE = "HYDRA_FULL_ERROR"


def _plain(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: look-alikes for our own signs, a question mark for everything else."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end


def tolerant_output() -> None:
    """From here on, a character that the terminal's encoding lacks is replaced, never an error."""
    codecs.register_error("gfm-plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="gfm-plain")


def as_typed(text: str) -> str:
    """An argument as the person typed it: under LC_ALL=C Python hands the bytes of other scripts on as surrogates."""
    return os.fsencode(text).decode("utf-8", "replace") if any("\ud800" <= c <= "\udfff" for c in text) else text


def say(text: str) -> None:
    """Text as it is: the terminal wraps it, a pipe gets whole lines."""
    print(text, flush=True)  # not click's echo, which writes UTF-8 where the person asked for ASCII


def say_json(value: Any, indent: int | None = 1) -> None:
    """JSON on standard output, escaped where its encoding is not UTF-8, so that no character is lost.

    Args:
        value: What to say.
        indent: Blanks a level; None for one line.
    """
    utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    say(json.dumps(value, ensure_ascii=not utf8, indent=indent, sort_keys=True, allow_nan=False))


@contextmanager
def errors_as_one_line() -> Iterator[None]:
    """What a person can mend, or did, ends the program with ``error: …`` on standard error.

    The exit status is 1; 2 where the usage is wrong; and 130 where the person interrupted it, also where a library
    turned that into an exit.
    """
    try:
        yield
    except UsageError as error:
        _stop(str(error), 2)
    except GfmError as error:
        _stop(str(error))
    except _PATH_ERRORS as error:
        _stop(f"{error.filename}: expected a path that can be used, found: {error.strerror}; name another one")
    except _Told:  # by a door inside this one
        raise
    except (KeyboardInterrupt, SystemExit) as stop:
        if not _interrupted(stop):
            raise
        _stop("interrupted", _INTERRUPTED)


def _interrupted(error: BaseException | None) -> bool:
    """Whether an interrupt is what led to this."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _stop(message: str, status: int = 1) -> None:
    sys.stderr.write(f"error: {' '.join(message.split())}\n")
    raise _Told(status) from None


class UsageError(GfmError):
    """The arguments are none that the program has, see its help."""


class _Told(SystemExit):
    """The end of the program, after its one line."""


class HydraDoor(Protocol):
    """A script's entry."""

    def __call__(self, arguments: Sequence[str] | None = None) -> None:
        """Run it with these arguments, or those of the process."""


def hydra_door(
    config_name: str, plain: Collection[str] = (), texts: Collection[str] = ()
) -> Callable[[Callable[[Any], None]], HydraDoor]:
    """Makes a function of a composed configuration an entry whose errors are one line and whose arguments are as typed.

    Args:
        config_name: The configuration in the packaged folder.
        plain: Settings whose value is a path or a name.
        texts: Settings whose value is a sentence; see `arguments_as_text`.
    """

    def decorate(run: Callable[[Any], None]) -> HydraDoor:
        @wraps(run)
        def guarded(config: Any) -> None:
            with errors_as_one_line(), _hydra_errors():
                for name in (*plain, *texts):
                    _expect_one_value(config, name)
                run(config)

        def door(arguments: Sequence[str] | None = None) -> None:
            import hydra

            tolerant_output()
            for chatty in ("faiss", "bm25s", "sentence_transformers"):
                logging.getLogger(chatty).setLevel(logging.WARNING)
            with errors_as_one_line(), _hydra_errors():
                given = sys.argv[1:] if arguments is None else arguments
                _check_flags(given)
                sys.argv[1:] = arguments_as_text(given, plain, texts)
                hydra.main(version_base="1.3", config_path=str(config_folder()), config_name=config_name)(guarded)()

        return door

    return decorate


def _check_flags(arguments: Sequence[str]) -> None:
    """Refuse a flag that Hydra does not have, or one without its value, which Hydra would answer with all its flags."""
    from hydra._internal.utils import get_args_parser

    def refuse(message: str) -> NoReturn:
        raise UsageError(f"{message}; expected NAME=VALUE or a flag of Hydra, as --cfg job, which shows the settings")

    parser = get_args_parser()
    parser.error = refuse  # type: ignore[method-assign]
    flags = vars(parser.parse_args(list(arguments)))
    if sum(bool(flags[name]) for name in _ONE_OF) > 1:
        refuse(f"only one of {', '.join(f'--{name}' for name in _ONE_OF)} can be asked for")


def _expect_one_value(config: Any, name: str) -> None:
    from omegaconf import OmegaConf

    if OmegaConf.is_config(found := OmegaConf.select(config, name)):
        raise GfmError(f"{name}: expected one value, as in {name}=…, found settings below it: {', '.join(found)}")


@contextmanager
def _hydra_errors() -> Iterator[None]:
    """A setting that Hydra does not know or cannot take is an error of ours, and so one line."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    asked = os.environ.get(_RAISE)
    os.environ[_RAISE] = "1"  # else Hydra prints its errors itself, over several lines, and exits
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        said = re.split(r"\n(?:Config search path|To append to your config)", str(error))[0]
        cause = f" ({str(error.__cause__).splitlines()[0]})" if error.__cause__ else ""
        raise GfmError(f"{said.rstrip(' .')}{cause}; --cfg job shows the settings") from error
    finally:
        os.environ.pop(_RAISE) if asked is None else os.environ.update({_RAISE: asked})


def arguments_as_text(arguments: Sequence[str], plain: Collection[str] = (), texts: Collection[str] = ()) -> list[str]:
    """Arguments for Hydra, in which a path or a sentence means what was typed.

    Hydra's grammar reads ``question=a, b`` as two runs, ``index=1984`` as a number, and refuses ``=``, ``#``, quotes
    and letters outside ASCII. Values of the named settings are therefore quoted, unless they are quoted already or
    null; in a multirun also commas keep Hydra's meaning.

    Args:
        arguments: As the shell gave them.
        plain: Names of settings that are paths or names; their bytes stay what they are.
        texts: Names of settings that are sentences.

    Raises:
        GfmError: Another argument is not in Hydra's grammar; the message shows the quoted form.
    """
    several = bool({"-m", "--multirun"} & set(arguments))
    return [_argument(a, plain, texts, several) if own else a for a, own in _overrides(arguments)]


def _overrides(arguments: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Each argument, and whether it is an override (no flag, and no flag's value)."""
    value = False
    for argument in arguments:
        flag = argument.startswith("-")
        yield argument, not flag and not value
        value = argument in _WITH_VALUE


def _argument(argument: str, plain: Collection[str], texts: Collection[str], several: bool) -> str:
    key, equals, value = argument.partition("=")
    if not equals and not key.startswith("~"):
        raise GfmError(
            f"argument {argument!r}: expected NAME=VALUE; put a value with spaces in quotes: NAME='two words'"
        )
    parsed, problem = _parse(argument)
    named = key in plain or key in texts
    if named and not (problem is None and (parsed is None or _is_quoted(parsed) or several)):
        return f"{key}={quoted(as_typed(value) if key in texts else value)}"
    if problem is not None:
        form = f"{key}={quoted(as_typed(value))}".replace("'", "'\\''")
        raise GfmError(f"argument {argument!r} is not in Hydra's grammar ({problem}); quote its value: '{form}'")
    return argument


def _parse(argument: str) -> tuple[Any, str | None]:
    """The value of an override in Hydra's grammar, and what is wrong with it."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(argument)._value, None
    except HydraException as error:
        return None, str(error).split("\n", 1)[0]


def _is_quoted(value: object) -> bool:
    from hydra.core.override_parser.types import QuotedString

    return isinstance(value, QuotedString)


def quoted(text: str) -> str:
    """A string in the form that Hydra reads back as the same string, interpolations switched off."""
    from hydra.core.override_parser.types import Quote, QuotedString

    # OmegaConf reads \${ as ${, and of backslashes before it every pair as one.
    escaped = re.sub(r"(\\*)\$\{", lambda found: found[1] * 2 + "\\${", text)
    return QuotedString(escaped, Quote.double).with_quotes()
