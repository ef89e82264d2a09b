"""Random requests, well-formed and malformed, reproducible from a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.chat.generate import Generator as Chats
from tests.chat.requests import BARE, CALCULATE, NESTED, WEATHER

_WORDS = (
    "Hello there",
    "",
    " ",
    "  two\n\nlines\n",
    "<|eot_id|>",
    "<|im_end|>",
    "</s>",
    "<s>",
    "[CLS]",
    "the theatre",
    "don't",
    "12345.67",
    "Grüße 你好 👍",
    "e\u0301\u00a0",
    "\x00\x1b",
    "\ufeff",
    "▁Ġ<0x41>",
    "\r\n",
    "x" * 50,
)
_ODD: tuple[Any, ...] = (None, True, False, 0, 1, -1, 0.5, "x", "", [], {}, [None], ["x"], {"a": 1})
_NUMBERS = (-1, -(2**31), 2**31, 2**31 - 1, 2**32, 2**32 + 7, 2**63, 2**64, 0.9, 1.0, 3.99, -0.5)


class Request(NamedTuple):
    method: str
    path: str
    data: bytes | None

    def __str__(self) -> str:
        return f"{self.method} {self.path} {(self.data or b'')[:1500]!r}"


def post(path: str, body: Any) -> Request:
    """Returns a POST request with a JSON body."""
    return Request("POST", path, json.dumps(body, ensure_ascii=False).encode())


class Generator:
    """Generates requests from a seed. `n_tokens` is the vocabulary's size."""

    def __init__(self, seed: int, n_tokens: int) -> None:
        self._random = random.Random(seed)
        self._n_tokens = n_tokens
        self._chats = Chats(seed, wrong=0.02)

    def request(self) -> Request:
        rng = self._random
        path, body = rng.choice(_KINDS)(self)
        request = post(path, body)
        if rng.random() < 0.04:
            data = self._broken(request.data or b"")
            return Request("POST", path, data)
        return request

    # ---- llama-server's own endpoints ----

    def tokenize(self) -> tuple[str, Any]:
        rng = self._random
        body: Any = {"content": self._content()}
        for name in "add_special", "parse_special", "with_pieces":
            if rng.random() < 0.4:
                body[name] = self._or_odd(rng.random() < 0.5, 0.1)
        if rng.random() < 0.03:
            del body["content"]
        return "/tokenize", self._or_odd(body, 0.02)

    def detokenize(self) -> tuple[str, Any]:
        ids = [self._id() for _ in range(self._random.choice((0, 1, 3, 8)))]
        body: Any = {"tokens": self._or_odd(ids, 0.05)}
        if self._random.random() < 0.03:
            body = {}
        return "/detokenize", self._or_odd(body, 0.02)

    def chat(self) -> tuple[str, Any]:
        paths = "/apply-template", "/v1/chat/completions/input_tokens"
        body = dict(self._chats.body())
        if self._random.random() < 0.05:
            name = self._random.choice(("logprobs", "top_logprobs", "stop", "n_predict"))
            body[name] = self._random.choice((True, False, None, 3))
        return self._random.choice(paths), self._or_odd(body, 0.01)

    def _content(self) -> Any:
        rng = self._random
        if rng.random() < 0.6:
            return self._or_odd(self._text(), 0.05)
        parts = (
            self._id() if rng.random() < 0.4 else self._text() for _ in range(rng.randrange(5))
        )
        return [self._or_odd(part, 0.03) for part in parts]

    def _id(self) -> Any:
        rng = self._random
        if rng.random() < 0.03:
            return rng.choice((*_NUMBERS, self._n_tokens, *_ODD))
        return rng.randrange(self._n_tokens)

    def _text(self) -> str:
        rng = self._random
        return "".join(rng.choice(_WORDS) for _ in range(rng.choice((1, 1, 2, 4, 12))))

    def _or_odd(self, value: Any, share: float = 0.02) -> Any:
        return self._random.choice(_ODD) if self._random.random() < share else value

    def _some(self, make: Callable[[], Any], most: int = 4) -> list[Any]:
        return [make() for _ in range(self._random.randrange(most + 1))]

    # ---- OpenAI's Responses API ----

    def responses(self) -> tuple[str, Any]:
        rng = self._random
        given = self._text() if rng.random() < 0.2 else self._some(self._item, 6)
        body: Any = {"input": self._or_odd(given)}
        if rng.random() < 0.3:
            body["instructions"] = self._or_odd(self._text(), 0.2)
        if rng.random() < 0.3:
            body["tools"] = self._or_odd(self._some(self._response_tool), 0.1)
        if rng.random() < 0.2:
            body["reasoning"] = self._or_odd({"effort": self._or_odd("low", 0.2)}, 0.2)
        if rng.random() < 0.05:
            body["previous_response_id"] = self._or_odd("resp_1", 0.5)
        if rng.random() < 0.1:
            body["max_output_tokens"] = self._or_odd(100)
        if rng.random() < 0.1:
            body["tool_choice"] = self._or_odd("auto", 0.3)
        if rng.random() < 0.03:
            del body["input"]
        path = rng.choice(("/v1/responses/input_tokens", "/responses/input_tokens"))
        return path, self._or_odd(body, 0.01)

    def _response_tool(self) -> Any:
        tool = self._random.choice((WEATHER, CALCULATE, BARE, NESTED))
        kind = self._random.choice(("function",) * 5 + ("web_search", "x"))
        return self._or_odd({"type": kind, **tool["function"]}, 0.05)

    def _item(self) -> Any:
        rng = self._random
        kind = rng.randrange(6)
        item: Any
        if kind <= 1:
            content = self._text() if rng.random() < 0.5 else self._some(self._input_part)
            role = rng.choice(("user", "user", "system", "developer", "assistant"))
            item = {"role": role, "content": content}
            if rng.random() < 0.5:
                item["type"] = "message"
        elif kind == 2:
            content = self._text() if rng.random() < 0.3 else self._some(self._output_part)
            item = {"type": "message", "role": "assistant", "content": content, "status": "done"}
        elif kind == 3:
            arguments = rng.choice(('{"city": "Rome"}', "{}", "", self._text()))
            item = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": arguments}
        elif kind == 4:
            output = self._text() if rng.random() < 0.6 else self._some(self._input_part)
            item = {"type": "function_call_output", "call_id": "c1", "output": output}
        else:
            content = self._some(lambda: {"type": "reasoning_text", "text": self._text()}, 2)
            item = {"type": "reasoning", "summary": [], "content": content}
        return self._damaged(item)

    def _input_part(self) -> Any:
        kind = self._random.choice(("input_text",) * 12 + ("input_image", "input_file", "text"))
        part: dict[str, Any] = {"type": kind, "text": self._or_odd(self._text())}
        if kind == "input_image":
            part["image_url"] = "data:image/png;base64,AAAA"
        return self._damaged(part)

    def _output_part(self) -> Any:
        if self._random.random() < 0.1:
            return self._damaged({"type": "refusal", "refusal": self._text()})
        return self._damaged({"type": "output_text", "text": self._text(), "annotations": []})

    def _damaged(self, value: dict[str, Any]) -> Any:
        """Returns the body, in some cases without a field or with an invalid one."""
        rng = self._random
        if rng.random() < 0.02:
            del value[rng.choice(sorted(value))]
        elif rng.random() < 0.02:
            value[rng.choice(sorted(value))] = rng.choice(_ODD)
        return self._or_odd(value, 0.01)

    # ---- Anthropic's Messages API ----

    def anthropic(self) -> tuple[str, Any]:
        rng = self._random
        body: Any = {
            "max_tokens": 100,
            "messages": self._or_odd(self._some(self._message, 5), 0.02),
        }
        if rng.random() < 0.5:
            body["system"] = self._or_odd(self._system(), 0.1)
        if rng.random() < 0.4:
            body["tools"] = self._or_odd(self._some(self._anthropic_tool, 3), 0.1)
        if rng.random() < 0.2:
            choice = rng.choice(("auto", "any", "tool", "none", "x"))
            body["tool_choice"] = self._or_odd({"type": choice, "name": "f"}, 0.1)
        if rng.random() < 0.2:
            thinking = {"type": "enabled", "budget_tokens": self._or_odd(1000, 0.2)}
            body["thinking"] = self._or_odd(thinking, 0.2)
        if rng.random() < 0.1:
            body["chat_template_kwargs"] = self._or_odd({"enable_thinking": False}, 0.3)
        if rng.random() < 0.1:
            body["metadata"] = self._or_odd({"user_id": "u"}, 0.3)
        if rng.random() < 0.02:
            del body["messages"]
        return "/v1/messages/count_tokens", self._or_odd(body, 0.01)

    def _system(self) -> Any:
        rng = self._random
        text = self._text()
        if rng.random() < 0.3:
            stamp = rng.choice(("a5145", "12345", "1234", "ab;de"))
            text = f"x-anthropic-billing-header: cc_version=2.1; cch={stamp};{text}"
        if rng.random() < 0.5:
            return text
        return [self._damaged({"type": "text", "text": text}) for _ in range(rng.randrange(3))]

    def _message(self) -> Any:
        rng = self._random
        content = self._text() if rng.random() < 0.4 else self._some(self._block)
        role = rng.choice(("user", "user", "assistant", "system"))
        return self._damaged({"role": role, "content": content})

    def _block(self) -> Any:
        rng = self._random
        kind = rng.randrange(12)
        block: dict[str, Any]
        if kind <= 4:
            block = {"type": "text", "text": self._text()}
            if rng.random() < 0.2:
                block["cache_control"] = {"type": "ephemeral"}
        elif kind <= 6:
            block = {"type": "thinking", "thinking": self._text(), "signature": "s"}
        elif kind <= 8:
            given = {"city": self._text(), "n": rng.choice((1, 2.5, None, [1, {"a": 1e22}]))}
            block = {"type": "tool_use", "id": "c1", "name": "f", "input": given}
        elif kind <= 10:
            content = self._text() if rng.random() < 0.5 else self._some(self._result_block)
            block = {"type": "tool_result", "tool_use_id": "c1", "content": content}
        elif rng.random() < 0.3:
            block = self._image()
        else:
            block = {"type": rng.choice(("redacted_thinking", "document", "x")), "text": "t"}
        return self._damaged(block)

    def _result_block(self) -> Any:
        if self._random.random() < 0.1:
            return self._damaged(self._image())
        return self._damaged({"type": "text", "text": self._text()})

    def _image(self) -> dict[str, Any]:
        source = self._random.choice(
            (
                {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                {"type": "url", "url": "https://example.org/a.png"},
                {"type": "file", "file_id": "f"},
            )
        )
        return {"type": "image", "source": dict(source)}

    def _anthropic_tool(self) -> Any:
        function = self._random.choice((WEATHER, CALCULATE, BARE, NESTED))["function"]
        tool = {"name": function["name"], "description": function.get("description", "")}
        if "parameters" in function:
            tool["input_schema"] = function["parameters"]
        return self._damaged(tool)

    # ---- malformed bytes ----

    def _broken(self, data: bytes) -> bytes:
        """Changes bytes of the data, so that it probably isn't JSON any more."""
        rng = self._random
        at = rng.randrange(len(data) + 1)
        return rng.choice(
            (
                data[:at],
                data + b"}",
                data[:at] + b"\xff" + data[at:],
                data[:at] + b"\x00" + data[at:],
                b"\xef\xbb\xbf" + data,
                data.replace(b'"', b"'"),
                data.replace(b":", b": NaN,", 1),
                data.replace(b"1", b"1e999"),
                data.replace(b"{", b'{"\\ud800": 1,', 1),
                data[:at] + data[at + 1 :],
                b"  " + data + b"\n",
            )
        )


_KINDS = (
    Generator.tokenize,
    Generator.tokenize,
    Generator.detokenize,
    Generator.chat,
    Generator.chat,
    Generator.responses,
    Generator.anthropic,
)
