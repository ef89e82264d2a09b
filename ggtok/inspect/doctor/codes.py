"""The table of findings. Codes never change their meaning."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ggtok.base.escape import number

SERIOUS, REMARK = "serious", "remark"


@dataclass(frozen=True)
class FindingKind:
    """A row of the table: a kind of finding, with its severity, meaning, and advice."""

    severity: str
    title: str
    means: str
    advice: str


KINDS = {
    # ---- the file ----
    "GGT001": FindingKind(
        SERIOUS,
        "the vocabulary can't be loaded",
        "llama.cpp refuses the file, or aborts when the vocabulary is used.",
        "Convert the model again with llama.cpp's current converter.",
    ),
    "GGT002": FindingKind(
        SERIOUS,
        "the file has keys or types that this version doesn't know",
        "Newer builds of llama.cpp may read them, so ids may differ from those of newer builds.",
        "Use a newer ggtok, and compare ids with the original tokenizer's, as 'ggtok diff MODEL "
        "tokenizer.json' does.",
    ),
    "GGT003": FindingKind(
        REMARK,
        "older builds of llama.cpp give other ids",
        "The file asks for NFC (tokenizer.ggml.normalizer.nfc). llama.cpp b11739 and ggtok compose "
        "texts, but b11549 ignores the key, so texts with decomposed characters get other ids "
        "there.",
        "Run the model with a build that reads the key; 'ggtok parity MODEL --library FILE' shows "
        "whether one does.",
    ),
    "GGT004": FindingKind(
        SERIOUS,
        "the file has no vocabulary",
        "Adapters, projectors, importance matrices and control vectors have none; their model's "
        "file has it.",
        "Check the model's own file.",
    ),
    # ---- the pre-tokenizer ----
    "GGT101": FindingKind(
        SERIOUS,
        "the file names no pre-tokenizer",
        "llama.cpp splits text by its default, not as in the model's training, so ids may differ "
        "from those of the training.",
        "Set tokenizer.ggml.pre to the name that produces the ids of the original tokenizer, as "
        "'ggtok diff MODEL tokenizer.json' shows.",
    ),
    "GGT102": FindingKind(
        REMARK,
        "the pre-tokenizer is 'default'",
        "This is llama.cpp's fallback. No model was trained with it.",
        "Compare ids with the original tokenizer's, as 'ggtok diff MODEL tokenizer.json' does.",
    ),
    "GGT103": FindingKind(
        SERIOUS,
        "the pre-tokenizer is unknown",
        "llama.cpp refuses the file.",
        "Use a newer ggtok, or convert the original tokenizer again. A known name in "
        "tokenizer.ggml.pre is right only if it produces the original's ids, as 'ggtok diff MODEL "
        "tokenizer.json' shows; similar names often don't.",
    ),
    "GGT104": FindingKind(
        SERIOUS,
        "the pre-tokenizer isn't that of this vocabulary",
        "It splits thousands of the vocabulary's tokens, which other pre-tokenizers keep whole, so "
        "words get other ids than in training.",
        "Set tokenizer.ggml.pre to the name that produces the ids of the original tokenizer "
        "('ggtok edit MODEL --pre NAME').",
    ),
    # ---- the chat template ----
    "GGT201": FindingKind(
        REMARK,
        "BOS is added twice",
        "The vocabulary adds BOS, and the chat template writes it, too. llama-server drops one of "
        "them; programs that render the template and then tokenize with add_special don't.",
        "Tokenize rendered chats with add_special=False.",
    ),
    "GGT202": FindingKind(
        REMARK,
        "BOS is added, but the chat template doesn't write it",
        "llama-server puts BOS before chats, because add_bos is on; transformers, which follows "
        "the template, doesn't.",
        "Set tokenizer.ggml.add_bos_token to what the model was trained with.",
    ),
    "GGT203": FindingKind(
        REMARK,
        "the chat template writes BOS, but it isn't added",
        "Chats begin with BOS, but plain text doesn't, because add_bos is off.",
        "Set tokenizer.ggml.add_bos_token to what the model was trained with.",
    ),
    "GGT204": FindingKind(
        SERIOUS,
        "the template's end of turn doesn't end generation",
        "The token that the chat template writes after an answer is not in the EOG set, so "
        "llama.cpp continues to generate after it.",
        "Set tokenizer.ggml.eot_token_id (or eos_token_id) to that token.",
    ),
    "GGT205": FindingKind(
        SERIOUS,
        "the template's end of turn isn't a token",
        "The chat template writes a text after an answer that looks like a control token, but the "
        "vocabulary has no such token, so the model sees plain text.",
        "Convert the model again with its added tokens, or use the chat template of its training.",
    ),
    "GGT206": FindingKind(
        REMARK,
        "the chat template writes control tokens that the vocabulary lacks",
        "They become plain text. Some models were trained this way; otherwise the template or the "
        "vocabulary belongs to another model.",
        "Compare the template and the vocabulary with those of the original model.",
    ),
    "GGT207": FindingKind(
        SERIOUS,
        "the chat template can't be rendered",
        "llama-server refuses the template, or every chat.",
        "Use another template (--chat-template-file), or correct tokenizer.chat_template.",
    ),
    # ---- the chat template in two programs ----
    "GGT208": FindingKind(
        SERIOUS,
        "transformers can't render the chat template",
        "llama-server renders it, but transformers refuses every conversation that was tried. So "
        "the model was probably trained with another template, or with variables that these "
        "conversations lack.",
        "Use the chat template of the original model.",
    ),
    "GGT209": FindingKind(
        SERIOUS,
        "llama.cpp's Jinja renders plain conversations differently from jinja2",
        "The model was trained with jinja2's text, and gets a different one from llama-server.",
        "Change the template at this line, so that both render the same text.",
    ),
    "GGT210": FindingKind(
        REMARK,
        "llama-server sets variables of the chat template that transformers doesn't",
        "Without them, the template takes another branch, as with enable_thinking: the model "
        "reasons in one program and doesn't in the other.",
        "Pass the variables yourself (chat_template_kwargs), in both programs.",
    ),
    "GGT211": FindingKind(
        REMARK,
        "one of llama-server and transformers refuses conversations that the other renders",
        "Clients that send such conversations work with only one of the two.",
        "Nothing, if you don't send such conversations. For transformers, send contents as text.",
    ),
    "GGT212": FindingKind(
        REMARK,
        "llama-server and transformers render some conversations differently",
        "The model sees such conversations in a form that its training may not have had.",
        "Nothing, if you don't send such conversations. For the same prompts in both, send "
        "contents as text.",
    ),
    # ---- types and special tokens ----
    "GGT301": FindingKind(
        REMARK,
        "llama.cpp overrides the types of tokens",
        "Their texts are those of known special tokens, but the file has other types for them. "
        "Programs that follow the file parse and print them differently.",
        "Nothing, if you use llama.cpp; otherwise correct tokenizer.ggml.token_type.",
    ),
    "GGT302": FindingKind(
        SERIOUS,
        "a special token's id is outside the vocabulary",
        "llama.cpp uses its default for this type of vocabulary instead, if there is one.",
        "Correct the key.",
    ),
    "GGT303": FindingKind(
        SERIOUS,
        "plain text ends a generation",
        "The file names no EOS, and llama.cpp's default is an ordinary token, so generation ends "
        "as soon as the model writes it.",
        "Set tokenizer.ggml.eos_token_id.",
    ),
    "GGT304": FindingKind(
        SERIOUS,
        "control tokens of the chat template are NORMAL",
        "The chat template writes them, but the vocabulary doesn't mark them as special, so they "
        "are split into other tokens, and the model doesn't see where messages begin and end.",
        "Set their types to CONTROL.",
    ),
    "GGT305": FindingKind(
        SERIOUS,
        "an ordinary token ends a generation",
        "A key names an ordinary word as the end of the text or of a turn, so an answer ends where "
        "the model writes that word.",
        "Set the key to the token that ends an answer.",
    ),
    "GGT306": FindingKind(
        SERIOUS,
        "byte tokens have other types",
        "Tokens such as <0x0A> that aren't of type BYTE appear in the model's output by their "
        "names, instead of as the bytes that they stand for.",
        "Set their types to BYTE.",
    ),
    # ---- tokens ----
    "GGT401": FindingKind(
        SERIOUS,
        "NORMAL tokens are unreachable",
        "Merging a token's own bytes results in other tokens, so no text has this token, and words "
        "are split differently than in training. So many are no accident: merges or scores are "
        "missing or in a wrong order.",
        "Convert the model again.",
    ),
    "GGT402": FindingKind(
        REMARK,
        "a few NORMAL tokens are unreachable",
        "Merging a token's own bytes results in other tokens, so no text has this token. At most "
        "one token in a thousand is: some published vocabularies have such tokens.",
        "Nothing, if the original tokenizer doesn't produce them, either.",
    ),
    "GGT403": FindingKind(
        REMARK,
        "tags of type NORMAL are unreachable",
        "Tokens such as <unused0> or [PAD] that merges don't make: reserved tokens, or special "
        "tokens whose types were lost. No text has them, not even a chat template's.",
        "If the model uses them, set their types to USER_DEFINED or CONTROL.",
    ),
    "GGT404": FindingKind(
        REMARK,
        "tokens that were not found in any context",
        "In every context tried, their text is split or normalized first, or is part of a longer "
        "token.",
        "Nothing, if the original tokenizer doesn't produce them, either. In a BPE vocabulary, "
        "thousands of them may mean a wrong tokenizer.ggml.pre.",
    ),
    "GGT405": FindingKind(
        REMARK,
        "tokens without text",
        "llama.cpp names them [EMPTY_<id>]; no text has them.",
        "Nothing, if they only pad the vocabulary.",
    ),
    "GGT406": FindingKind(
        SERIOUS,
        "tokens whose text is broken",
        "Their text isn't UTF-8, or llama.cpp cuts it at a NUL, so it differs from the original "
        "vocabulary's.",
        "Convert the model again.",
    ),
    # ---- merges ----
    "GGT501": FindingKind(
        REMARK,
        "merges without two parts",
        "llama.cpp splits a merge at a space. These have none, so they have no effect.",
        "Convert the model again.",
    ),
    "GGT502": FindingKind(
        REMARK,
        "merges that repeat earlier ones",
        "The first of equal merges counts.",
        "Nothing, if the first is in the right place.",
    ),
    "GGT503": FindingKind(
        REMARK,
        "merges that can't apply",
        "No merge makes one of their parts, or merges with higher priority always apply first.",
        "Compare the merges with the original tokenizer's, as 'ggtok diff MODEL tokenizer.json' "
        "does.",
    ),
    "GGT504": FindingKind(
        SERIOUS,
        "merges whose result isn't a token",
        "Text that they merge falls back to bytes, or is lost.",
        "Convert the model again.",
    ),
    # ---- sizes ----
    "GGT601": FindingKind(
        SERIOUS,
        "the embedding's number of rows isn't the number of tokens",
        "llama.cpp refuses to load the weights.",
        "Convert the model again, with a vocabulary padded to the embedding's rows.",
    ),
    "GGT602": FindingKind(
        REMARK,
        "the key vocab_size isn't the number of tokens",
        "llama.cpp uses the number of tokens; other programs may use the key.",
        "Correct the key.",
    ),
    # ---- compared with the source (``against``) ----
    "GGT701": FindingKind(
        SERIOUS,
        "the vocabulary has another type than the source's",
        "Text is tokenized by another algorithm than in the model's training.",
        "Convert the model again.",
    ),
    "GGT702": FindingKind(
        SERIOUS,
        "tokens differ from the source's",
        "The model sees other embeddings for these texts than in its training.",
        "Convert the model again, unless a fine-tune changed its tokens.",
    ),
    "GGT703": FindingKind(
        SERIOUS,
        "special tokens of the source are ordinary tokens",
        "Prompts that contain them, such as chats, get other ids than in training.",
        "Set their types to the source's.",
    ),
    "GGT704": FindingKind(
        REMARK,
        "tokens have other types than in the source",
        "Programs print or hide other tokens, or parse others in untrusted text.",
        "Set their types to the source's, if the difference isn't intended.",
    ),
    "GGT705": FindingKind(
        SERIOUS,
        "merges differ from the source's",
        "Words are split into other tokens than in the model's training.",
        "Set tokenizer.ggml.merges to the source's.",
    ),
    "GGT706": FindingKind(
        SERIOUS,
        "the pre-tokenizer isn't the source's",
        "Text is split into other words than in the model's training, so ids differ.",
        "Set tokenizer.ggml.pre to the source's.",
    ),
    "GGT707": FindingKind(
        SERIOUS,
        "ids differ from the source's",
        "The model sees other ids than in its training.",
        "Convert the model again.",
    ),
    "GGT708": FindingKind(
        SERIOUS,
        "BOS or EOS isn't the source's",
        "Texts begin or end with another token than in training.",
        "Set the key to the source's id, unless the file's publisher changed it on purpose.",
    ),
    "GGT709": FindingKind(
        REMARK,
        "special tokens differ from the source's",
        "Programs that pad, mask or separate use another token.",
        "Nothing, if your program doesn't use them.",
    ),
    "GGT710": FindingKind(
        SERIOUS,
        "a token that ends generation in the source doesn't end it here",
        "The model continues after its answer, because the token isn't in the EOG set.",
        "Set tokenizer.ggml.eot_token_id to it.",
    ),
    "GGT711": FindingKind(
        SERIOUS,
        "BOS or EOS is added where the source doesn't add it, or the other way round",
        "Every text begins or ends differently than in training.",
        "Set the flag to the source's.",
    ),
    "GGT712": FindingKind(
        SERIOUS,
        "the source's chat template is missing",
        "Programs use a generic template instead of the one that the model was trained with.",
        "Set tokenizer.chat_template to the source's.",
    ),
    "GGT713": FindingKind(
        SERIOUS,
        "the chat template makes other prompts than the source's",
        "The model sees chats in another form than the source model does.",
        "Set tokenizer.chat_template to the source's, unless the file's corrects an error there.",
    ),
    "GGT714": FindingKind(
        REMARK,
        "the chat template's text isn't the source's",
        "Both make the same prompts of the conversations that were tried.",
        "Nothing.",
    ),
}


@dataclass(frozen=True)
class Finding:
    """An error or oddity in a file's tokenizer.

    Attributes:
        code: a stable code, such as ``"GGT101"``; docs/doctor.md lists all codes.
        severity: ``"serious"`` if the ids, or the ends of generations, probably differ from the
            model's training, or ``"remark"`` if it is only good to know.
        title: a general description.
        detail: the description of this case; several cases are on separate lines.
        means: the consequences.
        advice: what to do about it.
        ids: the affected tokens, ascending; may be empty.
        lines: the affected lines of the chat template, ascending, counted from 1; may be empty.
        changes: the changes to the file's keys that correct the finding, for :func:`ggtok.edit`;
            empty if there is no certain correction.
        options: the options of ``ggtok edit`` that probably correct it, if that isn't certain; or
            "".
        source: the original model with which the file was compared (``against``), or "".
    """

    code: str
    severity: str
    title: str
    detail: str
    means: str
    advice: str
    ids: tuple[int, ...] = ()
    lines: tuple[int, ...] = ()
    changes: Mapping[str, object] = field(default_factory=dict)
    source: str = ""
    options: str = ""

    @property
    def command(self) -> str | None:
        """The command that corrects the finding, with MODEL for the file, or None."""
        if not self.changes:
            return None
        against = f" --against {shlex.quote(self.source)}" if self.source else ""
        return f"ggtok edit MODEL --fix {self.code}{against} --in-place"

    @property
    def likely_command(self) -> str | None:
        """The command that probably corrects the finding, with MODEL for the file, or None."""
        return f"ggtok edit MODEL {self.options} --in-place" if self.options else None

    def as_dict(self) -> dict[str, Any]:
        """Returns the finding as a dict for JSON, in which arrays in `changes` are replaced by
        their lengths."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        changes = {
            key: number(len(value), "element") if isinstance(value, (list, bytes)) else value
            for key, value in self.changes.items()
        }
        lists = {"ids": list(self.ids), "lines": list(self.lines)}
        commands = {"command": self.command, "likely_command": self.likely_command}
        return {**fields, **lists, "changes": changes, **commands}


def finding(
    code: str,
    detail: str,
    ids: tuple[int, ...] = (),
    *,
    lines: tuple[int, ...] = (),
    changes: Mapping[str, object] | None = None,
    source: str = "",
    options: str = "",
) -> Finding:
    """Creates a finding with this code."""
    kind = KINDS[code]
    return Finding(
        code,
        kind.severity,
        kind.title,
        detail,
        kind.means,
        kind.advice,
        ids,
        lines,
        changes or {},
        source,
        options,
    )
