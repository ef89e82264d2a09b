"""The class Vocabulary, which can be saved to files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from ggtok.base.concurrency import cached_property
from ggtok.errors import InvalidTypeError, InvalidValueError, VocabError
from ggtok.native.arguments import truth
from ggtok.tokenizer import Tokenizer
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Contents, Pair, Report
from ggtok.vocabularies.gguf_writer import gguf_bytes, tokenizer_of
from ggtok.vocabularies.writers import write


class Vocabulary(Contents):
    """A vocabulary that can be written to a file.

    :func:`ggtok.train`, :func:`ggtok.convert` and :func:`ggtok.vocabulary` (from a GGUF file)
    create them. A vocabulary is immutable, and any number of threads may use it.

    Attributes:
        model: ``tokenizer.ggml.model``: ``"gpt2"`` (BPE), ``"llama"`` (SentencePiece's BPE),
            ``"t5"`` (Unigram), ...
        pre: ``tokenizer.ggml.pre``, or None.
        texts: the texts of the tokens, as stored in a GGUF file.
        types: the types of the tokens, as in llama.cpp's ``llama_token_type``.
        scores: the scores of the tokens, or None if the model has none.
        merge_texts: the merges, in order, as stored in a GGUF file, or None if the model has none.
        special_ids: ids by name: ``bos``, ``eos``, ``unk``, ``pad``, ``eot``, ``sep``, ``mask``...
        flags: flags by name: ``add_bos``, ``add_eos``, ``add_sep``, ``add_space_prefix`` and
            ``remove_extra_whitespaces``. A missing flag has llama.cpp's default.
        chat_template: the default template, or None.
        chat_templates: the other templates, by name.
        pre_patterns: regular expressions that split text instead of ``pre``. GGUF files can't
            contain them.
        keys: the file's other keys: full names and values.
        order: full names of keys, in the order that they have in a GGUF file; other keys follow.
        report: how the vocabulary was produced.
        inputs: the paths of the files from which it was produced; :meth:`save` never replaces them.
    """

    def __repr__(self) -> str:
        return f"<ggtok.Vocabulary {self.model} {self.pre or '-'}: {len(self.texts)} tokens>"

    # ---- decoded tokens ----

    @cached_property
    def tokens(self) -> list[bytes]:
        """The bytes that each token represents in a text.

        GPT-2's byte map, ``<0xXX>`` and U+2581 for spaces are decoded. A special token represents
        its text.
        """
        scheme = spelling.scheme(self.model, self.pre)
        if scheme is None:
            tok = self.tokenizer()
            return [tok.token_to_piece(id) for id in range(len(self))]
        decoded = spelling.decode_text
        return [decoded(t, k, scheme) for t, k in zip(self.texts, self.types, strict=True)]

    # ---- use and save ----

    def gguf(self) -> bytes:
        """Returns the bytes of a GGUF file with this vocabulary and no tensors.

        Raises:
            VocabError: a GGUF file can't contain it, or llama.cpp couldn't load the file.
        """
        return gguf_bytes(self)

    def tokenizer(self) -> Tokenizer:
        """Returns a tokenizer with this vocabulary, as if loaded from its GGUF file."""
        return tokenizer_of(self)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        inexact: bool = False,
        force: bool = False,
        published: bool = False,
    ) -> None:
        """Write the vocabulary to a file, completely or not at all.

        The file extension selects the format. A file of the same format is replaced and keeps
        its mode. Symbolic links are followed, and devices and FIFOs are written to.

        Args:
            path: ``*.gguf``: a GGUF file without tensors, for ``ggtok.load`` and llama.cpp.
                ``*.json``: Hugging Face's tokenizer.json. ``*.tiktoken``: tiktoken's ranks.
                ``*.model``: a SentencePiece model. The last three are refused if the other
                library couldn't produce llama.cpp's ids.
            inexact: also write a file with which the ids of some texts differ from llama.cpp's,
                or from the source's for no known reason (``report.unexplained``). A warning
                describes these texts. In tokenizer.json, this uses the published expressions if
                they differ only for characters newer than Unicode 15.1.
            force: also replace a file of another format, but never one of `inputs`.
            published: in tokenizer.json, write the expressions as their publisher did, which
                libraries with fast paths recognize, instead of llama.cpp's. A warning describes
                the texts that get other ids.

        Raises:
            VocabError: the format can't represent this vocabulary faithfully.
            InvalidValueError: the extension is unknown, or the file is one of `inputs` or has
                another format.
            FileError: the file can't be written.
        """
        options = {"inexact": inexact, "force": force, "published": published}
        write(self, path, **{name: truth(value, name) for name, value in options.items()})

    def save_pretrained(
        self,
        folder: str | os.PathLike[str],
        *,
        inexact: bool = False,
        force: bool = False,
        published: bool = False,
    ) -> list[str]:
        """Write a folder that transformers' ``AutoTokenizer.from_pretrained`` loads.

        It contains tokenizer.json, tokenizer_config.json, special_tokens_map.json,
        generation_config.json (whose EOS are all tokens that end generation), and the chat
        templates. The model's weights and config.json aren't needed to load the tokenizer.

        Args:
            folder: the folder, created if missing. Files with these names are replaced.
            inexact: also write the folder if the ids of some texts differ from llama.cpp's. A
                warning describes these texts.
            force: also replace files with these names that have another format.
            published: as for :meth:`save`.

        Returns:
            The paths of the files.

        Raises:
            VocabError: tokenizers couldn't produce llama.cpp's ids; the message says for which
                texts.
            InvalidValueError: the folder has another tokenizer's files that transformers would
                read, too.
            FileError: a file can't be written.
        """
        from ggtok.vocabularies.pretrained_folder import write_pretrained

        options = {"inexact": inexact, "force": force, "published": published}
        options = {name: truth(value, name) for name, value in options.items()}
        return write_pretrained(self, folder, **options)

    # ---- smaller vocabularies ----

    def smaller(self, n: int) -> Vocabulary:
        """Returns the vocabulary of n tokens that the same training would have produced.

        Merges are in the order of training, so a smaller vocabulary has only the first merges. It
        keeps special tokens, the alphabet and byte tokens.

        Raises:
            InvalidValueError: n is greater than the number of tokens, or less than the number of
                tokens that are always kept.
            VocabError: the tokens weren't trained one after another.
        """
        if isinstance(n, bool) or not isinstance(n, int):
            raise InvalidTypeError(f"n must be int, not {type(n).__name__}")
        if n > len(self):
            raise InvalidValueError(f"n is {n}: the vocabulary has only {len(self)} tokens")
        if self.merge_texts is not None:
            return self._fewer_merges(n)
        if self.model == "llama" and self.scores is not None:
            return self._fewer_pieces(n)
        raise VocabError(f"a vocabulary of model '{self.model}' can't be made smaller")

    def _fewer_merges(self, n: int) -> Vocabulary:
        assert self.merge_texts is not None
        ids = {text: id for id, text in enumerate(self.texts)}
        made: list[int] = []  # ids in the order of the merges that produce them
        after: list[int] = []  # for each of them, the number of merges up to and including its own
        seen: set[int] = set()
        special = (spelling.CONTROL, spelling.USER_DEFINED, spelling.UNKNOWN)
        for i, (left, right) in enumerate(self.merge_texts):
            id = ids.get(left + right)
            if id is None:
                raise VocabError(
                    f"merge {i} makes {left + right!r}, which is not a token: the merges of this "
                    "vocabulary were not trained one after the other"
                )
            if id not in seen and self.types[id] not in special:
                seen.add(id)
                made.append(id)
                after.append(i + 1)
        fixed = len(self) - len(made)
        self._check_size(n, fixed)
        keep = n - fixed
        dropped = set(made[keep:])
        n_merges = after[keep - 1] if keep else 0
        return self._without(dropped, merge_texts=self.merge_texts[:n_merges])

    def _fewer_pieces(self, n: int) -> Vocabulary:
        assert self.scores is not None
        scores = self.scores
        normal = [id for id, type in enumerate(self.types) if type == spelling.NORMAL]
        made = [id for id in normal if len(self.texts[id].decode("utf-8", "replace")) > 1]
        made.sort(key=lambda i: (-scores[i], i))
        fixed = len(self) - len(made)
        self._check_size(n, fixed)
        smaller = self._without(set(made[n - fixed :]))
        if [scores[id] for id in normal] != [-float(i) for i in range(len(normal))]:
            return smaller
        # In SentencePiece's models, scores count down from 0, with the alphabet at the end.
        counted = iter(range(len(normal)))
        renumbered = [
            -float(next(counted)) if type == spelling.NORMAL else score
            for type, score in zip(smaller.types, smaller.scores or (), strict=True)
        ]
        return replace(smaller, scores=renumbered)

    def _check_size(self, n: int, fixed: int) -> None:
        if n < fixed:
            raise InvalidValueError(
                f"n is {n}, but special tokens, byte tokens and alphabet alone are {fixed} tokens"
            )

    def _without(
        self, dropped: set[int], *, merge_texts: Sequence[Pair] | None = None
    ) -> Vocabulary:
        kept = [id for id in range(len(self)) if id not in dropped]
        new_id = {id: i for i, id in enumerate(kept)}
        return replace(
            self,
            texts=[self.texts[id] for id in kept],
            types=[self.types[id] for id in kept],
            scores=None if self.scores is None else [self.scores[id] for id in kept],
            merge_texts=merge_texts,
            special_ids={k: new_id[id] for k, id in self.special_ids.items() if id in new_id},
            report=Report(notes=(*self.report.notes, f"reduced to {len(kept)} tokens")),
        )
