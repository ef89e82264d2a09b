"""``ggtok inspect``: shows a file's vocabulary, metadata, templates and tokens."""

from __future__ import annotations

import argparse
import os
import warnings
from contextlib import suppress
from typing import Any

import ggtok
from ggtok.base.escape import printable
from ggtok.cli import standard_output
from ggtok.cli.messages import FINDING, OK, UsageError, reason, warn
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import (
    MODEL,
    add_model,
    can_only_be_model,
    check_id,
    load_model,
    overrides,
    take_only_model,
)
from ggtok.native import pre_names

_DEFAULT = "default"  # the name for a model's unnamed template
SPECIALS = (
    *("bos", "eos", "eot", "eom", "unk", "sep", "nl", "pad", "mask"),
    *("fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep"),
)


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    add(
        "--template",
        nargs="?",
        const=_DEFAULT,
        metavar="NAME",
        help="print a chat template (without a name, the default one)",
    )
    add(
        "--token",
        action="append",
        metavar="ID|TEXT",
        help="show the token with this id, or the tokens with this text",
    )
    add("--pre-names", action="store_true", help="list the pre-tokenizers that ggtok knows")
    add_model(parser)


def run(args: argparse.Namespace) -> int:
    if args.pre_names:
        names = pre_names()
        standard_output.write_result(args, names, names)
        return OK
    _move_model(args)
    take_only_model(args)
    if args.template is not None:
        _write_template(load_model(args), args)
        return OK
    if args.token:
        tok = load_model(args)
        tokens = [_token(tok, id) for given in args.token for id in find_tokens(tok, given)]
        lines = (line for token in tokens for line in _token_lines(token))
        standard_output.write_result(args, tokens, lines)
        return OK
    tok, error = _load_faulty(args)
    facts = _facts(tok, error)
    standard_output.write_result(args, facts, _report(facts))
    return OK if error is None else FINDING


def _move_model(args: argparse.Namespace) -> None:
    """Treats MODEL in ``--template MODEL`` as the model if no other argument names one."""
    name = args.template
    if name in (None, _DEFAULT) or args.model is not None or args.words:
        return
    if not os.environ.get("GGTOK_MODEL") or can_only_be_model(name):
        args.words, args.template = [name], _DEFAULT


# ---- all facts ----


def _load_faulty(
    args: argparse.Namespace,
) -> tuple[ggtok.Tokenizer, ggtok.VocabError | None]:
    """Loads the model, or as much of it as possible if its vocabulary is faulty. Also returns the
    error, if any."""
    try:
        return load_model(args), None
    except ggtok.VocabError as e:
        if args.pre is not None:
            raise
        error = e
    warn(reason(error))
    given = overrides(args) or {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(error, ggtok.UnknownPreTokenizerError):
            with suppress(ggtok.VocabError):  # the file may have other faults, too
                return ggtok.load(args.model, pre="default", overrides=given), error
        # Load everything except the vocabulary.
        no_vocabulary = {**given, "tokenizer.ggml.model": "no_vocab"}
        return ggtok.load(args.model, overrides=no_vocabulary), error


def _facts(tok: ggtok.Tokenizer, error: ggtok.VocabError | None) -> dict[str, Any]:
    arrays = tok._loaded.arrays()
    facts = {
        "source": tok.source and (tok.source.path or tok.source.url),
        "fault": None,
        "model": tok.model,
        "type": tok.vocab_type,
        "pre": tok.pre,
        "n_tokens": tok.n_tokens,
        **_special_tokens(tok),
        "flags": _flags(tok),
        "chat_templates": sorted(tok.chat_templates),
        "metadata": dict(tok.metadata),
        "arrays": {key: {"type": type, "length": n} for key, (type, n) in arrays.items()},
    }
    if error is not None:
        # Show the file's values, not those of the substitute. The file's flags are unknown.
        facts["fault"] = reason(error)
        facts["model"] = tok.metadata.get("tokenizer.ggml.model")
        facts["pre"] = tok.metadata.get("tokenizer.ggml.pre")
        facts["n_tokens"] = arrays.get("tokenizer.ggml.tokens", ("", None))[1]
        facts["flags"] = {}
        if not tok.n_tokens:
            facts["type"] = _type(tok)
    return facts


def _type(tok: ggtok.Tokenizer) -> str | None:
    """Returns the vocabulary type, read from the start of the file, or None if the file isn't
    local."""
    from ggtok.sources.listing import summed_up

    path = tok.source and tok.source.path
    return summed_up("file", path, path).vocab_type if path else None


def _special_tokens(tok: ggtok.Tokenizer) -> dict[str, Any]:
    def token(id: int) -> dict[str, Any]:
        return {"id": id, "text": tok.token_text(id).decode("utf-8", "replace")}

    special = {name: getattr(tok, f"{name}_id") for name in SPECIALS}
    return {
        "special_tokens": {name: token(id) for name, id in special.items() if id is not None},
        "eog_tokens": [token(id) for id in sorted(tok.eog_ids)],
        "suppress_tokens": list(tok.suppress_tokens),
    }


def _flags(tok: ggtok.Tokenizer) -> dict[str, bool]:
    flags = tok._loaded.flags
    if tok.vocab_type != "WPM":  # other types don't strip accents
        del flags["strip_accents"]
        if tok.model != "whitespace":  # all other models keep the case
            del flags["lowercase"]
    if tok.vocab_type != "UGM":  # llama.cpp composes the texts of no other type
        del flags["nfc"]
    return flags


def _report(facts: dict[str, Any]) -> list[str]:
    summary = {
        "fault": facts["fault"],
        "model": facts["model"],
        "type": facts["type"],
        "pre-tokenizer": facts["pre"],
        "tokens": facts["n_tokens"],
        "chat templates": ", ".join(facts["chat_templates"]),
        "source": facts["source"],
    }
    lines = [
        f"{name:<16}{'-' if value in (None, '') else printable(str(value))}"
        for name, value in summary.items()
        if name != "fault" or value
    ]
    token = "  {:<8} {:>7}  {!r}".format
    if facts["special_tokens"] or not facts["fault"]:
        lines += ["", "special tokens"]
        lines += [token(name, t["id"], t["text"]) for name, t in facts["special_tokens"].items()]
        lines += ["", "end of generation"]
        lines += [token("", t["id"], t["text"]) for t in facts["eog_tokens"]]
    if facts["suppress_tokens"]:
        lines += ["", "suppressed", "  " + " ".join(map(str, facts["suppress_tokens"]))]
    if facts["flags"]:
        lines += ["", "flags"]
        lines += [f"  {name:<25} {'yes' if on else 'no'}" for name, on in facts["flags"].items()]
    lines += ["", "key/values"]
    lines += [f"  {printable(key)} = {_short(value)}" for key, value in facts["metadata"].items()]
    lines += [
        f"  {printable(key)} = {a['type']}[{a['length']}]" for key, a in facts["arrays"].items()
    ]
    return lines


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:80]}... ({len(str(value))} characters)"


# ---- one template, one token ----

_MAX_IDS = 8  # the most ids to list in a message


def _write_template(tok: ggtok.Tokenizer, args: argparse.Namespace) -> None:
    templates = tok.chat_templates
    template = templates.get(args.template)
    if template is None:
        if not templates:
            raise UsageError(f"{args.model} has no chat template")
        known = ", ".join(map(repr, sorted(templates)))
        raise UsageError(f"{args.model} has no chat template {args.template!r}; it has {known}")
    if args.json:
        standard_output.write_json({"name": args.template, "template": template}, indent=2)
    else:
        standard_output.write_text(template.encode("utf-8", "surrogateescape"))


def find_tokens(tok: ggtok.Tokenizer, given: str, *, as_text: bool = False) -> list[int]:
    """Returns the ids that `given` may mean: the number itself if it is all digits and not
    `as_text`, otherwise the tokens whose text is stored or printed like this."""
    if not as_text and given.isascii() and given.isdecimal():
        id = int(given.lstrip("0")[:20] or "0")
        check_id(tok, id)
        return [id]
    text = os.fsencode(given)
    stored = text
    if tok.vocab_type == "WPM":  # GGUF files mark the beginnings of words, not continuations
        stored = text.removeprefix(b"##") if text.startswith(b"##") else "\u2581".encode() + text
    texts = {text, stored}
    ids = [
        id
        for id in range(tok.n_tokens)
        if tok.token_text(id) in texts or tok.token_to_piece(id) == text
    ]
    return ids or _only_token(tok, text, given)


def _only_token(tok: ggtok.Tokenizer, text: bytes, given: str) -> list[int]:
    """Returns the id of the single token that a text encodes to, even if the token's text differs,
    for example by an added space. Raises UsageError if there isn't exactly one token."""
    ids = tok.encode(text, add_special=False, parse_special=True)
    if len(ids) == 1 and ids[0] != tok.unk_id:
        return ids
    listed = " ".join(map(str, ids[:_MAX_IDS])) + (" ..." if len(ids) > _MAX_IDS else "")
    becomes = f"token{'s' if len(ids) > 1 else ''} {listed}" if ids else "no token"
    raise UsageError(f"no token has the text {given!r}: it becomes {becomes}")


def _token(tok: ggtok.Tokenizer, id: int) -> dict[str, Any]:
    piece = tok.token_to_piece(id)
    return {
        "id": id,
        "text": tok.token_text(id).decode("utf-8", "replace"),
        "piece": piece.decode("utf-8", "replace"),
        "bytes": list(piece),
        "type": [attr.name for attr in ggtok.TokenAttr if attr and attr in tok.token_attr(id)],
        "score": tok.token_score(id),
        "eog": tok.is_eog(id),
    }


def _token_lines(token: dict[str, Any]) -> list[str]:
    return [
        f"token {token['id']}",
        f"  text               {token['text']!r}",
        f"  prints             {token['piece']!r}",
        f"  bytes              {bytes(token['bytes']).hex(' ') or '-'}",
        f"  type               {', '.join(token['type']) or '-'}",
        f"  score              {token['score']:g}",
        f"  end of generation  {'yes' if token['eog'] else 'no'}",
    ]


HELP = Help(
    usage="MODEL",
    details="Flags and special tokens include llama.cpp's defaults and corrections. If the "
    "vocabulary can't be loaded, for instance because its pre-tokenizer is unknown, everything "
    "else is shown, and the exit status is 1.",
    words={"MODEL": MODEL},
    examples=[
        "ggtok inspect model.gguf",
        "ggtok inspect hf://user/repo/file.gguf --json",
        "ggtok inspect model.gguf --template > template.jinja",
        "ggtok inspect model.gguf --token '<|im_end|>' --token 42",
    ],
    finding="the vocabulary can't be loaded; the rest is shown",
)
