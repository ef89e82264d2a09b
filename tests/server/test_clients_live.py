"""Tests ``--upstream`` in front of a live llama-server, with popular client libraries. These need
pip install ".[test-clients]".

The model's only layer is all zeros, so its answers are random; the tests compare streams, counts
and errors.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.chat.llamaserver import Server, write_model
from tests.server.running import listening, running
from tests.support.vocabularies import fixture

pytest.importorskip("xllamacpp")

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
MESSAGES = [{"role": "user", "content": "Is the kettle on?"}]
LONG = [{"role": "user", "content": "Is the kettle on? " * 100}]
ENDLESS = {"ignore_eos": True}  # an option of llama-server: no token ends the answer
CONTEXT = 1 << 16  # tokens; an endless answer takes many seconds to fill such a context


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    patch: dict[str, object] = {"tokenizer.chat_template": TEMPLATE.encode()}
    return write_model(fixture("bpe-llama3"), path, patch)


@pytest.fixture(scope="module")
def n(model: Path) -> int:
    """Returns the number of tokens in the prompt for MESSAGES."""
    return ggtok.load(model).count_chat(MESSAGES, trusted=True)


@pytest.fixture(scope="module")
def url(model: Path) -> Iterator[str]:
    with (
        Server(model, TEMPLATE) as live,
        running({"m": model}, upstream=live.url, count_header=True, limit=0) as url,
    ):
        yield url


@pytest.fixture
def doomed(model: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """Runs a server in front of a llama-server, and yields the server's URL and a function that
    kills the llama-server."""
    with (
        Server(model, TEMPLATE, context=CONTEXT) as live,
        running({"m": model}, upstream=live.url) as url,
    ):
        yield url, live.kill


def openai_client(url: str) -> Any:
    openai = pytest.importorskip("openai")
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


# ---- openai ----


def test_openai_streams_a_chat(url: str, n: int) -> None:
    create = openai_client(url).chat.completions.with_raw_response.create
    answer = create(
        model="m",
        messages=MESSAGES,
        max_tokens=8,
        stream=True,
        stream_options={"include_usage": True},
        extra_body=ENDLESS,
    )
    assert answer.headers["x-prompt-tokens"] == str(n)
    chunks = list(answer.parse())
    usage = next(chunk.usage for chunk in chunks if chunk.usage)
    assert (usage.prompt_tokens, usage.completion_tokens) == (n, 8)
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "length"


def test_openai_without_streaming(url: str, model: Path, n: int) -> None:
    client = openai_client(url)
    answer = client.chat.completions.create(
        model="m", messages=MESSAGES, max_tokens=4, extra_body=ENDLESS
    )
    assert answer.usage.prompt_tokens == n
    raw = client.completions.with_raw_response.create(
        model="m", prompt="Is the kettle on?", max_tokens=4, extra_body=ENDLESS
    )
    count = ggtok.load(model).count("Is the kettle on?")
    assert raw.parse().usage.prompt_tokens == count == int(raw.headers["x-prompt-tokens"])


def test_openai_streams_a_response(url: str, n: int) -> None:
    events = list(
        openai_client(url).responses.create(
            model="m",
            input=MESSAGES,
            max_output_tokens=4,
            stream=True,
            extra_body=ENDLESS,
        )
    )
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    assert events[-1].response.usage.input_tokens == n


def test_openai_streams_asynchronously(url: str) -> None:
    """Several streams at the same time all arrive complete."""
    openai = pytest.importorskip("openai")

    async def one(client: Any) -> int:
        stream = await client.chat.completions.create(
            model="m",
            messages=MESSAGES,
            max_tokens=20,
            stream=True,
            stream_options={"include_usage": True},
            extra_body=ENDLESS,
        )
        usages = [chunk.usage async for chunk in stream]
        return int(usages[-1].completion_tokens)

    async def several() -> list[int]:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
            return await asyncio.gather(*(one(client) for _ in range(8)))

    assert asyncio.run(several()) == [20] * 8


def test_openai_recognizes_a_prompt_that_is_too_long(url: str) -> None:
    """The limit is the live server's context."""
    openai = pytest.importorskip("openai")
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client(url).chat.completions.create(model="m", messages=LONG)
    assert caught.value.code == "context_length_exceeded"
    assert "maximum context length is 256 tokens" in str(caught.value)


def test_openai_leaves_a_stream(doomed: tuple[str, Callable[[], None]]) -> None:
    """A client that closes its stream frees the live server's only slot."""
    client = openai_client(doomed[0])
    for _ in range(3):
        stream = client.chat.completions.create(
            model="m", messages=MESSAGES, stream=True, extra_body=ENDLESS
        )
        next(iter(stream))
        stream.close()
    answer = client.chat.completions.create(
        model="m", messages=MESSAGES, max_tokens=4, extra_body=ENDLESS
    )
    assert answer.usage.completion_tokens == 4


def test_openai_sees_that_the_upstream_server_died(
    doomed: tuple[str, Callable[[], None]],
) -> None:
    openai = pytest.importorskip("openai")
    url, kill = doomed
    client = openai_client(url)
    stream = client.chat.completions.create(
        model="m", messages=MESSAGES, stream=True, extra_body=ENDLESS
    )
    chunks = iter(stream)
    next(chunks)
    kill()
    with pytest.raises(openai.APIError, match="broke off the answer"):
        for _ in chunks:
            pass
    with pytest.raises(openai.InternalServerError, match="doesn't answer") as caught:
        client.chat.completions.create(model="m", messages=MESSAGES)
    assert caught.value.status_code == 502
    assert client.responses.input_tokens.count(model="m", input="Hi").input_tokens


# ---- anthropic ----


def test_anthropic_streams(url: str, n: int) -> None:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=url, api_key="none")
    with client.messages.stream(
        model="m", messages=MESSAGES, max_tokens=4, extra_body=ENDLESS
    ) as stream:
        final = stream.get_final_message()
    usage = final.usage
    assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == n
    assert final.stop_reason == "max_tokens"
    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: .* > 256 maximum"):
        client.messages.create(model="m", messages=LONG, max_tokens=4)


def test_anthropic_sees_that_the_upstream_server_died(
    doomed: tuple[str, Callable[[], None]],
) -> None:
    anthropic = pytest.importorskip("anthropic")
    url, kill = doomed
    client = anthropic.Anthropic(base_url=url, api_key="none", max_retries=0)
    stream = client.messages.create(
        model="m", messages=MESSAGES, max_tokens=CONTEXT, stream=True, extra_body=ENDLESS
    )
    events = iter(stream)
    next(events)
    kill()
    with pytest.raises(anthropic.APIError, match="broke off the answer"):
        for _ in events:
            pass


# ---- ollama ----


def test_ollama_recognizes_a_prompt_that_is_too_long(url: str) -> None:
    """The limit is the live server's context size. The live server's own /api/chat would answer in
    OpenAI's format, which Ollama's client can't read."""
    ollama = pytest.importorskip("ollama")
    client = ollama.Client(host=url)
    with pytest.raises(ollama.ResponseError, match="only 256") as caught:
        client.chat(model="m", messages=LONG)
    assert caught.value.status_code == 400


class Ollama:
    """Answers /api/chat as Ollama does, with one piece of text per line, until the connection
    breaks."""

    def __init__(self, lines: int, whole: bool) -> None:
        self.lines = lines
        self.whole = whole

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] != "lifespan.shutdown":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"application/x-ndjson")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for k in range(self.lines):
            line = {"model": "m", "message": {"role": "assistant", "content": f"{k} "}}
            await send(part({**line, "done": False}, True))
        if not self.whole:
            raise ConnectionError
        await send(part({**line, "done": True, "prompt_eval_count": 1}, False))


def part(value: object, more: bool) -> dict[str, Any]:
    body = json.dumps(value).encode() + b"\n"
    return {"type": "http.response.body", "body": body, "more_body": more}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("whole", [True, False])
def test_ollama_streams_a_chat(whole: bool, model: Path) -> None:
    ollama = pytest.importorskip("ollama")
    with listening(Ollama(5, whole)) as upstream, running({"m": model}, upstream=upstream) as url:
        parts = ollama.Client(host=url).chat(model="m", messages=MESSAGES, stream=True)
        texts = [next(parts).message.content for _ in range(5)]
        assert "".join(texts) == "0 1 2 3 4 "
        if whole:
            assert next(parts).done
        else:
            with pytest.raises(ollama.ResponseError, match="broke off the answer"):
                next(parts)


# ---- LangChain ----


def test_langchain_openai(url: str, n: int) -> None:
    module = pytest.importorskip("langchain_openai")
    chat = module.ChatOpenAI(
        model="m",
        base_url=f"{url}/v1",
        api_key="none",
        max_tokens=4,
        extra_body=ENDLESS,
        stream_usage=True,
    )
    assert chat.invoke("Is the kettle on?").usage_metadata["input_tokens"] == n
    usages = [c.usage_metadata for c in chat.stream("Is the kettle on?") if c.usage_metadata]
    assert usages[-1]["input_tokens"] == n
    assert usages[-1]["output_tokens"] == 4


def test_langchain_anthropic_counts(url: str, n: int) -> None:
    module = pytest.importorskip("langchain_anthropic")
    chat = module.ChatAnthropic(model="m", base_url=url, api_key="none", max_tokens=4)
    message = pytest.importorskip("langchain_core.messages").HumanMessage("Is the kettle on?")
    assert chat.get_num_tokens_from_messages([message]) == n
    assert chat.invoke("Is the kettle on?").usage_metadata["input_tokens"] == n


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_langchain_ollama(model: Path) -> None:
    module = pytest.importorskip("langchain_ollama")
    with listening(Ollama(3, True)) as upstream, running({"m": model}, upstream=upstream) as url:
        chat = module.ChatOllama(model="m", base_url=url)
        assert "".join(c.content for c in chat.stream("Is the kettle on?")) == "0 1 2 2 "
