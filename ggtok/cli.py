"""The command ``ggtok``: tokenize, detokenize, inspect, chat, list, cache.

All output is bytes on standard output, UTF-8 on every platform. Errors are one
line on standard error and exit status 2.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

import ggtok
from ggtok.errors import FileError, GGTokError

_EXIT_ERROR = 2
_EXIT_INTERRUPTED = 128 + 2  # SIGINT, as shells count
_EXIT_BROKEN_PIPE = 128 + 13  # SIGPIPE

_ESCAPES = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"'": b"'", b'"': b'"', b"\\": b"\\"}
# A backslash and what it is about. strtol, which llama.cpp reads \x with, lets
# white space or a sign stand for the first digit.
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2}|[ \t-\r+-][0-9A-Fa-f])|(.))", re.DOTALL)


class _UsageError(Exception):
    """Arguments that argparse can't refuse by itself."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        message = " ".join(message.split())
        self.exit(_EXIT_ERROR, f"ggtok: error: {message} (try '{self.prog} --help')\n")


# ---- arguments ----


def _parsers() -> tuple[_Parser, dict[str, _Parser]]:
    top = _Parser(
        prog="ggtok",
        description="The tokenizer inside a GGUF file: llama.cpp's ids, without llama.cpp.",
        epilog="'ggtok COMMAND --help' tells more. MODEL is any GGUF file with a vocabulary, or "
        "what 'ggtok list' shows, or user/repo[:quant], hf://user/repo/file.gguf or an https "
        "address; its weights, if it has any, are not read.",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"ggtok {ggtok.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(name: str, summary: str, details: str, examples: Sequence[str]) -> _Parser:
        parser: _Parser = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. {details}",
            epilog="examples:\n" + "\n".join("  " + line for line in examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        parser.add_argument("--json", action="store_true", help="print JSON")
        return parser

    def add_for_model(name: str, summary: str, details: str, examples: Sequence[str]) -> _Parser:
        parser = add(name, summary, details, examples)
        parser.add_argument("-m", "--model", metavar="MODEL", help="GGUF file, or a model's name")
        parser.add_argument("--pre", metavar="NAME", help="pre-tokenizer, in place of the file's")
        parser.add_argument(
            "--override-kv",
            metavar="KEY=TYPE:VALUE,...",
            action="append",
            default=[],
            help="values in place of the file's; TYPE is int, float, bool or str",
        )
        return parser

    tokenize = add_for_model(
        "tokenize",
        "text to token ids",
        "Options and output are those of\nllama-tokenize.",
        [
            'ggtok tokenize model.gguf "Hello, world"',
            'ggtok tokenize -m model.gguf -p "Hello, world" --ids',
            "ggtok tokenize model.gguf -f prompt.txt --no-escape --show-count",
            "cat prompt.txt | ggtok tokenize model.gguf --stdin --json",
        ],
    )
    tokenize.add_argument("words", nargs="*", metavar="MODEL TEXT", help="GGUF file, text")
    tokenize.add_argument("-p", "--prompt", metavar="TEXT", help="the text")
    tokenize.add_argument("-f", "--file", metavar="FILE", help="read the text from a file")
    tokenize.add_argument(
        "--stdin",
        action="store_true",
        help="read the text from standard input (goes before -f, which goes before -p)",
    )
    tokenize.add_argument("--ids", action="store_true", help="print ids only: [1, 2, 3]")
    tokenize.add_argument("--show-count", action="store_true", help="print the number of tokens")
    tokenize.add_argument("--no-bos", action="store_true", help="add no BOS (nor EOS) token")
    tokenize.add_argument(
        "-e",
        "--escape",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=r"replace \n, \r, \t, \', \", \\ and \xHH in the text (default: yes)",
    )
    tokenize.add_argument(
        "--no-parse-special",
        action="store_true",
        help="take the text of control tokens, such as <s>, as plain text",
    )
    tokenize.set_defaults(run=_tokenize)

    detokenize = add_for_model(
        "detokenize",
        "token ids to text",
        "The text's bytes are written as they are;\na terminal gets a newline behind them.",
        [
            "ggtok detokenize model.gguf 9906 11 1917",
            'ggtok detokenize model.gguf "[9906, 11, 1917]"',
            "ggtok tokenize model.gguf -f a.txt --ids | ggtok detokenize model.gguf",
        ],
    )
    detokenize.add_argument(
        "words", nargs="*", metavar="MODEL ID", help="GGUF file, ids (none: from standard input)"
    )
    detokenize.add_argument("-f", "--file", metavar="FILE", help="read the ids from a file")
    detokenize.add_argument(
        "--no-unparse-special", action="store_true", help="leave control tokens out"
    )
    detokenize.add_argument(
        "--remove-special", action="store_true", help="leave out an added BOS and EOS"
    )
    detokenize.set_defaults(run=_detokenize)

    inspect = add_for_model(
        "inspect",
        "what a file says about its vocabulary",
        "Flags and special\ntokens are shown as llama.cpp's defaults and corrections leave them.",
        ["ggtok inspect model.gguf", "ggtok inspect model.gguf --json"],
    )
    inspect.add_argument("words", nargs="*", metavar="MODEL", help="GGUF file")
    inspect.set_defaults(run=_inspect)

    chat = add_for_model(
        "chat",
        "chat messages to text or token ids",
        "By the file's chat template\n(needs jinja2: the extra 'chat'). Control tokens that a "
        "message holds become no tokens.",
        [
            "ggtok chat model.gguf messages.json",
            "ggtok chat model.gguf messages.json --tools tools.json --ids",
            """echo '[{"role": "user", "content": "Hi"}]' | ggtok chat model.gguf --json""",
        ],
    )
    chat.add_argument(
        "words",
        nargs="*",
        metavar="MODEL FILE",
        help="GGUF file; JSON list of messages, - for standard input, which it is if left out",
    )
    chat.add_argument("--ids", action="store_true", help="print ids: [1, 2, 3]")
    chat.add_argument(
        "--template",
        metavar="NAME",
        help="a template of the file by name, or a file that holds one",
    )
    chat.add_argument("--tools", metavar="FILE", help="JSON list of tools")
    chat.add_argument(
        "--no-generation-prompt",
        action="store_true",
        help="don't end with the beginning of the assistant's answer",
    )
    chat.set_defaults(run=_chat)

    listing = add(
        "list",
        "the models on this machine",
        "Those in the caches of the\nHugging Face Hub and of llama.cpp, in Ollama's store and "
        "LM Studio's folders;\nor those in the folders given.",
        ["ggtok list", "ggtok list ~/models --json"],
    )
    listing.add_argument("folders", nargs="*", metavar="FOLDER", help="folder of GGUF files")
    listing.set_defaults(run=_list)

    cache = add(
        "cache",
        "the vocabularies that were fetched",
        "'ls' lists them,\n'clear' removes them. They are in GGTOK_CACHE, else in the "
        "platform's folder for\ncaches.",
        ["ggtok cache ls", "ggtok cache clear"],
    )
    cache.add_argument("action", choices=["ls", "clear"], help="what to do")
    cache.set_defaults(run=_cache)
    return top, {
        "tokenize": tokenize,
        "detokenize": detokenize,
        "inspect": inspect,
        "chat": chat,
    }


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    top, commands = _parsers()
    parser = commands.get(argv[0]) if argv else None
    if parser is None:
        return top.parse_args(argv)
    # Subparsers can't do what this does: options between the positional arguments.
    args = parser.parse_intermixed_args(argv[1:])
    if args.model is None:
        if not args.words:
            parser.error("which model? give a GGUF file or a name")
        args.model = args.words.pop(0)
    return args


# ---- commands ----


def _load(args: argparse.Namespace) -> ggtok.Tokenizer:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        overrides = None
        if args.override_kv:
            from ggtok import override_kv

            overrides = override_kv.parse(args.override_kv)
        tok = ggtok.load(args.model, pre=args.pre, overrides=overrides)
    for warning in caught:
        _say("warning", warning.message)
    return tok


def _tokenize(args: argparse.Namespace) -> None:
    if len(args.words) > 1:
        raise _UsageError(f"one text is expected, not {len(args.words)}: put it in quotes")
    if args.words and args.prompt is not None:
        raise _UsageError("the text is given twice: as an argument and with -p")
    prompt = args.words[0] if args.words else args.prompt
    if prompt is None and args.file is None and not args.stdin:
        raise _UsageError("no text: give it as an argument or with -p, -f or --stdin")

    text = _read(args.file) if args.file is not None and not args.stdin else b""
    tok = _load(args)
    if args.stdin:
        text = sys.stdin.buffer.read()
    elif args.file is None:
        text = os.fsencode(prompt)
    if args.escape:
        text = process_escapes(text)
    ids = tok.encode(
        text,
        add_special=tok.add_bos and not args.no_bos,
        parse_special=not args.no_parse_special,
    )

    if args.json:
        tokens = [_json_token(id, tok.token_to_piece(id)) for id in ids]
        _write_json({"count": len(ids), "ids": ids, "tokens": tokens})
        return
    if args.ids:
        _write(b"%a\n" % ids)
    else:
        # As printf("%s") there, a piece ends at its first NUL.
        pieces = {id: tok.token_to_piece(id).split(b"\0", 1)[0] for id in set(ids)}
        _write(b"".join(b"%6d -> '%s'\n" % (id, pieces[id]) for id in ids))
    if args.show_count:
        _write(b"Total number of tokens: %d\n" % len(ids))


def process_escapes(text: bytes) -> bytes:
    r"""Replaces ``\n \r \t \' \" \\ \xHH`` as llama.cpp's tools do; others stay."""

    def replacement(match: re.Match[bytes]) -> bytes:
        digits, letter = match.groups()
        if digits is not None:
            return bytes([int(digits, 16) & 0xFF])
        return _ESCAPES.get(letter, match[0])

    return _ESCAPE.sub(replacement, text)


def _json_token(id: int, piece: bytes) -> dict[str, Any]:
    try:
        return {"id": id, "piece": piece.decode()}
    except UnicodeDecodeError:  # half a character: give the bytes too
        return {"id": id, "piece": piece.decode("utf-8", "replace"), "bytes": list(piece)}


def _detokenize(args: argparse.Namespace) -> None:
    if args.file is not None:
        if args.words:
            raise _UsageError("the ids are given twice: as arguments and with -f")
        listed = _read(args.file).decode("utf-8", "replace")
    elif args.words:
        listed = " ".join(args.words)
    else:
        listed = sys.stdin.buffer.read().decode("utf-8", "replace")
    ids = _ids(listed)
    data = _load(args).decode_bytes(
        ids, remove_special=args.remove_special, unparse_special=not args.no_unparse_special
    )
    if args.json:
        _write_json({"text": data.decode("utf-8", "replace"), "bytes": len(data)})
        return
    _write_text(data)


def _ids(listed: str) -> list[int]:
    """Ids as JSON or Python write them, or separated by white space or commas."""
    ids = []
    for word in re.sub(r"[\[\],]", " ", listed).split():
        if not re.fullmatch(r"[+-]?[0-9]{1,20}", word):
            raise _UsageError(f"not a token id: {word[:40]!r}")
        ids.append(int(word))
    return ids


def _chat(args: argparse.Namespace) -> None:
    if len(args.words) > 1:
        raise _UsageError(f"unexpected argument: {args.words[1]!r}")
    tok = _load(args)
    template = args.template
    if template is not None and template not in tok.chat_templates:
        template = _read(template).decode("utf-8", "replace")
    options: dict[str, Any] = {
        "tools": None if args.tools is None else _read_json(args.tools),
        "template": template,
        "add_generation_prompt": not args.no_generation_prompt,
    }
    messages = _read_json(args.words[0] if args.words else "-")
    if args.json:
        ids = tok.encode_chat(messages, **options)
        text = tok.apply_chat_template(messages, **options)
        _write_json({"text": text, "count": len(ids), "ids": ids})
    elif args.ids:
        _write(b"%a\n" % tok.encode_chat(messages, **options))
    else:
        _write_text(tok.apply_chat_template(messages, **options).encode("utf-8", "replace"))


def _read_json(path: str) -> Any:
    data = sys.stdin.buffer.read() if path == "-" else _read(path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        raise _UsageError(f"{'standard input' if path == '-' else path}: no JSON: {e}") from None


_SPECIALS = (
    *("bos", "eos", "eot", "eom", "unk", "sep", "nl", "pad", "mask"),
    *("fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"),
)


def _inspect(args: argparse.Namespace) -> None:
    if args.words:
        raise _UsageError(f"unexpected argument: {args.words[0]!r}")
    tok = _load(args)

    def text(id: int) -> str:
        return tok.token_text(id).decode("utf-8", "replace")

    special = {name: getattr(tok, f"{name}_id") for name in _SPECIALS}
    flags = tok._native.flags()
    if tok.vocab_type != "WPM":  # these say nothing elsewhere
        del flags["strip_accents"]
        if tok.model != "whitespace":
            del flags["lowercase"]
    facts = {
        "source": tok.source and (tok.source.path or tok.source.url),
        "model": tok.model,
        "type": tok.vocab_type,
        "pre": tok.pre,
        "n_tokens": tok.n_tokens,
        "special_tokens": {
            name: {"id": id, "text": text(id)} for name, id in special.items() if id is not None
        },
        "eog_tokens": [{"id": id, "text": text(id)} for id in sorted(tok.eog_ids)],
        "suppress_tokens": list(tok.suppress_tokens),
        "flags": flags,
        "chat_templates": sorted(tok.chat_templates),
        "metadata": dict(tok.metadata),
        "arrays": {
            key: {"type": type, "length": n} for key, (type, n) in tok._native.arrays().items()
        },
    }
    if args.json:
        _write_json(facts, indent=2)
    else:
        _write("".join(line + "\n" for line in _report(facts)).encode("utf-8", "surrogateescape"))


def _report(facts: dict[str, Any]) -> list[str]:
    """The facts of `inspect` for people."""
    lines = [
        f"model           {facts['model']}",
        f"type            {facts['type']}",
        f"pre-tokenizer   {facts['pre'] or '-'}",
        f"tokens          {facts['n_tokens']}",
        f"chat templates  {', '.join(facts['chat_templates']) or '-'}",
        f"source          {_name(facts['source'])}",
        "",
        "special tokens",
    ]
    token = "  {:<8} {:>7}  {!r}".format
    lines += [token(name, t["id"], t["text"]) for name, t in facts["special_tokens"].items()]
    lines += ["", "end of generation"]
    lines += [token("", t["id"], t["text"]) for t in facts["eog_tokens"]]
    if facts["suppress_tokens"]:
        lines += ["", "suppressed", "  " + " ".join(map(str, facts["suppress_tokens"]))]
    lines += ["", "flags"]
    lines += [f"  {name:<25} {'yes' if on else 'no'}" for name, on in facts["flags"].items()]
    lines += ["", "key/values"]
    lines += [f"  {_name(key)} = {_short(value)}" for key, value in facts["metadata"].items()]
    lines += [f"  {_name(key)} = {a['type']}[{a['length']}]" for key, a in facts["arrays"].items()]
    return lines


def _name(key: str) -> str:
    """A key as the file has it, unless a terminal would do something about it."""
    return key if key.isprintable() else repr(key)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else f"{shown[:80]}... ({len(str(value))} characters)"


def _list(args: argparse.Namespace) -> None:
    from dataclasses import asdict

    from ggtok.sources import listing

    for folder in args.folders:
        if not os.path.isdir(folder):
            raise _UsageError(f"not a folder: {folder}")
    models = list(listing.models(args.folders))
    if args.json:
        _write_json([asdict(model) for model in models], indent=2)
        return
    rows = [("SOURCE", "NAME", "SIZE", "TYPE", "PRE", "TOKENS")]
    rows += [
        (
            m.source,
            _name(m.name),
            "-" if m.size is None else _bytes(m.size),
            m.vocab_type or "-",
            _name(m.pre or "-"),
            str(m.n_tokens) if m.n_tokens is not None else f"({m.error})",
        )
        for m in models
    ]
    _write_table(rows, right=(2,))


def _cache(args: argparse.Namespace) -> None:
    from ggtok.sources import cache

    if args.action == "clear":
        n, size = cache.clear()
        if args.json:
            _write_json({"removed": n, "bytes": size})
        else:
            _write(f"removed {n} vocabularies, {_bytes(size)}\n".encode())
        return
    kept = cache.entries()
    if args.json:
        listed = [{"url": e.url, "size": e.size, "used": int(e.used)} for e in kept]
        _write_json({"folder": cache.folder(), "entries": listed}, indent=2)
        return
    used = [time.strftime("%Y-%m-%d %H:%M", time.localtime(e.used)) for e in kept]
    rows = [(_bytes(e.size), when, _name(e.url)) for e, when in zip(kept, used, strict=True)]
    _write_table([("SIZE", "USED", "URL"), *rows], right=(0,))


def _bytes(n: int) -> str:
    """A size for people."""
    size, unit = float(n), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{n} B" if unit == "B" else f"{size:.1f} {unit}"


def _write_table(rows: Sequence[tuple[str, ...]], right: Sequence[int]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        _write(("  ".join(cells).rstrip() + "\n").encode("utf-8", "surrogateescape"))


# ---- input and output ----


def _read(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def _write(data: bytes) -> None:
    left = memoryview(data)
    while left:  # with PYTHONUNBUFFERED, one call may write a part
        left = left[sys.stdout.buffer.write(left) or 0 :]


def _write_text(text: bytes) -> None:
    _write(text)
    if sys.stdout.isatty():  # the prompt comes on a line of its own
        _write(b"\n")


def _write_json(value: object, indent: int | None = None) -> None:
    try:
        data = json.dumps(value, ensure_ascii=False, indent=indent).encode()
    except UnicodeEncodeError:
        # Bytes that were no UTF-8 became lone surrogates: leave those to JSON's escapes.
        data = json.dumps(value, indent=indent).encode()
    _write(data + b"\n")


def _say(kind: str, message: object, stream: TextIO | None = None) -> None:
    line = " ".join(str(message).split())
    data = f"ggtok: {kind}: {line}\n".encode("utf-8", "backslashreplace")
    stream = stream or sys.stderr
    stream.flush()
    stream.buffer.write(data)
    stream.buffer.flush()


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error)


def _guarded(command: Callable[[argparse.Namespace], None], args: argparse.Namespace) -> int:
    try:
        command(args)
        sys.stdout.buffer.flush()
    except KeyboardInterrupt:
        return _EXIT_INTERRUPTED
    except (GGTokError, OSError, _UsageError) as e:
        pipe = isinstance(e, BrokenPipeError) or (
            # What Windows says when the reader is gone.
            sys.platform == "win32" and isinstance(e, OSError) and e.errno == 22
        )
        if pipe and not isinstance(e, FileError):
            # The interpreter flushes standard output at exit: give it another one.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return _EXIT_BROKEN_PIPE
        _say("error", _reason(e))
        return _EXIT_ERROR
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line `argv` (default: the program's own); gives the exit status."""
    args = _parse(sys.argv[1:] if argv is None else argv)
    return _guarded(args.run, args)


def entry_point() -> NoReturn:
    """The console script."""
    try:
        sys.exit(main())
    except KeyboardInterrupt:  # while importing or parsing arguments
        sys.exit(_EXIT_INTERRUPTED)
