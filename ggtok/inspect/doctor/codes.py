"""The table of findings. Codes never change their meaning."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

SERIOUS, REMARK = "serious", "remark"


@dataclass(frozen=True)
class Kind:
    """A row of the table: the severity of a finding, its meaning, and advice."""

    severity: str
    title: str
    means: str
    advice: str


KINDS = {
    # ---- the file ----
    "GGT001": Kind(
        SERIOUS,
        "the vocabulary can't be loaded",
        "llama.cpp refuses the file, or stops where it is used.",
        "Convert the model again with llama.cpp's current converter.",
    ),
    # ---- the pre-tokenizer ----
    "GGT101": Kind(
        SERIOUS,
        "no pre-tokenizer is named",
        "Text is cut into words by llama.cpp's default, not as the model was trained, so that ids "
        "may differ from those that it knows.",
        "Set tokenizer.ggml.pre to the name that gives the ids of the original tokenizer.",
    ),
    "GGT102": Kind(
        REMARK,
        "the pre-tokenizer is 'default'",
        "That is what llama.cpp uses where no name is known, and no model's own.",
        "Compare ids with the original tokenizer's, as 'ggtok diff MODEL tokenizer.json' does.",
    ),
    "GGT103": Kind(
        SERIOUS,
        "the pre-tokenizer is unknown",
        "llama.cpp refuses the file. What follows was found with 'default' in its place.",
        "Use a newer version, or set tokenizer.ggml.pre to a known name that gives the ids of the "
        "original tokenizer.",
    ),
    # ---- the chat template ----
    "GGT201": Kind(
        REMARK,
        "BOS comes twice",
        "The vocabulary adds BOS, and the chat template writes it. llama-server drops one of "
        "them; programs that render the template and then tokenize with add_special don't.",
        "Tokenize rendered chats with add_special=False.",
    ),
    "GGT202": Kind(
        REMARK,
        "BOS is added, but the chat template has none",
        "llama-server puts BOS before chats, since add_bos is on; transformers, which goes by the "
        "template, doesn't.",
        "Set tokenizer.ggml.add_bos_token to what the model was trained with.",
    ),
    "GGT203": Kind(
        REMARK,
        "the chat template writes BOS, but it isn't added",
        "Chats begin with BOS and plain text doesn't, since add_bos is off.",
        "Set tokenizer.ggml.add_bos_token to what the model was trained with.",
    ),
    "GGT204": Kind(
        SERIOUS,
        "the template's end of turn doesn't end a generation",
        "The token that the chat template writes after an answer is not in the EOG set: llama.cpp "
        "goes on generating after it.",
        "Set tokenizer.ggml.eot_token_id (or eos_token_id) to that token.",
    ),
    "GGT205": Kind(
        SERIOUS,
        "the template's end of turn is no token",
        "What the chat template writes after an answer looks like a control token, but the "
        "vocabulary lacks it: the model gets, and would have to write, plain text.",
        "Convert the model again with its added tokens, or use the chat template that it was "
        "trained with.",
    ),
    "GGT206": Kind(
        REMARK,
        "the chat template writes control tokens that the vocabulary lacks",
        "They become plain text. Some models were trained so; for others the template, or the "
        "vocabulary, is another model's.",
        "Compare template and vocabulary with the original model's.",
    ),
    "GGT207": Kind(
        SERIOUS,
        "the chat template can't be rendered",
        "llama-server refuses the template, or every chat.",
        "Give another one (--chat-template-file), or correct tokenizer.chat_template.",
    ),
    # ---- types and special tokens ----
    "GGT301": Kind(
        REMARK,
        "llama.cpp overrides the types of tokens",
        "Their texts are those of known special tokens, but their types in the file say "
        "otherwise. Programs that go by the file parse and print them differently.",
        "Nothing, with llama.cpp; else correct tokenizer.ggml.token_type.",
    ),
    "GGT302": Kind(
        SERIOUS,
        "a special token's id is no token",
        "llama.cpp uses its default for this type of vocabulary instead, if it has one.",
        "Correct the key.",
    ),
    "GGT303": Kind(
        SERIOUS,
        "plain text ends a generation",
        "The file names no EOS, and llama.cpp's default is an ordinary token here: generation ends "
        "as soon as the model writes it.",
        "Set tokenizer.ggml.eos_token_id.",
    ),
    # ---- tokens ----
    "GGT401": Kind(
        SERIOUS,
        "NORMAL tokens can't come about",
        "Merging a token's own bytes gives others, so that no text has it: words are split "
        "otherwise than the model was trained. This many are no accident: merges or scores are "
        "missing, or in a wrong order.",
        "Convert the model again.",
    ),
    "GGT402": Kind(
        REMARK,
        "a few NORMAL tokens can't come about",
        "Merging a token's own bytes gives others, so that no text has it. At most one token in a "
        "thousand: some published vocabularies have such tokens.",
        "Nothing, if the original tokenizer doesn't give them either.",
    ),
    "GGT403": Kind(
        REMARK,
        "tags of type NORMAL can't come about",
        "Tokens such as <unused0> or [PAD] that merges don't make: reserved ones, or special "
        "tokens whose types were lost. Text, a chat template's too, doesn't become them.",
        "If the model uses them, set their types to USER_DEFINED or CONTROL.",
    ),
    "GGT404": Kind(
        REMARK,
        "tokens that no context gave",
        "In every context tried, their text is cut or changed before tokens are looked for, or a "
        "longer token takes it.",
        "Nothing, if the original tokenizer doesn't give them either. In a BPE vocabulary, "
        "thousands of them may mean a wrong tokenizer.ggml.pre.",
    ),
    "GGT405": Kind(
        REMARK,
        "tokens without text",
        "llama.cpp names them [EMPTY_<id>]; no text has them.",
        "Nothing, if they only fill up the vocabulary.",
    ),
    "GGT406": Kind(
        SERIOUS,
        "tokens whose text is broken",
        "Their text isn't UTF-8, or llama.cpp cuts it at a NUL: it stands for something else than "
        "in the original vocabulary.",
        "Convert the model again.",
    ),
    # ---- merges ----
    "GGT501": Kind(
        REMARK,
        "merges without two parts",
        "llama.cpp splits a merge at a space, and these have none: they merge nothing.",
        "Convert the model again.",
    ),
    "GGT502": Kind(
        REMARK,
        "merges that repeat earlier ones",
        "The first of equal ones counts.",
        "Nothing, if the first is where it belongs.",
    ),
    "GGT503": Kind(
        REMARK,
        "merges that can't apply",
        "Nothing makes one of their parts, or merges of higher rank always come first.",
        "Compare the merges with the original tokenizer's, as 'ggtok diff MODEL tokenizer.json' "
        "does.",
    ),
    "GGT504": Kind(
        SERIOUS,
        "merges that make no token",
        "Text that they merge falls back to bytes, or to nothing.",
        "Convert the model again.",
    ),
    # ---- sizes ----
    "GGT601": Kind(
        SERIOUS,
        "the embedding has another number of rows than there are tokens",
        "llama.cpp refuses to load the weights.",
        "Convert the model again, with a vocabulary filled up to the embedding's rows.",
    ),
    "GGT602": Kind(
        REMARK,
        "the key vocab_size isn't the number of tokens",
        "llama.cpp goes by the tokens; other programs may go by the key.",
        "Correct the key.",
    ),
}


@dataclass(frozen=True)
class Finding:
    """An error or oddity in a file's tokenizer.

    Attributes:
        code: a stable code, such as ``"GGT101"``; docs/doctor.md lists all codes.
        severity: ``"serious"``: the ids, or the ends of generations, probably differ from the
            model's training; ``"remark"``: good to know.
        title: a general description.
        detail: the description of this case.
        means: the consequences.
        advice: what to do about it.
        ids: the tokens concerned, ascending; may be empty.
    """

    code: str
    severity: str
    title: str
    detail: str
    means: str
    advice: str
    ids: tuple[int, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The finding as a dict for JSON."""
        return {**asdict(self), "ids": list(self.ids)}


def finding(code: str, detail: str, ids: tuple[int, ...] = ()) -> Finding:
    """The finding with this code."""
    kind = KINDS[code]
    return Finding(code, kind.severity, kind.title, detail, kind.means, kind.advice, ids)
