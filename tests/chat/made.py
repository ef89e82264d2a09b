"""Small templates for features of llama-server that llama.cpp's own templates don't use."""

from __future__ import annotations

import ggtok
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

# Writes roles, reasoning, contents and calls. Some rows of TEMPLATES change parts of this text.
_PLAIN = """\
{%- for m in messages -%}
<|{{ m.role }}|>
{%- if m.reasoning_content %}<r>{{ m.reasoning_content }}</r>{% endif -%}
{{- m.content }}
{%- for c in m.tool_calls or [] %}[{{ c.function.name }} {{ c.function.arguments }}]{% endfor -%}
<end>
{% endfor -%}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
# Writes every field that a handler may set, so that its changes are visible.
_ALL = """\
{%- for m in messages -%}
({{ m.role }}|{{ m.content | tojson }}|{{ m.reasoning_content }}|{{ m.thinking }}|
{{- m.tool_responses | tojson if m.tool_responses else '' }}
{%- for c in m.tool_calls or [] -%}
[{{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}]
{%- endfor -%})
{% endfor -%}
{{- enable_thinking }}|{{ reasoning_effort }}|
{{- response_format | tojson if response_format else '' }}
{%- if add_generation_prompt %}(assistant|{% endif %}"""


def _marked(*texts: str, body: str = _ALL) -> str:
    """Returns a template with these texts in a comment. Handlers find its family by such texts."""
    return "{#- " + " ".join(texts) + " -#}\n" + body


def _thinking(on: str, off: str, before: str = "", answer: str = "{{ m.content }}") -> str:
    """Returns a template whose generation prompt depends on enable_thinking."""
    return (
        before
        + "{%- for m in messages -%}<|{{ m.role }}|>"
        + answer
        + "<end>\n{% endfor -%}{%- if add_generation_prompt %}<|assistant|>\n"
        + "{%- if enable_thinking %}"
        + on
        + "{% else %}"
        + off
        + "{% endif %}{% endif %}"
    )


_REASON = (
    "{% if m.reasoning_content %}BEFORE{{ m.reasoning_content }}AFTER{% endif %}{{ m.content }}"
)

TEMPLATES: dict[str, str] = {
    "chatml": "chatml",
    "plain": _PLAIN,
    "carriage returns": _PLAIN.replace("\n", "\r\n") + "\r\n",
    "nothing": "{#- #}nothing of the messages",
    "content only": "{% for m in messages %}{{ m.content }}{% endfor %}",
    "typed": "{% for m in messages %}{% for p in m.content %}{{ p.text }};{% endfor %}{% endfor %}",
    "typed or string": (
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}{{ p.type }}:{{ p.text }};{% endfor %}{% endif %}{% endfor %}"
    ),
    "selected": (
        "{% for m in messages %}"
        "{{ m.content | selectattr('type', 'equalto', 'text') | list | length }}{% endfor %}"
    ),
    "no system": (
        "{% for m in messages %}{% if m.role != 'system' %}"
        "{{ m.role }}: {{ m.content }}\n{% endif %}{% endfor %}"
    ),
    "refuses system": (
        "{% for m in messages %}"
        "{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "{{ m.role }}: {{ m.content }}\n{% endfor %}"
    ),
    "string arguments": (
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{{ c.function.arguments + '!' }}{% endfor %}{% endfor %}"
    ),
    "object arguments": (
        "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{% for k, v in c.function.arguments | items %}{{ k }}={{ v }};{% endfor %}"
        "{% endfor %}{% endfor %}"
    ),
    "tools": "{{ tools | tojson if tools else 'none' }}" + _PLAIN,
    "all": _ALL,
    "whole message": (
        "{% for m in messages %}{{ m | tojson }}\n{% endfor %}{{ tools | tojson if tools else 0 }}"
    ),
    "dates": "{{ date_string }} {{ datetime }}" + _PLAIN,
    "special tokens": "{{ bos_token }}" + _PLAIN + "{{ eos_token }}",
    "efforts": "{{ reasoning_effort }} {{ reasoning_strength }} {{ preserve_thinking }} "
    "{{ clear_thinking }} "
    "{{ truncate_history_thinking }} {{ drop_thinking }} {{ preserve_reasoning }}" + _PLAIN,
    "only without a prompt": (
        "{% if not add_generation_prompt %}{{ raise_exception('prompt') }}{% endif %}" + _PLAIN
    ),
    "only with tools": "{% if not tools %}{{ raise_exception('tools') }}{% endif %}" + _PLAIN,
    "trimmed": _marked("You have access to the following functions in JSONSchema format"),
    # families that are recognized by texts in the source
    "llm-jp": _marked("chat_format=llm-jp-harmony-v1"),
    "harmony": _marked("<|channel|>") + "<|return|>{% if not add_generation_prompt %}x{% endif %}",
    "ministral": _marked("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"),
    "muse": _marked("<atem:function_calls>", "<|eom|>"),
    "functionary": _marked(">>>all", ">>>${recipient}"),
    "kimi k2": _marked("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
    "kimi k3": _marked("<|open|>", "<|close|>", "<|end_of_msg|>"),
    "k2 horizon": _marked("<|ifm|im_start|>", "<ifm|tool_calls>"),
    "k2 horizon, not thinking": _marked("<|ifm|im_start|>", "<ifm|tool_calls>", body=_PLAIN),
    "ling": _marked("<role>ASSISTANT</role>", "<arg_key>"),
    "cohere": _marked("<|START_TEXT|>", "<|START_ACTION|>"),
    "lfm": _marked("<|tool_list_start|>", "<|tool_list_end|>"),
    "lfm 2.5": _marked("List of tools: ["),
    "gigachat": _marked("<|role_sep|>", "<|message_sep|>"),
    "minimax": _marked("]<]minimax[>[", "<tool_call>", "<invoke name="),
    "deepseek 3.2": _marked("dsml_token", "DSML", "function_calls"),
    "deepseek 4": _marked("dsml_token", "DSML", "tool_calls"),
    "gemma": "{#- OpenAI Chat Completions: '<|tool_call>call:' -#}" + _ALL + "<turn|>\n\n",
    "gemma, older": _marked("'<|tool_call>call:'") + "<turn|>\n\n",
    "minicpm": _marked("Tool usage guidelines:", '<function name="', '<param name="'),
    "translate gemma": _marked("[source_lang_code]", "[target_lang_code]"),
    "qwen coder": _marked("<tool_call>", "<function=", "<parameter="),
    "qwen thinker": _marked("<tool_call>", "<function=", "<parameter=", "<think>"),
    # reasoning that is found by comparing renderings
    "thinks in tags": _REASON.replace("BEFORE", "<t>\n")
    .replace("AFTER", "\n</t>\n\n")
    .join(("{%- for m in messages -%}<|{{ m.role }}|>", "<end>\n{% endfor %}")),
    "thinks in brackets": _thinking(
        "", "", answer=_REASON.replace("BEFORE", "[T] ").replace("AFTER", " [/T] ")
    ),
    "thinks to an end": _thinking(
        "", "", answer=_REASON.replace("BEFORE", "").replace("AFTER", "</t>")
    ),
    "thinks with words": _thinking(
        "", "", answer=_REASON.replace("BEFORE", "Thought: ").replace("AFTER", " Answer: ")
    ),
    "opens": _thinking("<think>\n", ""),
    "opens and closes": _thinking("<think>\n", "<think>\n\n</think>\n\n"),
    "closes": _thinking("", "<think></think>\n"),
    "closes alone": _thinking("", "</think>"),
    "other prompts": _thinking("A", "B"),
    "says so before": _thinking(
        "", "[A][/A]", before="{{ 'on' if enable_thinking else 'off' }}" + "." * 80
    ),
    "unclosed": _thinking(
        "<think", "[x<y", answer=_REASON.replace("BEFORE", "<a [b] ").replace("AFTER", "]>")
    ),
    "unicode": _thinking(
        "◁think▷",
        "◁think▷◁/think▷",
        answer=_REASON.replace("BEFORE", "◁think▷").replace("AFTER", "◁/think▷"),
    ),
    "thinks beside calls": _thinking(
        "",
        "",
        answer="{% if m.tool_calls %}<t>{{ m.reasoning_content }}</t>{% for c in m.tool_calls %}"
        "{{ c.function.name }}{% endfor %}{% endif %}{{ m.content }}",
    ),
    "old qwen": "{% set content = '' %}{#- content.split('</think>') -#}"
    + _PLAIN.replace("reasoning_content", "r"),
    "granite": _marked(
        "Write your thoughts between <think></think> and write your response between",
        "<response></response>",
        body=_PLAIN,
    ),
    "nemotron": _marked(
        "<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>", body=_PLAIN
    ),
    "laguna": _marked("laguna_glm_thinking", body=_PLAIN.replace("<r>", "<r>\n")),
    "harmony patch": (
        '{%- if "<|channel|>analysis<|message|>" in message.content or '
        '"<|channel|>final<|message|>" in message.content %}{{ raise_exception("x") }}{% endif %}'
        + _PLAIN
    ),
    "mistral patch": (
        "[TOOL_CALLS]{%- for message in messages %}"
        "{%- if (message['content'] is none or message['content'] == '' or "
        "message['content']|length == 0) and (message['tool_calls'] is not defined or "
        "message['tool_calls'] is none or message['tool_calls']|length == 0) %}"
        '{{ raise_exception("x") }}{% endif %}{{ message.content }}{% endfor %}'
    ),
}


def templated(name: str = "bpe-qwen2", **templates: str) -> ggtok.Tokenizer:
    """Returns a tokenizer for a small vocabulary with chat templates under these names."""
    gguf = GGUF.read(fixture(name))
    for key, source in templates.items():
        suffix = "" if key == "default" else f".{key}"
        gguf.set(f"tokenizer.chat_template{suffix}", source, "str")
    return ggtok.load(gguf.dump())
