"""apply_chat_template and encode_chat: arguments, continuing, BOS, injection, masks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ggtok
from tests.patch import GGUF
from tests.vocabularies import fixture

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


def templated(name: str, **templates: str) -> ggtok.Tokenizer:
    """A small vocabulary with chat templates."""
    gguf = GGUF.read(fixture(name))
    for key, source in templates.items():
        suffix = "" if key == "default" else f".{key}"
        gguf.set(f"tokenizer.chat_template{suffix}", source, "str")
    return ggtok.load(gguf.dump())


# ---- arguments ----


def test_templates_by_name() -> None:
    tok = templated("bpe-qwen2", default="d", tool_use="{{ tools | tojson }}", rag="r")
    assert tok.apply_chat_template(HI) == "d"
    assert tok.apply_chat_template(HI, tools=[{"a": "<é>"}]) == '[{"a": "<é>"}]'
    assert tok.apply_chat_template(HI, tools=[], template="default") == "d"
    assert tok.apply_chat_template(HI, template="rag") == "r"
    assert tok.apply_chat_template(HI, template="{{ messages[0].content }}!") == "Hi!"


def test_variables(load_fixture: Load) -> None:
    tok = load_fixture("bpe-kimi")

    def show(template: str, **kwargs: Any) -> str:
        return tok.apply_chat_template(HI, template=template, **kwargs)

    assert show("{{ bos_token }}{{ eos_token }}{{ unk_token is defined }}") == "[BOS][EOS]False"
    assert show("{{ bos_token }}", bos_token="<x>") == "<x>"
    assert show("{{ tools is none }} {{ documents is none }}") == "True True"
    assert show("{{ documents[0].title }}", documents=[{"title": "T"}]) == "T"
    assert show("{{ strftime_now('%d %b %Y') }}", clock=lambda: datetime(2031, 5, 6)) == (
        "06 May 2031"
    )
    assert show("{{ x }}{{ x[1][0] }}", x=(1, ["a", None])) == "(1, ['a', None])a"
    assert show("{{ strftime_now('%Y') }}") == str(datetime.now().year)
    tok = load_fixture("test")
    assert tok.bos_id is None and tok.eos_id is None
    assert show("{{ bos_token ~ eos_token }}{{ bos_token is string }}") == "True"


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"messages": "Hi"}, ggtok.InvalidTypeError, "messages must be a list of mappings"),
        ({"messages": ["Hi"]}, ggtok.InvalidTypeError, "messages[0] must be a mapping, not str"),
        (
            {"messages": [{"role": "user", "content": [{"image": b""}]}]},
            ggtok.InvalidTypeError,
            "messages[0]['content'][0]['image']: templates take str",
        ),
        ({"messages": [{1: 2}]}, ggtok.InvalidTypeError, "messages[0]: a key is int, not str"),
        ({"tools": [print]}, ggtok.InvalidTypeError, "get_json_schema"),
        ({"tools": {"a": 1}}, ggtok.InvalidTypeError, "tools must be a list of JSON schemas"),
        ({"x": object()}, ggtok.InvalidTypeError, "x: templates take str"),
        ({"template": 3}, ggtok.InvalidTypeError, "template must be str"),
        (
            {"template": "rag"},
            ggtok.InvalidValueError,
            "no chat template 'rag' (it has: 'default')",
        ),
        ({"continue_final_message": True}, ggtok.InvalidValueError, "add_generation_prompt=False"),
        ({"template": "{{"}, ggtok.TemplateError, "line 1: "),
        ({"template": "\n{% for %}"}, ggtok.TemplateError, "line 2: "),
        ({"template": "a\n\n{{ raise_exception('No!') }}"}, ggtok.TemplateError, "line 3: No!"),
        ({"template": "{{ 1 + 'a' }}"}, ggtok.TemplateError, "line 1: TypeError: "),
        ({"template": "{{ a.b.c }}"}, ggtok.TemplateError, "'a' is undefined"),
        ({"template": "{{ [1, 'a'] | select('gt', 0) | list }}"}, ggtok.TemplateError, "'>' not"),
        ({"template": "{{ ['a'] | sum(start='') }}"}, ggtok.TemplateError, "can't sum strings"),
        ({"template": "{{ '%s' | format(1, a=2) }}"}, ggtok.TemplateError, "keyword arguments"),
        ({"template": "{{ '{a}'.format_map() }}"}, ggtok.TemplateError, "exactly one argument"),
        ({"template": "{{ ','.join(['a', 1]) }}"}, ggtok.TemplateError, "item 1: expected str"),
    ],
)
def test_errors(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    tok = templated("bpe-qwen2", default=CHATML)
    arguments = {"messages": HI, **arguments}
    for method in (tok.apply_chat_template, tok.encode_chat):
        with pytest.raises(error) as caught:
            method(**arguments)
        assert message in str(caught.value)
        assert isinstance(caught.value, ggtok.GGTokError)


def test_no_template(load_fixture: Load) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="no default chat template"):
        load_fixture("bpe-gpt2").apply_chat_template(HI)


def test_cycles_and_depth() -> None:
    tok = templated("bpe-qwen2", default=CHATML)
    message: dict[str, Any] = {"role": "user", "content": "x"}
    message["self"] = message
    with pytest.raises(ggtok.InvalidValueError, match="nested more than"):
        tok.apply_chat_template([message])


def test_arguments_stay_as_they_are() -> None:
    tok = templated("bpe-qwen2", default=CHATML)
    messages = [{"role": "assistant", "content": [{"type": "text", "text": "a"}], "x": None}]
    kept = repr(messages)
    tok.apply_chat_template(
        messages,
        template="{{ messages[0].content[0].text }}",
        add_generation_prompt=False,
        continue_final_message=True,
    )
    assert repr(messages) == kept


def test_jinja2_is_an_extra() -> None:
    code = (
        "import sys, ggtok\n"
        "tok = ggtok.load(sys.argv[1])\n"
        "assert 'jinja2' not in sys.modules\n"
        "sys.modules['jinja2'] = None\n"
        "try:\n"
        "    tok.encode_chat([], template='{{ 1 }}')\n"
        "except ggtok.MissingExtraError as e:\n"
        "    assert isinstance(e, ImportError)\n"
        "    print(e)\n"
    )
    argv = [sys.executable, "-c", code, str(fixture("bpe-gpt2"))]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert "pip install 'ggtok[chat]'" in done.stdout


# ---- what templates compute ----


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
        "'{} {!r} {:>4} {:{}}.'.format('a', 'b', 3, 4, 5)",
        "'{a} {b:.2f}'.format_map({'a': messages[0].content, 'b': 1.5})",
        "('{} ' ~ messages[0].content).format(1)",
        "dict.fromkeys('ab', 1)",
        "','.join(['a', 'b'])",
        "'stra\u00dfe' | upper",
        "[1, 2.5] | sum",
        "[{'a': [1]}, {'a': [2]}] | sum('a', start=[0])",
        "[{'a': 1}, {}, {'a': 0}] | groupby('a', default=1)",
        "messages | map(attribute='role') | map('upper') | list",
        "[1, 2, 'a'] | select('gt', 0) | first",  # no further
        "'lazy' if [1] | select('odd') | reject('odd') and [] | map('abs') is not sequence",
        "'abc'[::-1]",
    ],
)
def test_expressions_give_what_jinja2_gives(expression: str, load_fixture: Load) -> None:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    template = f"{{{{ {expression} }}}}"
    expected = ImmutableSandboxedEnvironment().from_string(template).render(messages=HI)
    assert load_fixture("bpe-qwen2").apply_chat_template(HI, template=template) == expected


def test_a_namespace_does_not_show_what_it_holds(load_fixture: Load) -> None:
    """It may be itself."""
    template = "{% set ns = namespace(a=1) %}{% set ns.b = ns %}{{ ns }}"
    assert load_fixture("bpe-qwen2").apply_chat_template(HI, template=template) == "<Namespace>"


def test_lazy_filters_on_top_of_each_other_take_no_stack(load_fixture: Load) -> None:
    template = (
        "{% set ns = namespace(x=['a']) %}{% for i in range(20000) %}"
        "{% set ns.x = ns.x | map('string') %}{% endfor %}{{ ns.x | first }}"
    )
    assert load_fixture("bpe-qwen2").apply_chat_template(HI, template=template) == "a"


# ---- continuing ----


def test_continue_final_message() -> None:
    tok = templated("bpe-qwen2", default=CHATML)
    messages = [*HI, {"role": "assistant", "content": " Well, "}]
    options: dict[str, Any] = {"add_generation_prompt": False, "continue_final_message": True}
    text = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nWell,"
    assert tok.apply_chat_template(messages, **options) == text
    whole = "{% for m in messages %}[{{ m.content }}{{ m.thinking }}]{% endfor %}"
    assert tok.apply_chat_template(messages, template=whole, **options) == "[Hi][ Well, "
    thought = [*HI, {"role": "assistant", "content": "A", "reasoning": "Hm"}]
    options["continue_final_message"] = "thinking"
    assert tok.apply_chat_template(thought, template=whole, **options) == "[Hi][AHm"
    with pytest.raises(ggtok.TemplateError, match="leaves out"):
        tok.apply_chat_template(thought, template="{% if thinking %}{% endif %}", **options)


def test_continue_a_message_of_several_blocks(load_fixture: Load) -> None:
    blocks = ["One", {"text": "Two"}, {"text": "Three"}, "Four", 5]
    text = load_fixture("bpe-qwen2").apply_chat_template(
        [{"role": "assistant", "content": blocks}],
        template="{% for b in messages[0].content %}{{ b.text or b }};{% endfor %}",
        add_generation_prompt=False,
        continue_final_message=True,
    )
    assert text == "One;Two;Three"


@pytest.mark.parametrize(
    ("messages", "field", "says"),
    [
        ([], True, "there are no messages"),
        (HI, "thinking", "the last message has no 'thinking'"),
        ([{"name": "x"}], "name", "the template doesn't use 'name'"),
        ([{"content": 3}], True, "'content' is int, not text"),
        ([{"content": [{"image": "x"}, "text", 3]}], True, "the last message has no text"),
        ([{"content": [{"text": "x"}, {"text": 3}]}], True, "the last message has no text"),
    ],
)
def test_what_cannot_be_continued(messages: Any, field: bool | str, says: str) -> None:
    tok = templated("bpe-qwen2", default="{{ messages[0].content }}{{ messages[0].thinking }}")
    with pytest.raises(ggtok.InvalidValueError, match=f"continue_final_message: {says}"):
        tok.apply_chat_template(messages, add_generation_prompt=False, continue_final_message=field)


# ---- ids ----


@pytest.mark.parametrize("role", ["user", "wizard"])
def test_roles_that_are_part_of_a_token(role: str) -> None:
    gguf = GGUF.read(fixture("spm-phi3"))
    gguf.set("tokenizer.chat_template", "{{ '<|' + messages[0].role + '|>' }}", "str")
    tok = ggtok.load(gguf.dump())
    ids = tok.encode_chat([{"role": role, "content": ""}])
    assert (tok.text_to_token("<|user|>") in ids) == (role == "user")


def test_a_role_is_no_way_in() -> None:
    tok = templated("spm-phi3", default="{{ '<|' + messages[0].role + '|>' }}")
    end = tok.text_to_token("<|end|>")
    assert end in tok.encode("<|end|>", parse_special=True)
    assert end not in tok.encode_chat([{"role": "end", "content": ""}])


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
        "{{ '<|' ~ messages[0].content[2:] }}",  # half of it the template's
        "{{ messages[0].content[:9] ~ 'nd|>' }}",
        "{% set x %}{{ messages[0].content }}{% endset %}{{ x | trim }}",
        "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(messages[0].content) }}",
        "{{ messages[0].content | safe + '' }}{{ '' + messages[0].content | safe }}",
        "{{ ('%c%cim_end%c%c') % (60, 124, 124, 62) }}",
    ],
)
@pytest.mark.parametrize("content", ["<|im_end|>", "<|im-_e-nd|>"])
def test_no_control_token_out_of_content(template: str, content: str) -> None:
    tok = templated("bpe-qwen2", default=template)
    ids = tok.encode_chat([{"role": "user", "content": content}])
    assert not any(tok.is_control(id) for id in ids)
    assert tok.decode(ids) == tok.apply_chat_template([{"role": "user", "content": content}])


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("{{ '<|reserved_special_token_{}|>'.format(0) }}", True),
        ("{{ '<|reserved_special_token_{}|>'.format('0') }}", True),
        ("{{ '<|reserved_special_token_{!s}|>'.format('0') }}", True),
        ("{{ '<|reserved_special_token_%d|>' % 0 }}", True),
        ("{{ '<|reserved_special_token_{}|>'.format(messages[0].content) }}", False),
        ("{{ '<|reserved_special_token_{!s}|>'.format(messages[0].content) }}", False),
        ("{{ '<|reserved_special_token_{:c}|>'.format(48) }}", False),
        # The template's, but in ways that are not followed.
        ("{{ '{!r}'.format('<|eot_id|>') }}", False),
        ("{{ '{:{}}'.format('<|eot_id|>', 10) }}", False),
        ("{{ (messages[0].content ~ '<|eot_id|>{}').format('') }}", False),
    ],
)
def test_control_tokens_by_format(template: str, found: bool, load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    messages = [{"role": "user", "content": "0"}]
    text = tok.apply_chat_template(messages, template=template)
    ids = tok.encode_chat(messages, template=template)
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


def test_bos_and_eos_are_not_doubled() -> None:
    tok = templated("spm", default="{{ bos_token }}{{ messages[0].content }}{{ eos_token }}")
    ids = tok.encode_chat(HI)
    assert tok.add_bos and ids.count(tok.bos_id or 0) == 1
    assert ids == tok.encode("Hi" + ("" if tok.add_eos else "</s>"), parse_special=True)
    plain = "{{ messages[0].content }}"
    ids = tok.encode_chat([{"role": "user", "content": "<s>Hi"}], template=plain)
    assert ids == tok.encode("<s>Hi")  # the user's "<s>" stays text


@pytest.mark.parametrize("name", ["rwkv", "plamo2"])
def test_vocabularies_that_make_control_tokens_of_text(name: str, load_fixture: Load) -> None:
    tok = load_fixture(name)
    control = next(id for id in range(tok.n_tokens) if tok.is_control(id))
    text = tok.token_text(control).decode()
    assert control in tok.encode(text)  # as in llama.cpp
    with pytest.raises(ggtok.InvalidValueError, match="take it out"):
        tok.encode_chat(
            [{"role": "user", "content": f"a{text}"}], template="{{ messages[0].content }}"
        )
    ids = tok.encode_chat(HI, template=f"{{{{ messages[0].content }}}}{text}")
    assert ids[-1] == control


@given(st.data())
@pytest.mark.parametrize("name", ["bpe-qwen2", "bpe-overlap", "spm-phi3", "bpe-jina", "wpm"])
def test_trusted_ranges(name: str, load_fixture: Load, data: st.DataObject) -> None:
    """Everything trusted is parse_special, nothing is without; between, each special token
    lies in a range, and what is left raw holds none there."""
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
    encode = tok._native.encode_trusted
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
def test_bad_ranges(ranges: list[tuple[int, int]], load_fixture: Load) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="trusted range"):
        load_fixture("bpe-qwen2")._native.encode_trusted("abcdef", 3, ranges)


# ---- the assistant's tokens ----


@pytest.mark.parametrize("name", ["bpe-qwen2", "spm-bytes", "spm", "wpm"])
def test_assistant_mask(name: str, load_fixture: Load) -> None:
    tok = load_fixture(name)
    messages = [
        *HI,
        {"role": "assistant", "content": "né  and so"},
        *HI,
        {"role": "assistant", "content": ""},
    ]
    if name == "wpm":  # its tokens don't spell the text
        with pytest.raises(ggtok.InvalidValueError, match="WPM"):
            tok.encode_chat(messages, template=MARKED, return_assistant_mask=True)
        return
    options: dict[str, Any] = {"template": MARKED, "add_generation_prompt": False}
    ids, mask = tok.encode_chat(messages, return_assistant_mask=True, **options)
    assert ids == tok.encode_chat(messages, **options)
    assert len(mask) == len(ids) and {type(m) for m in mask} == {bool}
    spoken = [tok.token_to_piece(id) for id, m in zip(ids, mask, strict=True) if m]
    silent = [tok.token_to_piece(id) for id, m in zip(ids, mask, strict=True) if not m]
    # Without spaces: SPM puts some in.
    assert b"".join(spoken).decode().replace(" ", "") == "néandso<|im_end|><|im_end|>"
    assert "and" not in b"".join(silent).decode()


def test_a_token_on_the_border_is_the_assistants(load_fixture: Load) -> None:
    tok = load_fixture("bpe-gpt2")
    id = next(i for i in range(300, 400) if tok.token_to_piece(i).isalpha())
    word = tok.token_to_piece(id).decode()
    assert tok.encode(word) == [id] and len(word) > 1
    template = f"{word[0]}{{% generation %}}{word[1:]}{{% endgeneration %}}"
    assert tok.encode_chat(HI, template=template, return_assistant_mask=True) == ([id], [True])


def test_mask_in_macros_and_captured_text(load_fixture: Load) -> None:
    tok = load_fixture("bpe-gpt2")
    template = (
        "{% macro f(x) %}({% generation %}{{ x }}{% endgeneration %}){% endmacro %}"
        "{% set y %}{{ f('ab') }}{% endset %}{{ 'no' ~ y ~ f('cd') }}"
    )
    ids, mask = tok.encode_chat(HI, template=template, return_assistant_mask=True)
    assert tok.decode(ids) == "no(ab)(cd)"
    assert tok.decode([id for id, m in zip(ids, mask, strict=True) if m]) == "abcd"


def test_mask_needs_the_tag(load_fixture: Load) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="generation"):
        load_fixture("bpe-qwen2").encode_chat(HI, template=CHATML, return_assistant_mask=True)
