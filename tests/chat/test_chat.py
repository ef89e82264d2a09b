"""The chat functions under both llama.cpp's and transformers' rules: errors, results, injection and
masks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ggtok
from tests.chat.made import templated
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")

Load = Callable[[str], ggtok.Tokenizer]

CHATML = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""
MARKED = """\
{%- for message in messages %}
    {{- '<|im_start|>' ~ message.role ~ '\\n' }}
    {%- if message.role == 'assistant' %}
        {%- generation %}{{ message.content }}<|im_end|>{% endgeneration %}
    {%- else %}
        {{- message.content }}<|im_end|>
    {%- endif %}
    {{- '\\n' }}
{%- endfor %}"""
HI = [{"role": "user", "content": "Hi"}]
LIKES = ["llama.cpp", "transformers"]


# ---- arguments ----


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"messages": "Hi"}, ggtok.InvalidTypeError, "messages must be a list of mappings"),
        ({"messages": ["Hi"]}, ggtok.InvalidTypeError, "messages[0] must be a mapping, not str"),
        (
            {"messages": [{"role": "user", "content": [{"image": b""}]}]},
            ggtok.InvalidTypeError,
            "messages[0]['content'][0]['image']: must be str",
        ),
        ({"messages": [{1: 2}]}, ggtok.InvalidTypeError, "messages[0]: a key is int, not str"),
        ({"tools": [print]}, ggtok.InvalidTypeError, "get_json_schema"),
        ({"tools": {"a": 1}}, ggtok.InvalidTypeError, "tools must be a list of JSON schemas"),
        ({"like": "vllm"}, ggtok.InvalidValueError, "like must be 'llama.cpp' or 'transformers'"),
        ({"x": object(), "template": "{{ x }}"}, ggtok.InvalidTypeError, "x: must be str"),
        ({"template": 3}, ggtok.InvalidTypeError, "template must be str"),
        (
            {"template": "rag"},
            ggtok.InvalidValueError,
            "'rag' is neither a template nor the name of one of the file's ('default')",
        ),
        (
            {"continue_final_message": True, "add_generation_prompt": True},
            ggtok.InvalidValueError,
            "add_generation_prompt=False",
        ),
        ({"template": "{{"}, ggtok.TemplateError, "line 1: "),
        ({"template": "\n{% for %}"}, ggtok.TemplateError, "line 2: "),
        ({"template": "a\n\n{{ raise_exception('No!') }}"}, ggtok.TemplateError, "line 3: No!"),
        ({"template": "{{ 1 + 'a' }}"}, ggtok.TemplateError, "line 1: unsupported operand"),
        ({"template": "{{ a.b.c }}"}, ggtok.TemplateError, "'a' is undefined"),
        ({"template": "{{ [1, 'a'] | select('gt', 0) | list }}"}, ggtok.TemplateError, "'>' not"),
        ({"template": "{{ ['a'] | sum(start='') }}"}, ggtok.TemplateError, "can't sum strings"),
        ({"template": "{{ '%s' | format(1, a=2) }}"}, ggtok.TemplateError, "keyword arguments"),
        # Features of jinja2 that ggtok's engine lacks.
        ({"template": "{{ '{a}'.format_map({}) }}"}, ggtok.TemplateError, "'format_map' is undef"),
        ({"template": "{{ 'a'.expandtabs(8) }}"}, ggtok.TemplateError, "'expandtabs' is undef"),
        ({"template": "{{ dict.fromkeys('ab', 1) }}"}, ggtok.TemplateError, "'fromkeys' is undef"),
        (
            {"template": "{% set n = namespace() %}{% set n.n = n %}{{ n }}"},
            ggtok.TemplateError,
            "nests or recurses too deeply",
        ),
        ({"template": "{{ ','.join(['a', 1]) }}"}, ggtok.TemplateError, "item 1: expected str"),
    ],
)
def test_wrong_arguments_and_templates_raise_errors(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    tok = templated("bpe-qwen2", default=CHATML)
    arguments = {"messages": HI, "like": "transformers", **arguments}
    for method in (tok.apply_chat_template, tok.encode_chat):
        with pytest.raises(error) as caught:
            method(**arguments)
        assert message in str(caught.value)
        assert isinstance(caught.value, ggtok.GGTokError)


def test_cyclic_values_raise_errors() -> None:
    tok = templated("bpe-qwen2", default=CHATML)
    message: dict[str, Any] = {"role": "user", "content": "x"}
    message["self"] = message
    with pytest.raises(ggtok.InvalidValueError, match="nested more than"):
        tok.apply_chat_template([message], like="transformers")
    with pytest.raises(ggtok.InvalidValueError, match="nested more than"):
        tok.apply_chat_template(HI, template="{{ x }}", x=message)


@pytest.mark.parametrize("like", LIKES)
def test_arguments_are_not_modified(like: Any) -> None:
    tok = templated("bpe-qwen2", default=CHATML)
    messages = [{"role": "assistant", "content": [{"type": "text", "text": "a"}], "x": None}]
    before = repr(messages)
    tok.apply_chat_template(
        messages,
        template="{{ messages[0].content[0].text }}",
        like=like,
        add_generation_prompt=False,
        continue_final_message=True,
    )
    assert repr(messages) == before


def test_chat_needs_no_other_package() -> None:
    code = (
        "import sys, ggtok\n"
        "tok = ggtok.load(sys.argv[1])\n"
        "before = set(sys.modules)\n"
        "for like in ('llama.cpp', 'transformers'):\n"
        "    tok.encode_chat([{'role': 'user', 'content': 'x'}], template='{{ 1 }}', like=like)\n"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})\n"
    )
    argv = [sys.executable, "-c", code, str(fixture("bpe-gpt2"))]
    completed = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert set(completed.stdout.split()) <= {"ggtok"} | sys.stdlib_module_names


# ---- results of templates ----


@pytest.mark.parametrize(
    "expression",
    [
        "[1, 2, 3] | batch(2, 0) | list",
        "[1, 2, 3] | slice(2) | list",
        "'ab' | center(6)",
        "1.25 | round(1, 'floor')",
        "'one two three' | truncate(9, leeway=0)",
        "messages | join(', ', attribute='role')",
        "'a\\nb\\n\\nc' | indent(2)",
        "'a\\nb\\n\\nc' | indent('> ', true, true)",
        "'%s has %d%%' | format('it', 3)",
        "'{} {!r} {:>4} {:5}.'.format('a', 'b', 3, 4)",
        "'{a} {b:.2f}'.format(a=messages[0].content, b=1.5)",
        "('{} ' ~ messages[0].content).format(1)",
        "','.join(['a', 'b'])",
        "'stra\u00dfe' | upper",
        "[1, 2.5] | sum",
        "[{'a': [1]}, {'a': [2]}] | sum('a', start=[0])",
        "[{'a': 1}, {}, {'a': 0}] | groupby('a', default=1)",
        "messages | map(attribute='role') | map('upper') | list",
        "[1, 2] | select('gt', 0) | first",
        "'lazy' if [1] | select('odd') | reject('odd') and [] | map('abs') is not sequence",
        "'abc'[::-1]",
    ],
)
def test_expressions_equal_jinja2s(expression: str, load_fixture: Load) -> None:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    template = f"{{{{ {expression} }}}}"
    expected = ImmutableSandboxedEnvironment().from_string(template).render(messages=HI)
    tok = load_fixture("bpe-qwen2")
    assert tok.apply_chat_template(HI, template=template, like="transformers") == expected


def test_deeply_nested_lazy_filters_raise_an_error(load_fixture: Load) -> None:
    """Deeply nested filters are an error, as in jinja2, where generators exceed Python's recursion
    limit."""
    template = (
        "{% set ns = namespace(x=['a']) %}{% for i in range(20000) %}"
        "{% set ns.x = ns.x | map('string') %}{% endfor %}{{ ns.x | first }}"
    )
    tok = load_fixture("bpe-qwen2")
    with pytest.raises(ggtok.TemplateError, match="too deeply"):
        tok.apply_chat_template(HI, template=template, like="transformers")
    template = template.replace("20000", "300")
    assert tok.apply_chat_template(HI, template=template, like="transformers") == "a"


# ---- ids ----


# Features that only the transformers dialect has.
NOT_IN_LLAMA = ("'%s' %", "'{}'.format", "| list", "'%c%c")


@pytest.mark.parametrize(
    "template",
    [
        "{{ messages[0].content }}",
        "{{ messages[0].content | replace('-', '') }}",
        "{{ messages[0].content.replace('-', '') }}",
        "{{ messages[0].content | upper | lower }}",
        "{{ messages[0].content | tojson }}",
        "{{ messages[0].content.split('-') | join }}",
        "{{ messages[0].content[:5] }}{{ messages[0].content[5:] }}",
        "{{ '%s' % messages[0].content }}{{ '{}'.format(messages[0].content) }}",
        "{{ messages[0].content | list | join }}{{ messages[0].content | indent(2) }}",
        "{{ '<|' ~ messages[0].content[2:] }}",  # half of the token's text is the template's
        "{{ messages[0].content[:9] ~ 'nd|>' }}",
        "{% set x %}{{ messages[0].content }}{% endset %}{{ x | trim }}",
        "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(messages[0].content) }}",
        "{{ messages[0].content | safe + '' }}{{ '' + messages[0].content | safe }}",
        "{{ ('%c%cim_end%c%c') % (60, 124, 124, 62) }}",
    ],
)
@pytest.mark.parametrize("content", ["<|im_end|>", "<|im-_e-nd|>"])
@pytest.mark.parametrize("like", LIKES)
def test_no_content_becomes_a_control_token(template: str, content: str, like: Any) -> None:
    tok = templated("bpe-qwen2", default=template)
    messages = [{"role": "user", "content": content}]
    if like == "llama.cpp" and any(text in template for text in NOT_IN_LLAMA):
        with pytest.raises(ggtok.TemplateError):
            tok.encode_chat(messages)
        return
    ids = tok.encode_chat(messages, like=like)
    assert not any(tok.is_control(id) for id in ids)
    assert tok.decode(ids) == tok.apply_chat_template(messages, like=like)


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("{{ '<|reserved_special_token_{}|>'.format(0) }}", True),
        ("{{ '<|reserved_special_token_{}|>'.format('0') }}", True),
        ("{{ '<|reserved_special_token_{!s}|>'.format('0') }}", True),
        ("{{ '<|reserved_special_token_%d|>' % 0 }}", True),
        ("{{ '<|reserved_special_token_{}|>'.format(messages[0].content) }}", False),
        ("{{ '<|reserved_special_token_{!s}|>'.format(messages[0].content) }}", False),
        ("{{ (messages[0].content ~ '<|eot_id|>{}').format('') }}", True),
        # The text is the template's, but the operation doesn't track origins.
        ("{{ '{!r}'.format('<|eot_id|>') }}", False),
    ],
)
def test_formatted_control_tokens_need_the_templates_origin(
    template: str, found: bool, load_fixture: Load
) -> None:
    tok = load_fixture("bpe-llama3")
    messages = [{"role": "user", "content": "0"}]
    text = tok.apply_chat_template(messages, template=template, like="transformers")
    ids = tok.encode_chat(messages, template=template, like="transformers")
    assert ids == tok.encode(text, parse_special=found)
    assert ids != tok.encode(text, parse_special=not found)


def test_ids_of_plain_text_are_those_without_parsing(load_fixture: Load) -> None:
    tok = load_fixture("bpe-qwen2")
    text = "a <|im_end|> b <|im_start|>"
    ids = tok.encode_chat([{"role": "user", "content": text}], template="{{ messages[0].content }}")
    assert ids == tok.encode(text)


def test_user_defined_tokens_are_found_everywhere(load_fixture: Load) -> None:
    tok = load_fixture("bpe-qwen2")
    attrs = {id: tok.token_attr(id) for id in range(tok.n_tokens)}
    some = next(id for id, attr in attrs.items() if ggtok.TokenAttr.USER_DEFINED in attr)
    content = tok.token_text(some).decode()
    ids = tok.encode_chat(
        [{"role": "user", "content": content}], template="{{ messages[0].content }}"
    )
    assert ids == [some]


@given(st.data())
@pytest.mark.parametrize("name", ["bpe-qwen2", "bpe-overlap", "spm-phi3", "bpe-jina", "wpm"])
def test_trusted_ranges(name: str, load_fixture: Load, data: st.DataObject) -> None:
    """If all text is trusted, the ids are those with parse_special=True; if none is, those with
    parse_special=False. Otherwise, each special token is inside a trusted range, and raw text in
    these ranges doesn't contain a special token's text."""
    tok = load_fixture(name)
    special = ggtok.TokenAttr.CONTROL | ggtok.TokenAttr.UNKNOWN
    texts = {
        id: tok.token_text(id).decode("utf-8", "replace")
        for id in range(tok.n_tokens)
        if tok.token_attr(id) & special
    }
    words = st.one_of(st.sampled_from(sorted(texts.values())), st.text("ab <|>s/", max_size=4))
    text = "".join(data.draw(st.lists(words, max_size=8)))
    raw, n = text.encode(), len(text.encode())
    marks = sorted(data.draw(st.sets(st.integers(0, n), max_size=6)))
    ranges = list(zip(marks[::2], marks[1::2], strict=False))
    encode = tok._loaded.encode_parts
    assert encode(text, 3, [(0, n)] if n else [])[0] == tok.encode(text, parse_special=True)
    assert encode(text, 3, [])[0] == tok.encode(text)
    ids, parts = encode(text, 2, ranges)
    at = 0
    for pos, size, first, n_ids, is_special in parts:
        assert first == at and pos + size <= n
        at += n_ids
        if is_special and ids[first] in texts:
            assert any(a <= pos and pos + size <= b for a, b in ranges)
        if not is_special:
            for a, b in ranges:
                shared = raw[max(a, pos) : max(a, pos, min(b, pos + size))].decode(
                    "utf-8", "replace"
                )
                assert not any(t in shared for t in texts.values())
    assert at == len(ids)


@pytest.mark.parametrize("ranges", [[(1, 1)], [(0, 2), (2, 3)], [(2, 3), (0, 1)], [(0, 99)]])
def test_wrong_ranges_raise_errors(ranges: list[tuple[int, int]], load_fixture: Load) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="trusted range"):
        load_fixture("bpe-qwen2")._loaded.encode_parts("abcdef", 3, ranges)


# ---- masks for the assistant's tokens ----


@pytest.mark.parametrize("name", ["bpe-qwen2", "spm-bytes", "spm", "wpm"])
@pytest.mark.parametrize("like", LIKES)
def test_the_mask_covers_the_assistants_tokens(name: str, like: Any, load_fixture: Load) -> None:
    tok = load_fixture(name)
    messages = [
        *HI,
        {"role": "assistant", "content": "né  and so"},
        *HI,
        {"role": "assistant", "content": ""},
    ]
    if name == "wpm":  # WPM isn't supported, because its tokens don't show the original text
        with pytest.raises(ggtok.InvalidValueError, match="WPM"):
            tok.encode_chat(messages, template=MARKED, like=like, return_assistant_mask=True)
        return
    options: dict[str, Any] = {
        "template": MARKED,
        "like": like,
        "add_generation_prompt": False,
        "continue_final_message": False,
    }
    ids, mask = tok.encode_chat(messages, return_assistant_mask=True, **options)
    assert ids == tok.encode_chat(messages, **options)
    assert len(mask) == len(ids) and {type(m) for m in mask} == {bool}
    spoken = [tok.token_to_piece(id) for id, m in zip(ids, mask, strict=True) if m]
    silent = [tok.token_to_piece(id) for id, m in zip(ids, mask, strict=True) if not m]
    # Compare without spaces, since SPM adds some.
    assert b"".join(spoken).decode().replace(" ", "") == "néandso<|im_end|><|im_end|>"
    assert "and" not in b"".join(silent).decode()


def test_a_token_on_the_border_is_the_assistants(load_fixture: Load) -> None:
    tok = load_fixture("bpe-gpt2")
    id = next(i for i in range(300, 400) if tok.token_to_piece(i).isalpha())
    word = tok.token_to_piece(id).decode()
    assert tok.encode(word) == [id] and len(word) > 1
    template = f"{{{{ '{word[0]}' }}}}{{% generation %}}{word[1:]}{{% endgeneration %}}"
    for like in LIKES:
        options: Any = {"template": template, "like": like, "return_assistant_mask": True}
        assert tok.encode_chat(HI, **options) == ([id], [True])


def test_masks_cover_macros_and_captured_text(load_fixture: Load) -> None:
    tok = load_fixture("bpe-gpt2")
    template = (
        "{% macro f(x) %}({% generation %}{{ x }}{% endgeneration %}){% endmacro %}"
        "{% set y %}{{ f('ab') }}{% endset %}{{ 'no' ~ y ~ f('cd') }}"
    )
    ids, mask = tok.encode_chat(HI, template=template, return_assistant_mask=True)
    assert tok.decode(ids) == "no(ab)(cd)"
    assert tok.decode([id for id, m in zip(ids, mask, strict=True) if m]) == "abcd"
