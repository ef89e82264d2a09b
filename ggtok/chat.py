"""From chat messages to text and ids; what :meth:`Tokenizer.apply_chat_template` and
:meth:`Tokenizer.encode_chat` do.

**No injection.** A chat template writes control tokens (``<|im_start|>``) around what
people say. Rendered and then parsed, a message that holds such a text would end its own
turn and begin another. So ``encode_chat`` parses control tokens only where the template
wrote them. Looking for their texts in the messages beforehand wouldn't do: a template may
join, trim or escape pieces into one, and marks put into the messages would change what
the template decides (``'</think>' in content``). Instead the template's own text is
traced (``_traced``, ``_template``): each character of the output is known to be the
template's or not, and a control token is one only if all of its characters are. What
comes out of an operation that doesn't know about tracing counts as not the template's.
So an error of tracing can lose a control token, never make one, and the tests hold each
of llama.cpp's templates to losing none. (A template that spells a message anew out of its own
letters, one by one, does make the text its own; none is known to.)

The template's: its text, its string constants, ``bos_token`` and the like, and a
message's role if it is one of `ROLES`, for some templates write ``'<|' + role + '|>'``.
Not the template's: everything else in messages, tools, documents and other variables.

User-defined tokens (which llama.cpp finds even without ``parse_special``; in many
vocabularies ``<think>`` is one) are found everywhere, as there. The raw text between
special tokens is tokenized in one piece wherever it comes from (``ggtok_encode_trusted``):
the ids of a harmless conversation are those of the rendered text.

**BOS.** As llama.cpp does: if the vocabulary adds BOS and the template has written it,
too, the template's is dropped; the same for EOS at the end.

**Against llama.cpp's renderers.** llama.cpp renders templates with an engine of its own,
and ``llama_chat_apply_template`` not at all: it looks for telling substrings in the
template and then runs one of some 50 built-in formats on roles and contents alone (no
tools, no reasoning, no system text that the template would add, white space of its own).
README.md lists what that changes.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ggtok import _native, _traced
from ggtok._traced import GENERATED, TEMPLATE
from ggtok.errors import (
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
    TemplateError,
)

if TYPE_CHECKING:
    from ggtok.tokenizer import Tokenizer

    Tools = Sequence[Mapping[str, Any]]
    Messages = Sequence[Mapping[str, Any]]

try:
    from ggtok import _template
except ModuleNotFoundError as e:
    raise MissingExtraError(
        f"chat templates need jinja2: pip install 'ggtok[chat]' ({e})", name=e.name
    ) from None

# Roles that count as the template's text.
ROLES = frozenset(
    "assistant critic developer documents environment function human ipython model observation "
    "system tool tool_call tool_calls tool_response tools user".split()
)
# Variables that a template may have special tokens from, and whose they are.
_TOKENS = ("bos", "eos", "unk", "sep", "pad", "mask")
# The names that a message's reasoning goes by. Templates read the first two.
_REASONING = ("reasoning_content", "thinking", "reasoning")
_MAX_LEVEL = 90  # of nested lists and mappings in the arguments


def render(
    tok: Tokenizer,
    messages: Messages,
    *,
    tools: Tools | None,
    add_generation_prompt: bool,
    continue_final_message: bool | str,
    template: str | None,
    clock: Callable[[], datetime] | None,
    variables: Mapping[str, Any],
) -> str:
    """The rendered text, traced."""
    source = find_template(tok.chat_templates, template, tools)
    chat = _messages(messages)
    final = "content" if continue_final_message is True else continue_final_message
    tag = ""
    if final:
        if add_generation_prompt:
            raise InvalidValueError(
                "continue_final_message goes without a generation prompt: "
                "say add_generation_prompt=False"
            )
        tag = f"<continue {uuid.uuid4().hex}> "
        ending = _tag(chat, source, final, tag)
    known = {
        **_token_texts(tok),
        "messages": _template.weighed(chat, float("inf")),
        "tools": None if tools is None else _tools(tools),
        "add_generation_prompt": bool(add_generation_prompt),
        "documents": None,
        **{name: _variable(name, value) for name, value in variables.items()},
    }
    limit = _template.weight(known, float("inf"))[0]
    text = _template.render(source, known, limit=limit, clock=clock or datetime.now)
    return _cut_at(text, tag, ending) if final else text


def find_template(templates: Mapping[str, str], wanted: str | None, tools: object) -> str:
    """The template's source: one of the file's by name, or `wanted` itself."""
    if wanted is not None and not isinstance(wanted, str):
        raise InvalidTypeError(f"template must be str, not {type(wanted).__name__}")
    names = ", ".join(map(repr, sorted(templates))) or "none"
    if wanted is None:
        for name in ("tool_use", "default") if tools is not None else ("default",):
            if name in templates:
                return templates[name]
        raise InvalidValueError(
            f"the file has no default chat template (it has: {names}): give one with template="
        )
    if wanted in templates:
        return templates[wanted]
    if "{" in wanted or "\n" in wanted:
        return wanted
    raise InvalidValueError(
        f"template: the file has no chat template {wanted!r} (it has: {names}), and it is none "
        "itself"
    )


# ---- arguments ----


def _plain(value: Any, where: str, level: int = 0) -> Any:
    """The value rebuilt of plain data that templates can do no harm with."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if level == _MAX_LEVEL:
        raise InvalidValueError(f"{where}: nested more than {_MAX_LEVEL} deep")
    new: Any
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InvalidTypeError(f"{where}: a key is {type(key).__name__}, not str")
        new = {
            str.__str__(key): _plain(item, f"{where}[{key!r}]", level + 1)
            for key, item in value.items()
        }
    elif isinstance(value, (list, tuple)):
        new = [_plain(item, f"{where}[{i}]", level + 1) for i, item in enumerate(value)]
        if isinstance(value, tuple):
            new = tuple(new)
    else:
        raise InvalidTypeError(
            f"{where}: templates take str, numbers, bool, None, lists and mappings, "
            f"not {type(value).__name__}"
        )
    return _template.weighed(new, float("inf"))


def _sequence(values: Any, what: str, of: str) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidTypeError(f"{what} must be a list of {of}, not {type(values).__name__}")
    return list(values)


def _messages(messages: Messages) -> list[dict[str, Any]]:
    """As transformers hands them to templates: no None, reasoning under both its names."""
    chat = []
    for i, message in enumerate(_sequence(messages, "messages", "mappings")):
        where = f"messages[{i}]"
        if not isinstance(message, Mapping):
            raise InvalidTypeError(f"{where} must be a mapping, not {type(message).__name__}")
        plain = {k: v for k, v in _plain(message, where).items() if v is not None}
        reasoning = next((plain[name] for name in _REASONING if name in plain), None)
        if reasoning is not None:
            plain = {"thinking": reasoning, **plain, "reasoning_content": reasoning}
        if plain.get("role") in ROLES:
            plain["role"] = _traced.labelled(plain["role"], TEMPLATE)
        chat.append(_template.weighed(plain, float("inf")))
    return chat


def _tools(tools: Tools) -> Any:
    for i, tool in enumerate(_sequence(tools, "tools", "JSON schemas")):
        if isinstance(tool, Mapping):
            continue
        how = ""
        if callable(tool):
            how = " (transformers.utils.get_json_schema makes one of a Python function)"
        raise InvalidTypeError(
            f"tools[{i}] must be a mapping, a JSON schema, not {type(tool).__name__}{how}"
        )
    return _plain(list(tools), "tools")


def _variable(name: str, value: Any) -> Any:
    plain = _plain(value, name)
    # Who gives a BOS text means the token.
    owned = name.endswith("_token") and isinstance(plain, str)
    return _traced.labelled(plain, TEMPLATE) if owned else plain


def _token_texts(tok: Tokenizer) -> dict[str, str]:
    texts = {}
    for name in _TOKENS:
        id: int | None = getattr(tok, f"{name}_id")
        if id is not None:
            piece = tok.token_to_piece(id).decode("utf-8", "replace")
            texts[f"{name}_token"] = _traced.labelled(piece, TEMPLATE)
    # Without the token these are "" in llama.cpp, too.
    return {"bos_token": "", "eos_token": "", **texts}


# ---- continuing the last message ----


def _tag(chat: list[dict[str, Any]], source: str, field: str, tag: str) -> str:
    """Puts the tag behind the field's text in the last message; gives that text."""
    if not chat:
        raise InvalidValueError("continue_final_message: there are no messages")
    last = chat[-1]
    fields = [field]
    if field in _REASONING:
        fields = [name for name in _REASONING if name in last and last[name] == last.get(field)]
    if field not in last:
        raise InvalidValueError(f"continue_final_message: the last message has no {field!r}")
    if not any(name in source for name in fields):
        raise InvalidValueError(f"continue_final_message: the template doesn't use {field!r}")
    value = last[field]
    if isinstance(value, str):
        tagged: Any = value + tag
    elif isinstance(value, list):
        blocks = list(value)
        texts = [i for i, b in enumerate(blocks) if isinstance(b, Mapping) and "text" in b]
        value = blocks[texts[-1]]["text"] if texts else None
        if not isinstance(value, str):
            raise InvalidValueError("continue_final_message: the last message has no text")
        final = {**blocks[texts[-1]], "text": value + tag}
        blocks[texts[-1]] = _template.weighed(final, float("inf"))
        tagged = _template.weighed(blocks, float("inf"))
    else:
        raise InvalidValueError(
            f"continue_final_message: {field!r} is {type(value).__name__}, not text"
        )
    chat[-1] = _template.weighed({**last, **dict.fromkeys(fields, tagged)}, float("inf"))
    return str(value)


def _cut_at(text: str, tag: str, ending: str) -> str:
    """The text up to the tag."""
    at = text.rfind(tag.strip())
    if at < 0 or ending.strip() not in text:
        raise TemplateError(
            "continue_final_message: the template leaves out the last message's end"
        )
    # Without the tag's own space behind it the template trims: so must we.
    return text[:at] if text[at:].startswith(tag) else text[:at].rstrip()


# ---- ids ----

_GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")


def encode(tok: Tokenizer, text: str) -> list[int]:
    """The ids of a traced text."""
    return _encoded(tok, _without_added(tok, text))[0]


def encode_with_mask(tok: Tokenizer, text: str) -> tuple[list[int], list[bool]]:
    """The same, and for each id whether a byte of it was generated."""
    text = _without_added(tok, text)
    ids, parts = _encoded(tok, text)
    return ids, _mask(tok, text.encode(), ids, parts, _ranges(text, GENERATED))


def check_generation(source: str) -> None:
    if not _GENERATION.search(source):
        raise InvalidValueError(
            "return_assistant_mask: the chat template has no {% generation %} to tell what the "
            "assistant says"
        )


def _without_added(tok: Tokenizer, text: str) -> str:
    """The text without the BOS and EOS of its own that add_special will put there."""
    tokens = _token_texts(tok)
    bos, eos = tokens["bos_token"], tokens["eos_token"]
    if tok.add_bos and text.startswith(bos) and _is_template(text[: len(bos)]):
        text = text[len(bos) :]
    if tok.add_eos and text.endswith(eos) and _is_template(text[len(text) - len(eos) :]):
        text = text[: len(text) - len(eos)]
    return text


def _is_template(text: str) -> bool:
    return all(label & TEMPLATE for _, _, label in _traced.spans(text))


def _encoded(tok: Tokenizer, text: str) -> tuple[list[int], list[_native.Part]]:
    flags = _native.ADD_SPECIAL | _native.PARSE_SPECIAL
    return tok._native.encode_trusted(str.__str__(text), flags, _ranges(text, TEMPLATE))


def _ranges(text: str, label: int) -> list[tuple[int, int]]:
    """Where the text has a label: [begin, end) in bytes of its UTF-8, ascending."""
    ranges: list[tuple[int, int]] = []
    plain, at = str.__str__(text), 0
    for begin, end, has in _traced.spans(text):
        n = len(plain[begin:end].encode("utf-8", "surrogatepass"))
        if has & label:
            if ranges and ranges[-1][1] == at:
                ranges[-1] = ranges[-1][0], at + n
            else:
                ranges.append((at, at + n))
        at += n
    return ranges


def _mask(
    tok: Tokenizer,
    data: bytes,
    ids: list[int],
    parts: list[_native.Part],
    ranges: list[tuple[int, int]],
) -> list[bool]:
    """For each id whether one of its bytes lies in a range.

    A part that lies in one range, or touches none, is all or nothing. In others the pieces of
    the tokens must be the part's bytes, perhaps behind the space that SPM puts in front.
    """
    mask = [False] * len(ids)
    k = 0
    for pos, n, first, n_ids, special in parts:
        end = pos + n
        while k < len(ranges) and ranges[k][1] <= pos:
            k += 1
        if k == len(ranges) or ranges[k][0] >= end:
            continue
        if special or (ranges[k][0] <= pos and end <= ranges[k][1]):
            mask[first : first + n_ids] = [True] * n_ids
            continue
        pieces = [tok.token_to_piece(id) for id in ids[first : first + n_ids]]
        shown, raw = b"".join(pieces), data[pos:end]
        if shown not in (raw, b" " + raw):
            raise InvalidValueError(
                f"return_assistant_mask: {tok.vocab_type} tokens don't spell the text that they "
                "stand for, so that it can't be told where in it they are"
            )
        at = end - len(shown)
        j = k
        for i, piece in enumerate(pieces, first):
            while j < len(ranges) and ranges[j][1] <= at:
                j += 1
            at += len(piece)
            mask[i] = bool(piece) and j < len(ranges) and ranges[j][0] < at
    return mask
