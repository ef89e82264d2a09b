"""Boolean keywords accept only bool and numpy.bool, not objects such as the string "no"."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from fixtures.build import CHAT
from ggtok.adapters import LlamaCppTokenizer
from ggtok.distributed import Shards
from tests.chat.requests import user
from tests.support.public import public_functions

HI = [user("Hi")]
# The positional arguments with which each function is called.
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "encode": ("a",),
    "encode_array": ("a",),
    "encode_batch": (["a"],),
    "encode_batch_arrays": (["a"],),
    "encode_batch_arrow": (["a"],),
    "count": ("a",),
    "count_batch": (["a"],),
    "sample": ("a",),
    "sample_batch_arrays": (["a"],),
    "nbest": ("a", 2),
    "explain": ("a",),
    "truncate": ("a", 5),
    "chunks": ("a", 5),
    "encode_with_offsets": ("a",),
    "encode_batch_with_offsets": (["a"],),
    "encode_batch_arrays_with_offsets": (["a"],),
    "encode_batches": (["a"],),
    "encode_files": ("no such file", "no such folder/out"),
    "apply_chat_template": (HI,),
    "encode_chat": (HI,),
    "count_chat": (HI,),
    "encode_chat_batch": ([HI],),
    "decode": ([1],),
    "decode_bytes": ([1],),
    "decode_batch": ([[1]],),
    "stream_decoder": (),
    "stream_encoder": (),
    "token_to_piece": (1,),
    "train": ("some text", 300),
    "edit": ("no such file", {}),
    "show": ("a",),
    "save": ("no such folder/out.gguf",),
    "save_pretrained": ("no such folder",),
}
REQUIRED = {name: {"dropout": 0.5} for name in ("sample", "sample_batch_arrays")}
WRONG = ("no", 1, 0.0, [], np.array([True]))


def keywords() -> Iterator[tuple[str, str, str]]:
    """Yields functions, their boolean keywords, and the keywords' annotations."""
    for function in public_functions():
        for name, parameter in inspect.signature(function).parameters.items():
            annotation = str(parameter.annotation)
            if annotation.startswith("bool") and "Mapping" not in annotation:
                yield function.__qualname__, name, annotation


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(CHAT)


@pytest.mark.parametrize(("function", "name", "annotation"), list(keywords()))
def test_other_types_are_rejected(
    tok: ggtok.Tokenizer, function: str, name: str, annotation: str
) -> None:
    short = function.split(".")[-1]
    owner: Any = (
        ggtok.vocabulary(CHAT) if "save" in short else ggtok if short in ("train", "edit") else tok
    )
    call: Callable[..., object] = getattr(owner, short)
    for wrong in (*WRONG, *([] if "None" in annotation else [None])):
        if "str" in annotation and isinstance(wrong, str):
            continue
        with pytest.raises(ggtok.InvalidTypeError, match=f"^{name} must be True or False, not "):
            call(*ARGUMENTS[short], **REQUIRED.get(short, {}), **{name: wrong})


def test_numpy_bools_are_accepted(tok: ggtok.Tokenizer) -> None:
    yes, no = np.True_, np.bool_(False)
    assert tok.encode("a", add_special=no) == tok.encode("a", add_special=False)
    assert tok.encode("a", add_special=yes, continuation=yes) == tok.encode("a", continuation=True)
    parsed = tok.encode("<|eot_id|>", parse_special=True)
    assert tok.encode("<|eot_id|>", parse_special=yes) == parsed
    assert tok.encode_batch(["a"], add_special=no) == [tok.encode("a", add_special=False)]
    ids = tok.encode("ok !")
    for same in (ids, np.array(ids)):
        text = tok.decode(same, unparse_special=no, clean_spaces=yes)
        assert text == tok.decode(ids, unparse_special=False, clean_spaces=True) == "ok!"
    for like in ("llama.cpp", "transformers"):
        options: dict[str, Any] = {"like": like, "add_generation_prompt": False}
        want = tok.encode_chat(HI, **options)
        assert tok.encode_chat(HI, **{**options, "add_generation_prompt": no}) == want


def test_parse_special_rejects_other_types(tok: ggtok.Tokenizer) -> None:
    for wrong in (1, None, 0.5):
        with pytest.raises(ggtok.InvalidTypeError, match="parse_special must be True or False"):
            tok.encode("a", parse_special=wrong)  # type: ignore[arg-type]


def test_adapters_and_jobs_reject_other_types(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    own = LlamaCppTokenizer(tok)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: own.tokenize(b"a", add_bos="no"), "add_bos"),  # type: ignore[arg-type]
        (lambda: own.tokenize(b"a", special="no"), "special"),  # type: ignore[arg-type]
        (lambda: own.detokenize([1], special="no"), "special"),  # type: ignore[arg-type]
        (lambda: Shards(tok, tmp_path, eos="no"), "eos"),  # type: ignore[arg-type]
        (lambda: Shards(tok, tmp_path, add_special="no"), "add_special"),  # type: ignore[arg-type]
    ]
    for call, name in calls:
        with pytest.raises(ggtok.InvalidTypeError, match=f"^{name} must be True or False"):
            call()
