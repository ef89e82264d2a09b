"""The commands, with their options and errors, and compared with the output of llama-tokenize."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import ggtok
from ggtok.cli import input_texts
from tests.cli.command import BPE, LLAMA3, QWEN2, SPM, spawn
from tests.support.vocabularies import GGUF_FOLDER


def load(path: str) -> ggtok.Tokenizer:
    return ggtok.load(path)


# ---- tokenize ----


def listing(tok: ggtok.Tokenizer, ids: list[int]) -> bytes:
    """Returns the output that llama-tokenize would print, according to its source."""
    pieces = [tok.token_to_piece(id).partition(b"\0")[0] for id in ids]
    return b"".join(b"%6d -> '%s'\n" % pair for pair in zip(ids, pieces, strict=True))


@pytest.mark.parametrize("model", [BPE, LLAMA3, SPM])
@pytest.mark.parametrize("text", ["Hello, world", "", " é 你好 \U0001f600", "<s> </s><|eot_id|>"])
def test_tokenize_lists_ids_and_pieces(run, model: str, text: str) -> None:
    tok = load(model)
    ids = tok.encode(text, add_special=tok.add_bos, parse_special=True)
    result = run("tokenize", model, text)
    assert (result.status, result.out, result.errors) == (0, listing(tok, ids), [])


def test_tokenize_prints_raw_bytes_of_split_characters(run) -> None:
    out = run("tokenize", BPE, "\U0001fae8").out
    assert b"".join(line[11:-1] for line in out.splitlines()) == "\U0001fae8".encode()


FORMS = {
    "positional": ["tokenize", BPE, "a b"],
    "model option": ["tokenize", "-m", BPE, "a b"],
    "long options": ["tokenize", "--model", BPE, "--prompt", "a b"],
    "prompt option": ["tokenize", BPE, "-p", "a b"],
    "options between": ["tokenize", BPE, "--no-bos", "a b"],
    "options first": ["tokenize", "--no-bos", BPE, "a b"],
    "after --": ["tokenize", BPE, "--", "a b"],
}


@pytest.mark.parametrize("argv", FORMS.values(), ids=FORMS.keys())
def test_tokenize_argument_forms(run, argv: list[str]) -> None:
    tok = load(BPE)
    assert run(*argv).out == listing(tok, tok.encode("a b", add_special=tok.add_bos))


def test_tokenize_ids_and_count(run) -> None:
    tok = load(SPM)
    ids = tok.encode("one two", add_special=tok.add_bos)
    assert len(ids) > 2
    shown = run("tokenize", SPM, "one two", "--ids", "--show-count").out
    assert shown == f"{ids}\nTotal number of tokens: {len(ids)}\n".encode()
    assert run("tokenize", SPM, "", "--no-bos", "--ids").out == b"[]\n"


def test_tokenize_no_bos(run) -> None:
    tok = load(SPM)
    assert tok.add_bos
    with_bos = json.loads(run("tokenize", SPM, "a", "--ids").out)
    without = json.loads(run("tokenize", SPM, "a", "--ids", "--no-bos").out)
    assert with_bos == [tok.bos_id, *without]


def test_tokenize_no_parse_special(run) -> None:
    tok = load(LLAMA3)
    text = tok.token_text(min(i for i in tok.eog_ids if tok.is_control(i))).decode()
    for option, parse in ([], True), (["--no-parse-special"], False):
        ids = tok.encode(text, add_special=tok.add_bos, parse_special=parse)
        assert json.loads(run("tokenize", LLAMA3, text, "--ids", *option).out) == ids


ESCAPES = [
    (b"plain", b"plain"),
    (rb"a\nb\rc\td", b"a\nb\rc\td"),
    (rb"\'\"\\", b"'\"\\"),
    (rb"\\n", rb"\n"),
    (rb"\x41\xfF\x00", b"A\xff\x00"),
    (rb"\x4", rb"\x4"),
    (rb"\x4g", rb"\x4g"),
    (rb"\x", rb"\x"),
    (rb"\x 7\x+7\x-1", b"\x07\x07\xff"),  # strtol accepts such digits
    (rb"\0\q", rb"\0\q"),
    (b"\\\n", b"\\\n"),
    ("\\é".encode(), "\\é".encode()),
    (b"end\\", b"end\\"),
    (rb"\\x41", rb"\x41"),
]


@pytest.mark.parametrize(("text", "expected"), ESCAPES)
def test_escapes(text: bytes, expected: bytes) -> None:
    assert input_texts.unescape(text) == expected


def test_escapes_apply_to_every_source(run, tmp_path: Path) -> None:
    tok = load(BPE)
    (tmp_path / "text").write_bytes(rb"a\nb")
    sources = (["-p", r"a\nb"], [r"a\nb"], ["-f", str(tmp_path / "text")], ["--stdin"])
    for source in sources:
        for option, text in ([], b"a\nb"), (["--no-escape"], rb"a\nb"), (["-e"], b"a\nb"):
            result = run("tokenize", BPE, "--ids", *source, *option, stdin=rb"a\nb")
            assert json.loads(result.out) == tok.encode(text, add_special=tok.add_bos)


def test_sources_take_precedence(run, tmp_path: Path) -> None:
    tok = load(BPE)
    (tmp_path / "text").write_bytes(b"file\n")
    file = ["-f", str(tmp_path / "text")]

    def ids(*argv: str) -> list[int]:
        return json.loads(run("tokenize", BPE, "--ids", *argv, stdin=b"\xff stdin\n").out)

    assert ids("-p", "prompt", *file, "--stdin") == tok.encode(b"\xff stdin\n")
    assert ids("-p", "prompt", *file) == tok.encode("file\n")


def test_tokenize_json(run) -> None:
    tok = load(BPE)
    text = "Hi \U0001fae8"
    shown = json.loads(run("tokenize", BPE, text, "--json").out)
    assert shown["ids"] == tok.encode(text, add_special=tok.add_bos)
    assert shown["count"] == len(shown["ids"]) == len(shown["tokens"])
    data = b"".join(bytes(t.get("bytes", t["piece"].encode())) for t in shown["tokens"])
    assert data == text.encode()


def test_pre_option(run) -> None:
    shown = json.loads(run("inspect", BPE, "--pre", "qwen2", "--json").out)
    assert shown["pre"] == "qwen2"


# ---- detokenize ----


def test_detokenize_forms(run, tmp_path: Path) -> None:
    text = "Hello, \U0001fae8 world\n"
    ids = load(BPE).encode(text, add_special=False)
    words = [str(id) for id in ids]
    (tmp_path / "ids").write_text(str(ids))
    for argv in words, [str(ids)], str(ids).split(), [",".join(words)]:
        assert run("detokenize", BPE, *argv).out == text.encode()
    assert run("detokenize", "-m", BPE, *words).out == text.encode()
    assert run("detokenize", BPE, "-f", str(tmp_path / "ids")).out == text.encode()
    assert run("detokenize", BPE, stdin=" ".join(words).encode()).out == text.encode()
    assert run("detokenize", BPE, stdin=b"").out == b""
    assert json.loads(run("detokenize", BPE, *words, "--json").out)["text"] == text


def test_detokenize_options(run) -> None:
    tok = load(SPM)
    ids = [tok.bos_id, *tok.encode("a", add_special=False), tok.eos_id]
    words = [str(id) for id in ids]
    for options in [], ["--no-unparse-special"], ["--remove-special"]:
        expected = tok.decode_bytes(
            ids,
            remove_special="--remove-special" in options,
            unparse_special="--no-unparse-special" not in options,
        )
        assert run("detokenize", SPM, *options, *words).out == expected
    ids = [str(id) for id in load(BPE).encode("ok !", add_special=False)]
    assert run("detokenize", BPE, *ids).out == b"ok!"
    assert run("detokenize", BPE, *ids, "--no-clean-spaces").out == b"ok !"
    ids = [str(id) for id in load(QWEN2).encode("ok !", add_special=False)]
    assert run("detokenize", QWEN2, *ids).out == b"ok !"
    assert run("detokenize", QWEN2, *ids, "--clean-spaces").out == b"ok!"


def test_tokenize_then_detokenize_is_the_file(tmp_path: Path) -> None:
    data = bytes(range(256)) * 20 + "é你".encode()
    path = tmp_path / "data"
    path.write_bytes(data)
    ids = spawn(["tokenize", SPM, "-f", str(path), "--no-escape", "--no-bos", "--ids"], tmp_path)
    text = spawn(["detokenize", SPM], tmp_path, ids.stdout)
    assert text.stdout == data


# ---- inspect ----


def test_inspect_json(run) -> None:
    tok = load(LLAMA3)
    shown = json.loads(run("inspect", LLAMA3, "--json").out)
    assert (shown["type"], shown["pre"]) == ("BPE", tok.pre)
    assert shown["source"] == os.path.abspath(LLAMA3)
    assert shown["n_tokens"] == tok.n_tokens
    assert shown["special_tokens"]["bos"]["id"] == tok.bos_id
    assert {t["id"] for t in shown["eog_tokens"]} == tok.eog_ids
    assert shown["flags"]["add_bos"] == tok.add_bos
    assert shown["metadata"] == dict(tok.metadata)
    assert shown["arrays"]["tokenizer.ggml.tokens"] == {"type": "string", "length": tok.n_tokens}


def test_inspect_every_fixture(run) -> None:
    for path in sorted(GGUF_FOLDER.glob("*.gguf")):
        result = run("inspect", str(path))
        assert (result.status, result.errors) == (0, []), path.name
        assert result.out.startswith(b"model "), path.name
        for line in ("special tokens", "flags", "key/values"):
            assert line in result.out.decode().splitlines(), path.name


# ---- errors ----

ERRORS = {
    "unknown command": (["frobnicate"], "frobnicate"),
    "unknown option": (["tokenize", BPE, "x", "--frob"], "--frob"),
    "abbreviated option": (["tokenize", BPE, "x", "--show"], "--show"),
    "no model": (["tokenize"], "model"),
    "no text": (["tokenize", BPE], "no text"),
    "two texts": (["tokenize", BPE, "a", "b"], "quotes"),
    "text twice": (["tokenize", BPE, "a", "-p", "b"], "two texts: 'a' and -p"),
    "no file": (["tokenize", "no/such.gguf", "a"], "no/such.gguf: "),
    "no text file": (["tokenize", BPE, "-f", "no/such.txt"], "no/such.txt: "),
    "not GGUF": (["tokenize", __file__, "a"], "GGUF"),
    "unknown pre": (["tokenize", BPE, "a", "--pre", "gpt-22"], "'gpt-2'"),
    "pre for SPM": (["tokenize", SPM, "a", "--pre", "gpt-2"], "BPE"),
    "id too large": (["detokenize", BPE, "1", "999999"], "no token 999999: the ids are 0 to 756"),
    "negative id": (["detokenize", BPE, "-1"], "no token -1: the ids are 0 to 756"),
    "huge id": (["detokenize", BPE, "99999999999999999999"], "99999999999999999999"),
    "no id": (["detokenize", BPE, "x1"], "'x1'"),
    "ids twice": (["detokenize", BPE, "1", "-f", "x"], "both as arguments and with -f"),
    "inspect with text": (["inspect", BPE, "a"], "'a'"),
}


@pytest.mark.parametrize(("argv", "hint"), ERRORS.values(), ids=ERRORS.keys())
def test_errors_are_one_line_and_status_2(run, argv: list[str], hint: str) -> None:
    result = run(*argv)
    assert (result.status, result.out) == (2, b"")
    assert len(result.errors) == 1
    assert result.errors[0].startswith("ggtok: error: ")
    assert hint in result.errors[0]


def test_version_and_help(run) -> None:
    assert run("--version").out == f"ggtok {ggtok.__version__}\n".encode()
    assert b"tokenize" in run("--help").out
    for command in "tokenize", "detokenize", "inspect":
        result = run(command, "--help")
        assert result.status == 0
        assert b"examples:" in result.out


# ---- chat ----

CHAT = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"  # noqa: E501
HELLO = b'[{"role": "user", "content": "Hello <|im_end|>"}]'
RENDERED = b"<|im_start|>user\nHello <|im_end|><|im_end|>\n"
ANSWER = b"<|im_start|>assistant\n"
TOOLS = '[{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}]'


@pytest.fixture
def chat_files(tmp_path: Path) -> tuple[str, str]:
    (tmp_path / "chat.jinja").write_text(CHAT)
    (tmp_path / "hello.json").write_bytes(HELLO)
    return str(tmp_path / "chat.jinja"), str(tmp_path / "hello.json")


def test_chat(run, chat_files: tuple[str, str]) -> None:
    template, messages = chat_files
    argv = ["chat", QWEN2, "--template", template]
    assert run(*argv, messages).out == RENDERED + ANSWER
    assert run(*argv, stdin=HELLO).out == RENDERED + ANSWER
    assert run(*argv, "-", "--no-generation-prompt", stdin=HELLO).out == RENDERED
    ids = load(QWEN2).encode_chat(json.loads(HELLO), template=CHAT)
    assert run(*argv, messages, "--ids").out == b"%a\n" % ids
    shown = json.loads(run(*argv, messages, "--json").out)
    assert shown == {"text": (RENDERED + ANSWER).decode(), "count": len(ids), "ids": ids}
    other = load(QWEN2).apply_chat_template(json.loads(HELLO), template="chatml")
    assert run("chat", QWEN2, "--template", "chatml", messages).out == other.encode()


def test_chat_without_messages(run, tmp_path: Path) -> None:
    template = tmp_path / "first.jinja"
    template.write_text(
        "{% for m in messages %}{{ m.content }}{% else %}{{ raise_exception('odd') }}{% endfor %}"
    )
    result = run("chat", QWEN2, "--template", str(template), stdin=b"[]")
    assert result.status == 2
    assert "there are no messages, but this chat template needs some" in result.errors[0]
    tok = load(QWEN2)
    for call in tok.apply_chat_template, tok.encode_chat, tok.count_chat:
        with pytest.raises(ggtok.TemplateError, match="there are no messages"):
            call([], template=template.read_text())
    with pytest.raises(ggtok.TemplateError, match="there are no messages"):
        tok.encode_chat_batch([json.loads(HELLO), []], template=template.read_text())


def test_chat_like_transformers(run, chat_files: tuple[str, str]) -> None:
    template, messages = chat_files
    argv = ["chat", QWEN2, "--template", template, "--like", "transformers"]
    assert run(*argv, messages).out == RENDERED
    assert run(*argv, messages, "--generation-prompt").out == RENDERED + ANSWER
    ids = load(QWEN2).encode_chat(json.loads(HELLO), template=CHAT, like="transformers")
    assert run(*argv, messages, "--ids").out == b"%a\n" % ids
    body = {
        "messages": json.loads(HELLO),
        "add_generation_prompt": True,
        "temperature": 0.5,
        "documents": [{"text": "d"}],
        "chat_template_kwargs": {"x": "y"},
        "like": "llama.cpp",
    }
    assert run(*argv, stdin=json.dumps(body).encode()).out == RENDERED + ANSWER
    shown = CHAT + "{{ x }}{{ documents[0].text }}{{ tools | tojson if tools }}{{ 1 // 1 }}"
    Path(template).write_text(shown)
    more = json.dumps(body | {"tools": json.loads(TOOLS)}).encode()
    assert run(*argv, stdin=more).out.decode() == f"{(RENDERED + ANSWER).decode()}yd{TOOLS}1"
    refused = run(*argv, stdin=b"{}")
    assert refused.status == 2 and "messages are missing" in refused.errors[0]


def test_chat_tools_and_the_files_own_template(run, tmp_path: Path) -> None:
    own = load(SPM).chat_templates["default"]
    (tmp_path / "tools.json").write_text(TOOLS)
    (tmp_path / "tools.jinja").write_text("{{ tools | tojson if tools }}")
    assert run("chat", SPM, stdin=HELLO).out.decode() == load(SPM).apply_chat_template(
        json.loads(HELLO), template=own
    )
    assert run("chat", SPM, "--template", "default", stdin=HELLO).status == 0
    tools = ["--template", str(tmp_path / "tools.jinja"), "--tools", str(tmp_path / "tools.json")]
    assert run("chat", SPM, *tools, stdin=HELLO).out.decode() == TOOLS


@pytest.mark.parametrize(
    ("argv", "stdin", "message"),
    [
        ([SPM, "--ids"], b'[{"role": "user", "content": "\\ud800"}]', "is a lone surrogate"),
        ([SPM, "--template", ""], HELLO, "'': No such file"),
        ([SPM], b"[", "standard input: not valid JSON: "),
        ([SPM, "a", "b"], b"", "unexpected argument: 'b'"),
        (
            [SPM, "/nowhere/messages.json"],
            b"",
            "/nowhere/messages.json: the folder /nowhere doesn't exist",
        ),
        ([SPM, "--template", "nowhere"], HELLO, "nowhere: No such file"),
        ([SPM], b'{"role": "user"}', "messages are missing"),
        ([SPM], b'"Hi"', "messages must be a list of mappings, not str"),
        ([SPM], b'{"messages": [], "tool_choice": 3, "tools": {}}', "tools"),
    ],
)
def test_chat_errors(run, argv: list[str], stdin: bytes, message: str) -> None:
    result = run("chat", *argv, stdin=stdin)
    assert result.status == 2 and len(result.errors) == 1 and message in result.errors[0]
    assert "pass bytes" not in result.errors[0] and "template=" not in result.errors[0]


def test_chat_takes_whole_requests(run, chat_files: tuple[str, str], tmp_path: Path) -> None:
    """The input may be a request body for llama-server; options override its fields."""
    template, _ = chat_files
    (tmp_path / "think.jinja").write_text("{{ enable_thinking }}|{{ x }}|{{ tools | length }}")
    body = {
        "model": "any",
        "messages": json.loads(HELLO),
        "tools": json.loads(TOOLS) * 2,
        "chat_template_kwargs": {"enable_thinking": False, "x": 1},
    }
    request = tmp_path / "request.json"
    request.write_text(json.dumps(body))
    argv = ["chat", QWEN2, str(request), "--template"]
    shown = run(*argv, str(tmp_path / "think.jinja"))
    assert shown.out == b"False|1|2" and "ignores tools" not in " ".join(shown.warnings)
    (tmp_path / "tools.json").write_text(TOOLS)
    tools = ["--tools", str(tmp_path / "tools.json")]
    assert run(*argv, str(tmp_path / "think.jinja"), *tools).out == b"False|1|1"
    assert run(*argv, template).out == RENDERED + ANSWER
    assert run(*argv, template, "--no-generation-prompt").out == RENDERED
    assert run("chat", BPE, stdin=HELLO).out.startswith(b"<|im_start|>user")  # rendered with ChatML


def test_chat_says_when_the_template_ignores_tools(run, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(TOOLS)
    (tmp_path / "clock.jinja").write_text("{{ strftime_now('%f') }}{{ messages[0].content }}")
    (tmp_path / "needs.jinja").write_text(
        "{% if messages[0].content[:5] == 'Hello' and not tools %}{{ raise_exception('!') }}"
        "{% endif %}{{ messages[0].content }}"
    )
    tools = ["--tools", str(tmp_path / "tools.json")]
    for template in [], ["--template", str(tmp_path / "clock.jinja")]:
        for form in [], ["--ids"], ["--json"]:
            result = run("chat", SPM, *tools, *template, *form, stdin=HELLO)
            assert (result.status, result.errors) == (0, [])
            assert len(result.warnings) == 1 and "ignores tools" in result.warnings[0]
    assert run("chat", SPM, *tools, "-q", stdin=HELLO).warnings == []
    assert run("chat", SPM, stdin=HELLO).warnings == []
    needs = ["--template", str(tmp_path / "needs.jinja")]
    assert run("chat", SPM, *tools, *needs, stdin=HELLO).warnings == []
    (tmp_path / "tools.json").write_text("[]")
    assert run("chat", SPM, *tools, stdin=HELLO).warnings == []


def test_chat_reads_standard_input_once(run) -> None:
    result = run("chat", SPM, "--tools", "-", stdin=HELLO)
    assert result.status == 2 and "both" in result.errors[0]


def test_chat_with_tools_from_standard_input(run, chat_files: tuple[str, str]) -> None:
    template, messages = chat_files
    result = run("chat", SPM, messages, "--template", template, "--tools", "-", stdin=b"[]")
    assert result.out == RENDERED + ANSWER


# ---- cache ----


@pytest.mark.parametrize("n", [0, 1, 2])
def test_cache_clear_counts(run, n: int, tmp_path: Path, monkeypatch) -> None:
    from ggtok.sources import download_cache

    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path))
    for i in range(n):
        download_cache.store(
            download_cache.CacheEntry(f"https://host/\x1b{i}.gguf", "tag", b"x" * 10)
        )
    listed = run("cache", "ls").out
    assert len(listed.splitlines()) == 1 + n and b"\x1b" not in listed
    shown = json.loads(run("cache", "ls", "--json").out)
    assert (shown["folder"], len(shown["entries"])) == (str(tmp_path), n)
    removed = run("cache", "clear").out.decode()
    assert removed.startswith(f"removed {n} " + ("vocabulary, " if n == 1 else "vocabularies, "))
    assert json.loads(run("cache", "clear", "--json").out) == {"removed": 0, "bytes": 0}
