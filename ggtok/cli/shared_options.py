"""Options that several commands share, and the model that a command line names."""

from __future__ import annotations

import argparse
import os
import re
from contextlib import AbstractContextManager, nullcontext

import ggtok
from ggtok.base.files import read_regular
from ggtok.cli import messages
from ggtok.cli.messages import UsageError, hint
from ggtok.cli.parser import Parser, expand_home, token_count

# ---- options ----


def add_words(parser: Parser, *, texts: bool = False) -> None:
    """Adds ``args.words``, the arguments that aren't options: paths, or texts if `texts`."""
    parser.add_argument(
        "words", nargs="*", type=str if texts else expand_home, help=argparse.SUPPRESS
    )


def add_text(parser: Parser) -> None:
    """Adds the options that :func:`text_source` reads."""
    add = parser.add_argument
    add("-p", "--prompt", metavar="TEXT", help="the text")
    add("-f", "--file", metavar="FILE", help="read the text from a file (-: standard input)")


def add_unit(parser: Parser, *, utf16: bool) -> None:
    more = ", or UTF-16 code units, as in JavaScript" if utf16 else ""
    parser.add_argument(
        "--unit",
        choices=["byte", "char", "utf16"] if utf16 else ["byte", "char"],
        default="byte",
        help=f"the unit of positions: bytes of UTF-8 (default), or code points{more}",
    )


def add_sampling(parser: Parser) -> None:
    """Adds ``args.dropout``, ``args.alpha`` and ``args.seed``."""
    add = parser.add_argument
    add(
        "--dropout",
        type=float,
        metavar="P",
        help="a random segmentation: skip merges with this probability (BPE, SPM)",
    )
    add(
        "--alpha",
        type=float,
        metavar="A",
        help="a random segmentation by SentencePiece's rules (SPM: a probability; UGM: the "
        "weight of scores)",
    )
    add("--seed", type=int, metavar="N", help="of the random segmentation")


def check_sampling(args: argparse.Namespace) -> None:
    """Refuses options that have no effect without --dropout or --alpha."""
    if args.dropout is None and args.alpha is None:
        for name, default in ("seed", None), ("nbest", -1):
            if getattr(args, name, default) != default:
                raise UsageError(f"--{name} has no effect without --dropout or --alpha")


def add_patterns(parser: Parser) -> None:
    for name, which in ("include", "only these files"), ("exclude", "not these files and folders"):
        parser.add_argument(
            f"--{name}", metavar="GLOB", action="append", default=[], help=f"in folders, {which}"
        )


def add_corpus(parser: Parser) -> None:
    """Adds the options for commands that read documents."""
    add = parser.add_argument
    add_patterns(parser)
    add(
        "--kind",
        choices=["text", "jsonl", "parquet", "arrow"],
        help="the format of all files (default: by their extensions)",
    )
    add(
        "--field",
        metavar="NAME",
        action="append",
        help="the field of JSON lines, or the column of tables, such as meta.text; several are "
        "joined (default: text)",
    )
    add(
        "--errors",
        choices=["raise", "replace", "skip"],
        default="raise",
        help="what to do about documents that are not UTF-8, empty or missing (default: stop)",
    )
    add("--threads", type=int, default=0, metavar="N", help="default: one for each core")


def add_output_options(parser: Parser, *, inexact: bool = False) -> None:
    if inexact:
        parser.add_argument(
            "--inexact",
            action="store_true",
            help="also write a file in which some texts' ids differ; a warning says which",
        )
    parser.add_argument(
        "--force", action="store_true", help="also overwrite a file of another format"
    )


def add_cutting_options(parser: Parser) -> None:
    """Adds the options for commands that cut texts: see :func:`texts_to_cut`."""
    add = parser.add_argument
    add("-n", "--tokens", type=token_count, metavar="N", help="at most N tokens (8k: 8000)")
    help = "don't count BOS and other added tokens"
    add("--no-special", "--no-add-special", action="store_true", help=help)
    add("-0", "--null", action="store_true", help="end each text with NUL instead of nothing")


def add_model_name(parser: Parser, *, texts: bool = False) -> None:
    """Adds ``args.words`` and ``-m``."""
    add_words(parser, texts=texts)
    parser.add_argument("-m", "--model", metavar="MODEL", help="the model, instead of the argument")


def add_model(parser: Parser, *, texts: bool = False) -> None:
    """Adds ``args.words``, and the options that :func:`load` reads."""
    add_model_name(parser, texts=texts)
    parser.add_argument(
        "--pre", metavar="NAME", help="use this pre-tokenizer instead of the file's"
    )
    parser.add_argument(
        "--override-kv",
        metavar="KEY=TYPE:VALUE,...",
        action="append",
        default=[],
        help="use these values instead of the file's; TYPE is int, float, bool or str",
    )


# ---- checks ----


def no_words(args: argparse.Namespace) -> None:
    """Raises an error if ``args.words`` still has an argument."""
    if args.words:
        raise UsageError(f"unexpected argument: {args.words[0]!r}")


def check_id(tok: ggtok.Tokenizer, id: int) -> None:
    if not 0 <= id < tok.n_tokens:
        raise UsageError(f"no token {id}: the ids are 0 to {tok.n_tokens - 1}")


def check_output(path: str) -> None:
    """Refuses ``-`` as the output, because it means standard input elsewhere."""
    if path == "-":
        raise UsageError("-: can't write to standard output; give a file name")


def text_source(args: argparse.Namespace) -> tuple[str | None, bytes]:
    """Returns the file that contains the text, or None and the text itself."""
    stdin = getattr(args, "stdin", False)  # --stdin takes precedence over -f, and -f over -p
    file = "-" if stdin else args.file
    if len(args.words) > 1:
        raise UsageError(f"one text is expected, not {len(args.words)}: put it in quotes")
    if args.words and file is not None:
        option = "--stdin" if stdin else "-f"
        raise UsageError(f"two texts: {args.words[0]!r} and {option}; give one of them")
    if args.words and args.prompt is not None:
        raise UsageError(f"two texts: {args.words[0]!r} and -p; give one of them")
    if file is not None:
        return file, b""
    text = args.words[0] if args.words else args.prompt
    if text is None:
        or_stdin = ", -f or --stdin" if hasattr(args, "stdin") else " or -f"
        raise UsageError(f"no text: give it as an argument, or use -p{or_stdin}")
    if text == "-":
        hint("'-' is read as text; to read standard input, use -f -")
    elif os.path.isfile(text):
        hint(f"{text!r} is read as text, but there is a file of this name; to read it, use -f")
    return None, os.fsencode(text)


def texts_to_cut(args: argparse.Namespace) -> list[str]:
    """Returns the files to cut: the named ones, or standard input."""
    if args.tokens is None:
        raise UsageError("no number of tokens: give -n N")
    if args.tokens < 0:
        raise UsageError(f"-n must not be negative, but is {args.tokens}")
    if args.null and args.json:
        raise UsageError("--null and --json exclude each other")
    if args.words.count("-") > 1:
        raise UsageError("standard input can be read only once")
    return args.words or ["-"]


# ---- the model ----

MODEL = "a GGUF file, or a model's name (see 'ggtok --help'); or use -m MODEL"
# The help for MODEL in commands that also accept other arguments.
MODEL_FIRST = "a .gguf file, or a name with a scheme; or use -m MODEL, or set GGTOK_MODEL"
_NO_MODEL = "no model: give a GGUF file or a model's name"
_SCHEME = re.compile(r"[a-z][a-z0-9.+-]*://|(ollama|lmstudio):")


def take_model(args: argparse.Namespace, needed: int = 0) -> None:
    """Sets the model for a command that also accepts other words: the first word if it can only be
    a model, else -m, else GGTOK_MODEL.

    Texts and paths must not trigger a lookup on a server. So with -m or GGTOK_MODEL, a name counts
    as a model only if there are more than the `needed` words.
    """
    first: str | None = args.words[0] if args.words else None
    model = _of_environment() if args.model is None else args.model
    if first is not None and (
        _is_gguf(expand_home(first))
        or ((model is None or len(args.words) > needed) and _is_name(first))
    ):
        _no_second_model(args.model, first)
        model = expand_home(args.words.pop(0))
    if model is None:
        reason = "" if first is None else _not_model_reason(first)
        if first is not None and first.lower().endswith(".gguf"):
            raise UsageError(reason)
        raise UsageError(
            "no model: give -m MODEL, set GGTOK_MODEL, or begin with a .gguf file or a name with "
            f"a scheme (hf://, https://, ollama:, lmstudio:){reason and f' ({reason})'}"
        )
    args.model = model


def take_named_model(args: argparse.Namespace, needed: int) -> None:
    """Sets the model for a command with `needed` other words and no default model: -m or the first
    word."""
    if args.model is None:
        if not args.words:
            raise UsageError(_NO_MODEL)
        args.model = args.words.pop(0)
    elif len(args.words) > needed:
        _no_second_model(args.model, args.words[0])


def take_only_model(args: argparse.Namespace) -> None:
    """Sets the model for a command that accepts no other words: the first word, else -m,
    else GGTOK_MODEL."""
    if args.words:
        _no_second_model(args.model, args.words[0])
        args.model = args.words.pop(0)
    no_words(args)
    if args.model is None:
        args.model = _of_environment()
    if args.model is None:
        raise UsageError(f"{_NO_MODEL}, or set GGTOK_MODEL")


def add_media(parser: Parser, only: str = "") -> None:
    """Adds the options for images, audio and video in chats. Their help begins with `only`."""
    parser.add_argument(
        "--image-tokens",
        type=token_count,
        metavar="N",
        help=f"{only}count N tokens for each image, audio and video",
    )
    parser.add_argument(
        "--media-marker",
        metavar="TEXT",
        help=f"{only}the text that stands for an image in the prompt (default: <__media__>)",
    )


def load_model(args: argparse.Namespace) -> ggtok.Tokenizer:
    """Loads the model with the options of :func:`add_model`."""
    with reporting_waits(args):
        return ggtok.load(args.model, pre=args.pre, overrides=overrides(args))


def reporting_waits(args: argparse.Namespace) -> AbstractContextManager[None]:
    """Returns a context that reports long waits for servers, unless --quiet is given."""
    if args.quiet or os.path.exists(args.model):
        return nullcontext()
    from ggtok.sources import telling

    return telling(lambda text: messages.say("note", text))


def overrides(args: argparse.Namespace) -> dict[str, int | float | bool | str] | None:
    """Returns the values from --override-kv."""
    if not args.override_kv:
        return None
    from ggtok.loading import loaded

    return loaded.parse_overrides(args.override_kv)


def can_only_be_model(word: str) -> bool:
    return _is_gguf(expand_home(word)) or _is_name(word)


def _of_environment() -> str | None:
    return expand_home(os.environ.get("GGTOK_MODEL", "")) or None


def _no_second_model(model: str | None, second: str) -> None:
    if model is not None:
        raise UsageError(f"two models, {model} and {second}: give one of them")


def _is_gguf(path: str) -> bool:
    """Whether a file is GGUF, by its name or its first bytes (Ollama's files have no extension)."""
    if not os.path.isfile(path):
        return False
    if path.lower().endswith(".gguf"):
        return True
    try:
        return read_regular(path, 4) == b"GGUF"
    except OSError:
        return False


def _is_name(word: str) -> bool:
    """Whether a word is a model's name with a scheme, or the address of a model's page without
    one."""
    if _SCHEME.match(word):
        return True
    if "/" not in word or os.path.exists(word):
        return False
    from ggtok.sources import listing

    return listing.read_as(word) is not None


def _not_model_reason(word: str) -> str:
    """Returns the reason why the first word isn't a model."""
    if os.path.exists(word):
        from ggtok.base import diagnose

        if os.path.isdir(word):
            return f"{word}: {diagnose.explain_folder(word)}"
        plain = "not a GGUF file"
        return f"{word}: {diagnose.explain_parse_error(plain, None, word, None, lambda _: False)}"
    from ggtok.sources import hub, listing

    reason = f"{word or repr(word)}: no such file{listing.did_you_mean(word)}"
    if hub.parse_repo(word):
        reason += f"; a repository of the Hub is hf://{word}"
    return reason
