"""The group `chat`: us per conversation, for ten well-known templates and 3, 21 and 201 messages.

Compares ggtok (from messages to ids, and to text) with transformers (to text, and to ids with
tokenizers), its jinja2 template alone, minijinja, and llama-server's /apply-template and /tokenize
over HTTP. All except the server run in this process on one core, one sample of each in turn. Texts
and ids are compared before anything is timed. Finally, encode_chat_batch is timed on conversations
like those in fine-tuning data. transformers is in the extra `test`, because it needs another
version of tokenizers than the extra `bench` has.
"""

from __future__ import annotations

import importlib.metadata
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import ggtok
from tests.bench.corpora import Corpus, prose
from tests.bench.peers import OURS
from tests.bench.suite import OTHER_IDS, Suite
from tests.chat import answers
from tests.chat.llamaserver import ServerError, Servers

TEMPLATES = (
    "meta-llama-Llama-3.1-8B-Instruct",
    "Qwen-Qwen2.5-7B-Instruct",
    "Qwen-Qwen3-0.6B",
    "openai-gpt-oss-120b",
    "google-gemma-2-2b-it",
    "mistralai-Mistral-Nemo-Instruct-2407",
    "deepseek-ai-DeepSeek-V3.1",
    "microsoft-Phi-3.5-mini-instruct",
    "GLM-4.6",
    "moonshotai-Kimi-K2",
)
LENGTHS = (3, 21, 201)
_QUESTION, _ANSWER = (40, 280), (200, 900)  # shortest and longest, in characters
_SFT = 100_000  # number of fine-tuning conversations
_BOS, _EOS = "<|endoftext|>", "<|endoftext|>"  # qwen2's tokens, for renderers without a vocabulary
Call = Callable[[], Any]
Messages = list[dict[str, str]]


class Source:
    """A source of prose messages, all different."""

    def __init__(self, corpus: Corpus) -> None:
        self._text, self._at, self._n = corpus.text, 0, 0

    def _take(self, least: int, most: int) -> str:
        self._n += 1
        size = least + self._n * 7919 % (most - least)
        if self._at + size > len(self._text):
            self._at = self._n % 97
        self._at += size
        return self._text[self._at - size : self._at].strip()

    def messages(self, n: int) -> Messages:
        """Returns alternating questions and answers; the last message is a question."""
        roles = ("user", "assistant")
        return [
            {"role": roles[i % 2], "content": self._take(*(_ANSWER if i % 2 else _QUESTION))}
            for i in range(n)
        ]


def chat(suite: Suite) -> None:
    for vocab in suite.vocabs("qwen2"):
        suite.versions |= {name: _version(name) for name in ("transformers", "jinja2", "minijinja")}
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(suite.gguf(vocab))
        peers = _Peers(suite, vocab)
        with Servers(suite.gguf(vocab)) as servers:
            for name in TEMPLATES:
                _template(suite, tok, peers, servers, vocab, name)
        _sft(suite, tok, vocab)


def _template(
    suite: Suite, tok: ggtok.Tokenizer, peers: _Peers, servers: Servers, vocab: str, name: str
) -> None:
    template = answers.templates()[name]
    source = Source(prose())
    lengths = (*LENGTHS, 22) if name == "Qwen-Qwen3-0.6B" else LENGTHS
    server = None
    try:
        server = servers.start(template)
    except ServerError as error:
        print(f"{name}: {error}")
    for n in lengths:
        messages = source.messages(n - 1 + n % 2)
        if n == 22:
            messages.insert(0, {"role": "system", "content": "You answer in two sentences."})
        calls: dict[str, Call] = {
            OURS: partial(tok.encode_chat, messages, template=template),
            "ggtok text": partial(tok.apply_chat_template, messages, template=template),
            **peers.calls(template, messages),
        }
        if server is not None:
            body = json.dumps({"messages": messages})
            calls["llama-server"] = lambda server=server, body=body: server.ids(
                server.prompt(body)[0]
            )
        size = sum(len(message["content"].encode()) for message in messages)
        row = suite.row("chat", vocab, name, f"{n} messages, {size / 1000:.1f} kB", "us")
        notes, timeable = _checked(tok, template, messages, calls)
        takers = {
            who: partial(_sample, call, suite.options.at_least) for who, call in timeable.items()
        }
        suite.measure(row, takers, notes)
    if server is not None:
        server.close()


def _checked(
    tok: ggtok.Tokenizer, template: str, messages: Messages, calls: dict[str, Call]
) -> tuple[dict[str, str], dict[str, Call]]:
    """Returns for each call a note about its result ("" if it is right), and the calls that can be
    timed."""
    like = partial(tok.apply_chat_template, messages, template=template, like="transformers")
    text = like(add_generation_prompt=True)
    ids = tok.encode(text, add_special=False, parse_special=True)
    trusted_ids = tok.encode_chat(messages, template=template, trusted=True)
    notes: dict[str, str] = {}
    timeable = {}
    for who, call in calls.items():
        try:
            found = call()
        except Exception as error:  # template engines raise many types of errors
            notes[who] = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            continue
        wanted: Any = text if isinstance(found, str) else ids
        if who in (OURS, "llama-server"):
            wanted = trusted_ids
        elif who == "ggtok text":
            wanted = found
        notes[who] = "" if found == wanted else f"{OTHER_IDS}: the text differs"
        timeable[who] = call
    return notes, timeable


def _sample(call: Call, at_least: int, round: int) -> float:
    n = 1
    while True:
        start = time.perf_counter_ns()
        for _ in range(n):
            call()
        elapsed = time.perf_counter_ns() - start
        if elapsed >= at_least or n >= 1 << 16:
            return elapsed / n / 1000
        n = max(2 * n, int(n * at_least / max(elapsed, 1)))


def _sft(suite: Suite, tok: ggtok.Tokenizer, vocab: str) -> None:
    """Times encode_chat_batch on conversations that end with a complete answer, with one and with
    two threads."""
    source = Source(prose())
    conversations = [source.messages(5)[:4] for _ in range(_SFT)]
    template = answers.templates()["Qwen-Qwen2.5-7B-Instruct"]
    size = sum(len(m["content"].encode()) for messages in conversations for m in messages)

    def take(threads: int, round: int) -> float:
        start = time.perf_counter_ns()
        tok.encode_chat_batch(
            conversations,
            template=template,
            add_generation_prompt=False,
            continue_final_message=False,
            threads=threads,
        )
        return (time.perf_counter_ns() - start) / 1e9

    for threads in (1, 2):
        case = f"{_SFT:,} conversations, {size / 1e6:.0f} MB, {threads} thread{'s' * (threads > 1)}"
        row = suite.row("chat", vocab, "Qwen-Qwen2.5-7B-Instruct", case, "s")
        suite.measure(row, {OURS: partial(take, threads)}, rounds=min(3, suite.options.rounds))


class _Peers:
    """The other renderers that are installed, all with the same vocabulary."""

    def __init__(self, suite: Suite, vocab: str) -> None:
        from tokenizers import Tokenizer
        from transformers import PreTrainedTokenizerFast

        path: Path = suite.path("tokenizers", vocab, control=True)
        tokenizer = Tokenizer.from_file(str(path))
        self._hf = PreTrainedTokenizerFast(
            tokenizer_object=tokenizer, bos_token=_BOS, eos_token=_EOS
        )

    def calls(self, template: str, messages: Messages) -> dict[str, Call]:
        from transformers.utils.chat_template_utils import _compile_jinja_template

        render = partial(
            self._hf.apply_chat_template,
            messages,
            chat_template=template,
            add_generation_prompt=True,
        )
        variables = {"messages": messages, "add_generation_prompt": True}
        variables |= {"bos_token": _BOS, "eos_token": _EOS}
        found: dict[str, Call] = {
            "transformers": partial(render, tokenize=False),
            "transformers ids": partial(render, tokenize=True, return_dict=False),
            "jinja2": partial(_compile_jinja_template(template).render, **variables),
        }
        try:
            import minijinja
        except ModuleNotFoundError:
            return found
        environment = minijinja.Environment(
            templates={"chat": template}, trim_blocks=True, lstrip_blocks=True
        )
        environment.auto_escape_callback = lambda name: False
        environment.add_function("strftime_now", time.strftime)
        return found | {"minijinja": partial(environment.render_template, "chat", **variables)}


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
