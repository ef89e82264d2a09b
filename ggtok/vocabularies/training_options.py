"""Checks the arguments of :func:`ggtok.train`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.vocabularies import spelling

RULES = {"bpe": ("huggingface", "bytes"), "spm": ("sentencepiece",)}
_END_OF_TEXT = "<|endoftext|>"
_MAX_SPECIAL = 1024  # the most bytes in a special token's text
_MAX_SIZE = 2**29  # the most tokens, limited by ggtok's encoders


@dataclass(frozen=True)
class TrainingOptions:
    """The checked arguments of :func:`train` that define the vocabulary."""

    size: int
    rule: str
    specials: tuple[str, ...]
    named: dict[str, str | None]
    seen: bool
    byte_fallback: bool
    coverage: float
    split_digits: bool
    min_frequency: int
    max_length: int


def check_specials(special_tokens: Iterable[str], named: dict[str, str | None]) -> list[str]:
    """Checks and returns the texts of special tokens. Also checks `named`, which has the texts for
    ``bos``, ``eos``, ``unk`` and ``pad``."""
    if isinstance(special_tokens, (str, bytes)):
        raise InvalidTypeError("special_tokens must be an iterable of str, not one")
    texts = list(special_tokens)
    for what, text in [*((f"special_tokens[{i}]", t) for i, t in enumerate(texts)), *named.items()]:
        if text is None and what in named:
            continue
        if not isinstance(text, str):
            raise InvalidTypeError(f"{what} must be str, not {type(text).__name__}")
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise InvalidValueError(f"{what} contains a lone surrogate") from None
        if not data or b"\0" in data or len(data) > _MAX_SPECIAL:
            raise InvalidValueError(
                f"{what} must be a text of 1 to {_MAX_SPECIAL} bytes without NUL characters"
            )
    for i, text in enumerate(texts):
        if text in texts[:i]:
            raise InvalidValueError(f"special_tokens[{i}] is a duplicate: {text!r}")
    return texts


def _integer(value: object, what: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidTypeError(f"{what} must be int, not {type(value).__name__}")
    if not least <= value <= most:
        option = what.replace("_", "-")
        raise InvalidValueError(
            f"{what} (--{option}) must be from {least} to {most}, but is {value}"
        )
    return value


def _rule(model: str, rule: object) -> str:
    rules = RULES[model]
    if rule is None:
        return rules[0]
    if rule not in rules:
        known = " or ".join(map(repr, rules))
        raise InvalidValueError(f"rule must be {known} for model '{model}', not {rule!r}")
    return str(rule)


def _specials(
    model: str, special_tokens: Iterable[str], named: dict[str, str | None]
) -> tuple[tuple[str, ...], dict[str, str | None]]:
    """Returns all special tokens in the order of their ids, and the texts for ``bos``, ``eos``,
    ``unk`` and ``pad``."""
    texts = check_specials(special_tokens, named)
    if model == "spm":
        for name, default in (("unk", "<unk>"), ("bos", "<s>"), ("eos", "</s>")):
            named[name] = named[name] or default
        first = [t for name in ("unk", "bos", "eos", "pad") if (t := named[name])]
        return tuple(dict.fromkeys([*first, *texts])), named
    # If the file has no BOS or EOS, llama.cpp uses token 11.
    named["eos"] = named["eos"] or _END_OF_TEXT
    last = [t for name in ("bos", "eos", "unk", "pad") if (t := named[name])]
    named["bos"] = named["bos"] or named["eos"]
    return tuple(dict.fromkeys([*texts, *last])), named


def refuse(model: str, raw: bool, passed: dict[str, bool]) -> None:
    """Raises InvalidValueError for an option that has no effect on the model."""
    of = {
        "alphabet": model == "bpe" and not raw,
        "byte_fallback": model == "spm",
        "character_coverage": model != "bpe" or raw,
        "split_digits": model != "bpe",
        "max_token_length": model == "bpe",
    }
    for name, is_passed in passed.items():
        if is_passed and not of.get(name, model != "ugm"):
            raise InvalidValueError(f"{name} has no effect with the model {model!r}")


def check_options(
    *,
    model: str,
    raw: bool,
    size: int,
    rule: object,
    special_tokens: Iterable[str],
    named: dict[str, str | None],
    alphabet: object,
    byte_fallback: bool,
    character_coverage: float,
    split_digits: bool,
    min_frequency: int,
    max_token_length: int | None,
) -> TrainingOptions:
    """Checks the arguments. `raw` says whether tokens are stored without a byte map, which depends
    on the pre-tokenizer."""
    if alphabet not in ("bytes", "seen"):
        raise InvalidValueError(f"alphabet must be 'bytes' or 'seen', not {alphabet!r}")
    if not 0 < character_coverage <= 1:
        raise InvalidValueError(
            f"character_coverage must be above 0 and at most 1, but is {character_coverage}"
        )
    refuse(
        model,
        raw,
        {
            "alphabet": alphabet != "bytes",
            "byte_fallback": not byte_fallback,
            "character_coverage": character_coverage != 1,
            "split_digits": split_digits,
            "max_token_length": max_token_length is not None,
        },
    )
    specials, named_texts = _specials(model, special_tokens, dict(named))
    if raw or (model == "spm" and byte_fallback):
        for text in specials:
            if spelling.is_byte_token(text.encode()):
                raise InvalidValueError(
                    f"the special token '{text}' has the form of a byte token: choose another text"
                )
    length = 0
    if max_token_length is not None:
        length = _integer(max_token_length, "max_token_length", 1, 2**31)
    return TrainingOptions(
        size=size,
        rule=_rule(model, rule),
        specials=specials,
        named=named_texts,
        seen=alphabet == "seen",
        byte_fallback=byte_fallback,
        coverage=character_coverage,
        split_digits=split_digits,
        min_frequency=_integer(min_frequency, "min_frequency", 1, 2**62),
        max_length=length,
    )


def check_size(vocab_size: object) -> int:
    return _integer(vocab_size, "vocab_size", 1, _MAX_SIZE)


def check_template(template: object) -> str | None:
    if template is not None and not isinstance(template, str):
        raise InvalidTypeError(f"chat_template must be str, not {type(template).__name__}")
    return template
