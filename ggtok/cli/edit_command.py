"""``ggtok edit``: changes the metadata of a GGUF file."""

from __future__ import annotations

import argparse
import os
import warnings
from typing import Any

import ggtok
from ggtok.base.concurrency import cached_property
from ggtok.base.escape import number, printable
from ggtok.cli import doctor_command, input_texts, messages, standard_output
from ggtok.cli.messages import FINDING, OK, UsageError
from ggtok.cli.parser import Help, Parser
from ggtok.cli.shared_options import add_model_name, check_output, take_only_model
from ggtok.inspect.fix import ALL, corrections, remaining
from ggtok.native.gguf import FileHeader
from ggtok.vocabularies.edit import Edited
from ggtok.vocabularies.gguf_writer import FLAG_KEYS, SPECIAL_KEYS
from ggtok.vocabularies.spelling import TYPES

_GGML = "tokenizer.ggml."
_TEMPLATE, _TEMPLATES = "tokenizer.chat_template", "tokenizer.chat_templates"
_CASTS = {"int": int, "float": float, "str": str}
_BOOLS = {"true": True, "false": False}
_SAMPLE = "Hello, world! It's 2026.\n\n  def f(x):\n\treturn x**2  # caf\u00e9 \u4f60\u597d\n"
_MOST = 40  # maximum characters of a value to show
_MOST_CHANGES = 40  # maximum number of changes to list


def add_arguments(parser: Parser) -> None:
    add = parser.add_argument
    help = "write a new file; MODEL stays as it is"
    add("-o", "--out", "--output", metavar="OUT", help=help)
    add("--in-place", action="store_true", help="change MODEL itself")
    add("--dry-run", action="store_true", help="only show what would change, and ids of a sample")
    add("--undo", action="store_true", help="undo the last edit in place; again: the one before")
    add("--force", action="store_true", help="also write a faulty vocabulary or template")

    def several(*names: str, metavar: str, help: str) -> None:
        add(*names, metavar=metavar, action="append", default=[], help=help)

    several("--template", metavar="FILE|NAME=FILE", help="the chat template, or one with a name")
    several("--remove-template", metavar="NAME", help="remove a template ('default': without name)")
    several(
        "--set",
        metavar="KEY=VALUE",
        help="a value; of a new key, VALUE may begin with its type (int:, float:, bool:, str:)",
    )
    several("--unset", metavar="KEY", help="remove a key")
    add("--pre", metavar="NAME", help="the pre-tokenizer")
    several(
        "--special", metavar="NAME=ID|TEXT", help=f"a special token ({', '.join(SPECIAL_KEYS)})"
    )
    several("--type", metavar="ID|TEXT=TYPE", help=f"the type of a token ({', '.join(TYPES)})")
    for name in ("bos", "eos"):
        add(f"--add-{name}", choices=list(_BOOLS), help=f"whether texts get {name.upper()}")
    several("--fix", metavar="CODE|all", help="correct what 'ggtok doctor' finds, if it can")
    add(
        "--against", metavar="SOURCE", help="with --fix, also correct differences from the original"
    )
    add_model_name(parser)


def run(args: argparse.Namespace) -> int:
    take_only_model(args)
    path = args.model
    if sum([args.out is not None, args.in_place, args.dry_run, args.undo]) != 1:
        raise UsageError("give one of -o OUT, --in-place, --dry-run and --undo")
    if not os.path.exists(path):
        raise UsageError(f"{path}: no such file; only a file on this machine can be edited")
    if args.undo:
        restored = ggtok.undo(path)
        standard_output.write_result(
            args, {"restored": restored}, [f"{printable(restored)}: restored"]
        )
        return OK
    if args.in_place and ggtok.recover(path):
        messages.warn(f"{path}: an edit was interrupted; the header before it was restored")
    if args.out is not None:
        check_output(args.out)
    if args.against is not None and not args.fix:
        raise UsageError("--against needs --fix, such as --fix all")
    changes = corrections(path, args.fix, args.against)
    changes.update(_changes(args, _EditedFile(path)))
    if not changes and not args.fix:
        raise UsageError("no changes: give --set, --template or another option")
    planned = ggtok.edit(path, changes, dry_run=True, force=args.force)
    for warning in planned.warnings:
        messages.warn(f"after the edit: {warning}")
    if args.in_place and planned.changes and not planned.in_place:
        messages.hint(
            "the header no longer fits in its place, so "
            f"{standard_output.size(planned.size)} are written"
        )
    result = planned
    if not args.dry_run:
        result = ggtok.edit(path, changes, out=args.out, force=args.force)
    left = remaining(result, args.against) if ALL in args.fix else []
    lines = _result_lines(result, args)
    if left:
        lines += ["", "serious findings remain:"]
        lines += doctor_command.lines(result.path, left)
    value = {**_json(result, args), "remaining": [finding.as_dict() for finding in left]}
    standard_output.write_result(args, value, lines)
    return FINDING if left else OK


# ---- the changes ----


class _EditedFile:
    """The file before the changes. Its vocabulary may be faulty, since the edit may correct it. So
    the tokenizer is loaded only for options that name a token."""

    def __init__(self, path: str) -> None:
        self._path = path
        edited = ggtok.edit(path, {}, dry_run=True, force=True)
        self.values: dict[str, Any] = FileHeader(edited.before).values()

    @cached_property
    def tok(self) -> ggtok.Tokenizer:
        try:
            return ggtok.load(self._path)
        except ggtok.UnknownPreTokenizerError:
            return ggtok.load(self._path, pre="default")

    def templates(self) -> list[str]:
        """Returns the names of the chat templates."""
        begin = f"{_TEMPLATE}."
        names = [key[len(begin) :] for key in self.values if key.startswith(begin)]
        return [*names, "default"] if _TEMPLATE in self.values else names


def _changes(args: argparse.Namespace, file: _EditedFile) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for word in args.set:
        key, value = _halves(word, "--set", "KEY=VALUE")
        changes[key] = _value(key, value, file)
    changes.update(dict.fromkeys(args.unset))
    if args.pre is not None:
        changes[_GGML + "pre"] = args.pre
    for name in ("bos", "eos"):
        value = getattr(args, f"add_{name}")
        if value is not None:
            changes[_GGML + FLAG_KEYS[f"add_{name}"]] = _BOOLS[value]
    for word in args.special:
        name, token = _halves(word, "--special", "NAME=ID")
        if name not in SPECIAL_KEYS:
            raise UsageError(
                f"--special: no special token {name!r}; known: {', '.join(SPECIAL_KEYS)}"
            )
        changes[f"{_GGML}{SPECIAL_KEYS[name]}_token_id"] = _id(file.tok, token, "--special")
    for word in args.type:
        token, _, name = word.rpartition("=")
        if name.lower() not in TYPES or not token:
            raise UsageError(f"--type: expected ID=TYPE, where TYPE is {', '.join(TYPES)}")
        changes[f"{_GGML}token_type[{_id(file.tok, token, '--type')}]"] = TYPES[name.lower()]
    _change_templates(args, file, changes)
    return changes


def _change_templates(
    args: argparse.Namespace, model: _EditedFile, changes: dict[str, Any]
) -> None:
    present = model.templates()
    names = [name for name in present if name != "default"]
    before = list(names)
    for word in args.template:
        name, separator, file = word.partition("=")
        if not separator or os.path.exists(word):
            name, file = "default", word
        text = input_texts.file(file).decode("utf-8", "surrogateescape")
        changes[_TEMPLATE if name == "default" else f"{_TEMPLATE}.{name}"] = text
        if name != "default" and name not in names:
            names.append(name)
    for name in args.remove_template:
        if name not in present:
            known = ", ".join(map(printable, present)) or "none"
            raise UsageError(f"--remove-template: no template {name!r}; the file has: {known}")
        changes[_TEMPLATE if name == "default" else f"{_TEMPLATE}.{name}"] = None
        if name != "default":
            names.remove(name)
    if names != before and (names or _TEMPLATES in model.values):
        changes[_TEMPLATES] = names or None


def _halves(word: str, option: str, form: str) -> tuple[str, str]:
    key, separator, value = word.partition("=")
    if not separator or not key:
        raise UsageError(f"{option}: expected {form}, not {word!r}")
    return key, value


def _value(key: str, text: str, file: _EditedFile) -> object:
    """Converts an option's text to a value for a key. The type is that of the key's value in the
    file, else the type that the text begins with, else the type that the text looks like."""
    old = file.values.get(key)
    kind, separator, rest = text.partition(":")
    if old is not None:
        name = {bool: "bool", int: "int", float: "float"}.get(type(old), "str")
        typed = text
    elif separator and kind in (*_CASTS, "bool"):
        name, typed = kind, rest
    else:
        for cast in (int, float):
            try:
                return cast(text)
            except ValueError:
                pass
        return _BOOLS.get(text.lower(), text)
    try:
        return _BOOLS[typed.lower()] if name == "bool" else _CASTS[name](typed)
    except (KeyError, ValueError):
        raise UsageError(f"--set: {key} is {name}, which can't be {typed!r}") from None


def _id(tok: ggtok.Tokenizer, token: str, option: str) -> int:
    """Returns an option's value as an id, or the id of the token whose text it is."""
    if token.isascii() and token.isdigit():
        id = int(token)
        if id >= tok.n_tokens:
            raise UsageError(f"{option}: no token {id}: the ids are 0 to {tok.n_tokens - 1}")
        return id
    found = tok.text_to_token(token)
    if found is None:
        raise UsageError(f"{option}: no token has the text {token!r}")
    return found


# ---- output ----


def _json(result: Edited, args: argparse.Namespace) -> dict[str, Any]:
    changes = [{"key": c.key, "before": c.before, "after": c.after} for c in result.changes]
    sample = [_sample_ids(data) for data in (result.before, result.after)]
    return {
        "path": result.path,
        "written": not args.dry_run and _writes(result, args),
        "in_place": result.in_place,
        "bytes": result.size,
        "changes": changes,
        "sample": {"text": _SAMPLE, "before": sample[0], "after": sample[1]},
    }


def _writes(result: Edited, args: argparse.Namespace) -> bool:
    """Whether the command writes a file, or would without --dry-run. If there are no changes, it
    writes only a new file."""
    return bool(result.changes) or args.out is not None


def _result_lines(result: Edited, args: argparse.Namespace) -> list[str]:
    listed, more = result.changes[:_MOST_CHANGES], len(result.changes) - _MOST_CHANGES
    lines = [
        f"{printable(c.key)}: {_show_value(c.before)} -> {_show_value(c.after)}" for c in listed
    ]
    if more > 0:
        lines.append(f"and {number(more, 'other change')} (--json lists all)")
    before, after = (_sample_ids(data) for data in (result.before, result.after))
    if before != after:
        lines += ["the ids of a sample change:", f"  before  {before}", f"  after   {after}"]
    if not result.changes:
        lines.append("nothing changes")
    if not _writes(result, args):
        return lines
    if args.dry_run:
        how = "in place" if result.in_place else "as a new file"
        lines.append(f"{standard_output.size(result.size)} would be written {how}")
    else:
        lines.append(f"{printable(result.path)}: {standard_output.size(result.size)} written")
    return lines


def _sample_ids(metadata: bytes) -> list[int] | None:
    """Returns a sample's ids in a vocabulary, or None if the vocabulary is faulty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        try:
            return ggtok.load(metadata).encode(_SAMPLE, parse_special=True)
        except ggtok.VocabError:
            return None


def _show_value(value: object) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, list):
        return number(len(value), "element")
    text = printable(str(value))
    return text if len(text) <= _MOST else f"{text[:_MOST]}... ({len(text)} characters)"


HELP = Help(
    usage="MODEL",
    details="Tensors stay as they are. In place, only the header is written if the new one fits; "
    "otherwise a new file is written next to MODEL and replaces it. Each old header is kept in "
    "MODEL.ggtok-undo, MODEL.ggtok-undo-2 and so on; --undo restores the last one and deletes its "
    "file. A killed edit leaves MODEL.ggtok-journal, from which --undo, or the next edit in place, "
    "restores the header. Files in the stores of Ollama and of the "
    "Hugging Face Hub are not changed in place.",
    words={"MODEL": "a .gguf file, or any file of a split model; or use -m MODEL"},
    examples=[
        "ggtok edit model.gguf --template template.jinja --in-place",
        "ggtok edit model.gguf --special 'eot=<|im_end|>' --dry-run",
        "ggtok edit model.gguf --pre qwen2 --add-bos false -o fixed.gguf",
        "ggtok edit model.gguf --set general.name='My model' --in-place",
        "ggtok edit model.gguf --fix all --dry-run",
        "ggtok edit model.gguf --undo",
    ],
    finding="with --fix all: serious findings remain",
)
