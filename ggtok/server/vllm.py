"""The endpoints of vLLM. /tokenize and /detokenize share a path with llama-server's."""

from __future__ import annotations

from typing import Any

from ggtok import Tokenizer
from ggtok.chat import api, media
from ggtok.chat.options import ChatOptions
from ggtok.errors import GGTokError
from ggtok.native import chat_calls
from ggtok.server import model_facts
from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.fields import anything, optional, text_field, truth, typed_field
from ggtok.server.refusals import NotAlone, NotReady, Refusal

LONGEST_TEMPLATE = 1 << 18  # characters of a template in a request; models' have up to 30,000
_TYPES = {404: "NotFoundError", 400: "BadRequestError", 501: "NotImplementedError"}


def error_body(refusal: Refusal) -> dict[str, Any]:
    return {
        "error": {
            "message": refusal.message,
            "type": _TYPES.get(refusal.status, "InternalServerError"),
            "param": None,
            "code": refusal.status,
        }
    }


def tokenize(call: Call) -> object:
    try:
        return _tokenize(call)
    except Refusal as e:
        e.body = error_body
        raise
    except GGTokError as e:
        refusal = Refusal(str(e))
        refusal.body = error_body
        raise refusal from e


def _tokenize(call: Call) -> object:
    body = call.body
    tok = call.model().tok
    special = truth(body, "add_special_tokens", "prompt" in body)
    parts: list[media.Part] = []
    if "prompt" in body:
        prompt = typed_field(body, "prompt", str)
    else:
        prompt = _prompt(call, tok)
        parts = media.parts_of(body["messages"], "transformers")
    ids = tok.encode(prompt, add_special=special, parse_special=True)
    answer = {
        "count": len(ids),
        "max_model_len": model_facts.context_length(tok),
        "tokens": ids,
        "token_strs": _token_texts(tok, ids) if truth(body, "return_token_strs", False) else None,
    }
    if not parts:
        return answer
    if call.image_tokens is None:
        return {**answer, "uncounted_parts": len(parts)}
    return {**answer, "count": len(ids) + media.tokens(parts, call.image_tokens)}


def _prompt(call: Call, tok: Tokenizer) -> str:
    """Returns the prompt as transformers renders it, which is what vLLM uses."""
    if not call.wait:
        raise NotReady  # rendering a template may take long
    body = call.body
    generation = truth(body, "add_generation_prompt", True)
    continues = truth(body, "continue_final_message", False)
    if continues and body.get("add_generation_prompt"):
        raise Refusal(
            "Cannot set both `continue_final_message` and `add_generation_prompt` to True."
        )
    messages = [_message(message) for message in typed_field(body, "messages", list)]
    return render_prompt(
        call,
        tok,
        messages,
        tools=optional(body, "tools", list),
        add_generation_prompt=generation and not continues,
        continue_final_message=continues,
        template=optional(body, "chat_template", str),
        chat_template_kwargs=optional(body, "chat_template_kwargs", dict),
    )


def render_prompt(call: Call, tok: Tokenizer, messages: list[Any], **options: Any) -> str:
    """Returns the prompt of messages as transformers renders it, with these Options."""
    made = ChatOptions(like="transformers", **options)
    keep = keeps_template(call, tok, made.template)
    prompt: str = api.ChatCall(tok._loaded, made, keep=keep).run_one(messages, chat_calls.TEXT)[0]
    return prompt


def keeps_template(call: Call, tok: Tokenizer, template: str | None) -> bool:
    """Whether to cache the compiled template. A client's template is compiled for its request
    only.

    Raises:
        NotAlone: a client's template, which may take seconds, must be used alone.
        Refusal: it is too long.
    """
    if template is None or template in tok.chat_templates:
        return True
    if len(template) > LONGEST_TEMPLATE:
        raise Refusal(
            f"the template has {len(template)} characters; at most {LONGEST_TEMPLATE} are allowed"
        )
    if not call.alone:
        raise NotAlone
    return False


def _message(message: Any) -> Any:
    """Converts a message to the form in which vLLM passes it to templates, where images, audio and
    video are reduced to their kinds."""
    content = anything(message, "content")
    if not isinstance(content, list):
        return message
    kinds = {**media.KINDS, "audio_url": "audio"}
    parts = [
        {"type": kinds[name]} if (name := text_field(part, "type")) in kinds else part
        for part in content
    ]
    return {**message, "content": parts}


def _token_texts(tok: Tokenizer, ids: list[int]) -> list[str]:
    """Returns the tokens' texts as the vocabulary spells them."""
    known = {id: tok.token_text(id).decode("utf-8", "replace") for id in set(ids)}
    return [known[id] for id in ids]


def tokenizer_info(call: Call) -> object:
    """Returns the fields of tokenizer_config.json that a GGUF file has."""
    tok = call.model().tok
    tokens = {
        f"{name}_token": model_facts.piece(tok, getattr(tok, f"{name}_id"))
        for name in ("bos", "eos", "unk", "pad", "sep", "mask")
    }
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **tokens,
        "add_bos_token": tok.add_bos,
        "add_eos_token": tok.add_eos,
        "chat_template": tok.chat_template,
        "model_max_length": model_facts.context_length(tok),
        "vocab_size": tok.n_tokens,
    }


ENDPOINTS = (Endpoint("GET", ("/tokenizer_info",), tokenizer_info, errors=error_body),)
