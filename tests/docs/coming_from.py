"""The tables in docs/coming-from.md, and the tools whose calls are in their left columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ggtok
from ggtok.adapters import LlamaCppTokenizer
from ggtok.vocabularies.patterns import CHAIN_OF_PRE
from tests.chat.llamaserver import Server
from tests.docs.pages import MESSAGES, ROOT
from tests.support.llamacpp import Vocab

PAGE = ROOT / "docs" / "coming-from.md"
# Rows that aren't compared because they construct an object, need a model's weights or (eot_token,
# masks) need special tokens or templates that the compared files lack.
NOT_COMPARED = {
    "Llama(path, vocab_only=True)",
    "llm.create_chat_completion(messages)",
    "AutoTokenizer.from_pretrained(name)",
    'Tokenizer.from_file("tokenizer.json")',
    "tiktoken.get_encoding(name)",
    "tiktoken.encoding_for_model(name)",
    "enc.eot_token",
    "hf.apply_chat_template(messages, return_dict=True, return_assistant_tokens_mask=True)",
}
STREAM = "the text of a streamed `/completion`"
_CODE = re.compile(r"(?:(?P<types>BPE|others): )?`(?P<code>[^`]+)`")


class Row(NamedTuple):
    section: str
    left: str  # the code in the left cell
    right: str  # the whole right cell

    def ours(self, vocab_type: str) -> str | None:
        """Returns the right cell's code for vocabularies of this type, if it has any."""
        found = [(m["types"], m["code"]) for m in _CODE.finditer(self.right)]
        kind = "BPE" if vocab_type == "BPE" else "others"
        labels = {types for types, _ in found}
        if labels & {"BPE", "others"}:
            return next((code for types, code in found if types == kind), None)
        return found[0][1]


def cells(line: str) -> list[str]:
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def rows(section: str) -> list[Row]:
    """Returns those rows of a section's table whose code can be compared."""
    text = PAGE.read_text("utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = re.findall(r"^\|.*\|$", text, re.M)[2:]
    found = []
    for line in lines:
        left, right = cells(line)
        code = left if left == STREAM else _CODE.findall(left)[0][1]
        if code not in NOT_COMPARED:
            found.append(Row(section, code, right))
    assert len(found) >= 7, section
    return found


def defaults() -> dict[str, list[str]]:
    """Returns the cells in the table of defaults, by tool."""
    text = PAGE.read_text("utf-8").split("The defaults that surprise most:")[1].split("\n\n")[1]
    lines = [cells(line) for line in text.splitlines()[2:]]
    return {line[0].partition(", `")[0]: line[1:] for line in lines}


class Llama:
    """The tokenizer of llama_cpp.Llama, with the C API calls that its _internals.LlamaModel
    makes."""

    def __init__(self, vocab: Vocab) -> None:
        self._vocab, self._facts = vocab, vocab.facts()
        self._pieces = {special: vocab.pieces(special) for special in (False, True)}
        keys = ("tokenizer.ggml.model",)
        self.metadata = {key: vocab.metadata(key) for key in keys}

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        return list(self._vocab.tokenize(text, add_special=add_bos, parse_special=special))

    def detokenize(self, ids: list[int], special: bool = False) -> bytes:
        text = b"".join(self._pieces[special][id] for id in ids)
        is_after_bos = bool(ids) and ids[0] == self.token_bos() and text[:1] == b" "
        return text[1:] if is_after_bos else text

    def n_vocab(self) -> int:
        return self._facts.n_tokens

    def token_bos(self) -> int:
        return self._special("bos")

    def token_eos(self) -> int:
        return self._special("eos")

    def token_nl(self) -> int:
        return self._special("nl")

    def _special(self, name: str) -> int:
        id = self._facts.special[name]
        return -1 if id is None else id


def transformers_tokenizer(tok: ggtok.Tokenizer, path: Path) -> Any:
    """Returns a PreTrainedTokenizerFast for the exported tokenizer.json, constructed as on the
    page."""
    from transformers import PreTrainedTokenizerFast

    ids = {"bos_token": tok.bos_id, "eos_token": tok.eos_id}
    names = {name: tok.token_text(id).decode() for name, id in ids.items() if id is not None}
    return PreTrainedTokenizerFast(
        tokenizer_file=str(path), chat_template=tok.chat_template, **names
    )


def tiktoken_encoding(tok: ggtok.Tokenizer, path: Path) -> Any:
    import tiktoken
    from tiktoken.load import load_tiktoken_bpe

    ((pattern,), *_) = CHAIN_OF_PRE[tok.pre or "default"].published
    return tiktoken.Encoding(
        path.stem,
        pat_str=pattern,
        mergeable_ranks=load_tiktoken_bpe(str(path)),
        special_tokens={tok.token_text(id).decode(): id for id in tok.special_ids},
    )


def end_of(tok: ggtok.Tokenizer) -> int:
    """Returns the id of EOS, or of SEP."""
    end = tok.eos_id if tok.eos_id is not None else tok.sep_id
    assert end is not None
    return end


def names_of(tok: ggtok.Tokenizer, text: str, parse_special: bool) -> dict[str, Any]:
    """Returns the variables that the page's code uses."""
    plain = tok.encode(text, add_special=False, parse_special=parse_special)
    return {
        "tok": tok,
        "text": text,
        "ids": tok.encode(text, parse_special=parse_special),
        "plain": plain,
        "id": plain[-1],
        "n": 6,
        "special": tok.token_text(end_of(tok)).decode(),
        "messages": MESSAGES,
        "LlamaCppTokenizer": LlamaCppTokenizer,
    }


def evaluate(code: str, names: dict[str, Any]) -> Any:
    """Returns the value of a row's code, with transformers and NumPy types converted to lists."""
    value = eval(code, dict(names))
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list):
        return value
    return [list(item) if isinstance(item, tuple) else item for item in value]


def server_answer(server: Server, row: Row, names: dict[str, Any]) -> Any:
    """Returns llama-server's answer to a row's request."""
    path, _, body = row.left.partition(" ")
    for name in "text", "ids", "messages":
        body = re.sub(rf": {name}\b", f": {json.dumps(names[name])}".replace("\\", r"\\"), body)
    status, answer = server.post(path, json.loads(body))
    assert status == 200, answer
    keys = ("tokens", "content", "prompt", "input_tokens")
    (value,) = (value for key, value in answer.items() if key in keys)
    if "with_pieces" in body:
        return [_bytes(token["piece"]) for token in value]
    return value


def _bytes(piece: str | list[int]) -> bytes:
    return piece.encode() if isinstance(piece, str) else bytes(piece)


# ---- the table of defaults ----

COLUMNS = ("adds", "special", "shows", "cleans", "strips")
Encode = Callable[[str], list[int]]
Decode = Callable[[list[int]], str]


def observed(
    tok: ggtok.Tokenizer, encode: Encode | None, decode: Decode
) -> Iterator[tuple[str, str]]:
    """Yields a tool's behavior with a vocabulary as pairs: a column, and the word that its cell
    should have."""
    end = end_of(tok)
    special = tok.token_text(end).decode()
    plain = tok.encode("ok !", add_special=False)
    if encode is not None:
        if tok.add_bos or tok.add_eos or tok.vocab_type == "WPM":
            yield "adds", "no" if encode("ok !") == plain else "yes"
        try:
            found = end in encode(f"ok {special} ok")[1:-1]
            yield "special", "parsed" if found else "plain text"
        except ValueError:
            yield "special", "an error"
    yield "shows", "yes" if special in decode([*plain, end]) else "no"
    yield "cleans", "yes" if "ok!" in decode(plain) else "no"
    if tok.add_space_prefix and tok.vocab_type in ("SPM", "UGM"):
        removes = decode(plain)[:1] != " "
        assert tok.bos_id is not None
        after_bos = decode([tok.bos_id, *plain])
        assert after_bos == "ok !" or after_bos.endswith(" ok !")
        yield "strips", "yes" if removes else "after BOS only" if after_bos == "ok !" else "no"


def expected(tok: ggtok.Tokenizer, column: str, cell: str) -> str:
    """Returns the word that the cell means for this vocabulary."""
    word = re.sub(r" \(.*|,.*", "", cell)
    if word == "as the vocabulary asks":
        return "yes" if tok._loaded.flags["clean_spaces"] else "no"
    if word == "for WPM only":
        return "yes" if tok.vocab_type == "WPM" else "no"
    return "no" if (column, word) == ("adds", "has none") else word
