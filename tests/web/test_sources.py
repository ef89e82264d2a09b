"""Files of every kind: large, remote, malformed, truncated; and the memory that they need."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.support.patch import GGUF
from tests.support.samples import times
from tests.support.vocabularies import fixture
from tests.web.hosts import WASM, Host, JsError, Node, Tokenizer, run, served

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")

GIB = 1 << 30
ERRORS = {
    ggtok.GGUFError: "FormatError",
    ggtok.VocabError: "VocabError",
    ggtok.UnknownPreTokenizerError: "VocabError",
}


def sparse(path: Path, name: str, size: int) -> Path:
    """Writes a file that begins with a fixture's metadata."""
    with path.open("wb") as f:
        f.write(fixture(name).read_bytes())
        f.truncate(size)
    return path


def test_a_file_of_40_gb_is_read_by_slices(host: Host, load_fixture: Any, tmp_path: Path) -> None:
    path = sparse(tmp_path / "large.gguf", "bpe-llama3", 40 * GIB)
    js = Tokenizer(host, path, onProgress=True)
    assert js.info["bytesRead"] == 1 << 20
    assert js.progress == [{"bytesRead": 1 << 20, "size": 40 * GIB}]
    assert js.encode("Hello world") == load_fixture("bpe-llama3").encode("Hello world")
    js.free()


@pytest.mark.parametrize("worker", [False, True])
def test_paths_in_node(node: Node, load_fixture: Any, worker: bool, tmp_path: Path) -> None:
    path = fixture("bpe-llama3")
    for source in str(path), os.path.relpath(path):
        js = Tokenizer(node, source, worker=worker)
        assert js.encode("Hello world") == load_fixture("bpe-llama3").encode("Hello world")
        js.free()
    with pytest.raises(JsError, match=r"no such file.*none\.gguf") as e:
        Tokenizer(node, "none.gguf", worker=worker)
    assert e.value.data["code"] == "io"
    faulty = tmp_path / "faulty.gguf"
    faulty.write_bytes(b"<!doctype html>")
    with pytest.raises(JsError) as e:
        Tokenizer(node, str(faulty), worker=worker)
    assert e.value.name == "FormatError"
    assert e.value.data["message"].startswith(f"{faulty}: not a GGUF file")
    for address in "nohost:none.gguf", "http://127.0.0.1:9/none.gguf":
        with pytest.raises(JsError) as e:
            Tokenizer(node, address, worker=worker)
        assert e.value.name == "NetworkError"


def long_metadata(path: Path, megabytes: int, size: int = 0) -> Path:
    """Writes a file with a long array before the vocabulary."""
    gguf = GGUF.read(fixture("bpe-llama3"))
    longer = GGUF.read(fixture("bpe-llama3"))
    longer.raw = {}
    longer.set("long", [7] * (megabytes << 18), "u32")
    longer.raw |= gguf.raw
    longer.write(path)
    if size:
        with path.open("r+b") as f:
            f.truncate(size)
    return path


def test_long_metadata_is_read_by_doubling(host: Host, load_fixture: Any, tmp_path: Path) -> None:
    path = long_metadata(tmp_path / "long.gguf", 5, 40 * GIB)
    js = Tokenizer(host, path, onProgress=True)
    assert [step["bytesRead"] for step in js.progress] == [1 << n for n in range(20, 24)]
    assert js.encode("Hello world") == load_fixture("bpe-llama3").encode("Hello world")
    first = js.metadata()[0]
    assert (first["key"], first["length"], first["value"]) == ("long", 5 << 18, [7] * 8)
    js.free()


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("worker", [True, False])
def test_a_url_is_read_up_to_the_end_of_the_metadata(
    node: Node, load_fixture: Any, tmp_path: Path, ranges: bool, worker: bool
) -> None:
    long_metadata(tmp_path / "long.gguf", 2, 64 << 20)
    with served(tmp_path, ranges=ranges) as (address, requests):
        js = Tokenizer(node, f"{address}/long.gguf", worker=worker, onProgress=True)
        assert js.encode("Hello world") == load_fixture("bpe-llama3").encode("Hello world")
        assert js.info["bytesRead"] == 4 << 20
        assert js.progress[-1] == {"bytesRead": 4 << 20, "size": 64 << 20}
        js.free()
    asked = [wanted for _, wanted, _ in requests]
    first = "bytes=0-1048575"
    more = ["bytes=1048576-2097151", "bytes=2097152-4194303"]
    assert asked == ([first, *more] if ranges else [first])
    assert sum(sent for _, _, sent in requests) < 48 << 20


def test_unexpected_answers_of_a_server_are_errors(node: Node, tmp_path: Path) -> None:
    long_metadata(tmp_path / "long.gguf", 2)
    (tmp_path / "empty.gguf").touch()
    with served(tmp_path) as (address, _):
        with pytest.raises(JsError) as raised:
            Tokenizer(node, f"{address}/none.gguf")
        assert (raised.value.name, raised.value.data["status"]) == ("NetworkError", 404)
        with pytest.raises(JsError, match="FormatError"):
            Tokenizer(node, f"{address}/empty.gguf")
    with pytest.raises(JsError, match="NetworkError"):
        Tokenizer(node, f"{address}/long.gguf")  # the server has stopped
    with pytest.raises(JsError) as raised:
        Tokenizer(node, "nonsense:")
    assert raised.value.data["isGgtok"]


def test_loading_can_be_aborted(host: Host, tmp_path: Path) -> None:
    path = {"$contents": host.file(fixture("bpe-llama3"))}
    for worker in (False, True):
        with pytest.raises(JsError, match="AbortError"):
            Tokenizer(host, path, worker=worker, aborted=True)


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "ugm", "big-endian"])
def test_truncated_files_have_the_library_s_errors(host: Host, name: str) -> None:
    """Files truncated at many lengths cause the same errors as in the library."""
    data = fixture(name).read_bytes()
    rng = random.Random(name)
    sizes = [*range(40), *rng.sample(range(len(data)), times(60, 1500)), len(data) - 1]
    names = run(host, "truncated", source=fixture(name), sizes=sizes)
    for size, found in zip(sizes, names, strict=True):
        assert found == outcome(data[:size]), size


def outcome(data: bytes) -> str | None:
    """Returns the JavaScript class for the library's error, or None."""
    try:
        ggtok.load(data)
    except ggtok.GGTokError as e:
        return ERRORS[type(e)]
    return None


def test_changed_files_have_the_library_s_results(host: Host) -> None:
    """Files with random bytes changed give the library's result, and never a crash."""
    rng = random.Random(8)
    data = fixture("spm").read_bytes()
    for _ in range(times(60, 300)):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 4))):
            at = rng.randrange(len(data)) if rng.random() < 0.5 else rng.randrange(400)
            changed[at] = rng.randrange(256)
        found = None
        try:
            Tokenizer(host, bytes(changed)).free()
        except JsError as e:
            found = e.name
        assert found == outcome(bytes(changed))


def test_numbers_that_exceed_the_file_are_errors(host: Host) -> None:
    """Counts and lengths that exceed the file cause errors."""
    head = b"GGUF" + struct.pack("<I", 3)
    for count in (1 << 16, 1 << 32, (1 << 63) - 1, (1 << 64) - 1):
        for data in (
            head + struct.pack("<QQ", 0, count),
            head + struct.pack("<QQQ", 0, 1, count) + b"key",
            head + struct.pack("<QQQ3sIIQ", 0, 1, 3, b"key", 9, 8, count),
            head + struct.pack("<QQQ3sIQ", 0, 1, 3, b"key", 8, count),
        ):
            with pytest.raises(JsError, match="FormatError"):
                Tokenizer(host, data + bytes(100))


# ---- memory ----


def test_memory_is_freed(host: Host) -> None:
    sizes = run(host, "loadAndFree", source=fixture("bpe-llama3"), times=200)
    assert len(sizes) == 200
    assert len(set(sizes[5:])) == 1


def test_a_freed_tokenizer_refuses(host: Host) -> None:
    for worker in (False, True):
        source = {"$contents": host.file(fixture("spm"))}
        js = Tokenizer(host, source, worker=worker)
        js.free()
        js.free()
        with pytest.raises(JsError) as raised:
            js.encode("x")
        assert raised.value.data["code"] == "freed"


def _sections(module: bytes) -> Iterator[tuple[int, int, int]]:
    """Yields the id of each section in a module, and where its contents begin and end."""
    at = 8
    while at < len(module):
        size, begin = _leb(module, at + 1)
        yield module[at], begin, begin + size
        at = begin + size


def _leb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def _to_leb(value: int) -> bytes:
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def with_memory(more: int) -> bytes:
    """Returns the module with its memory limited to that many more pages of 64 KiB."""
    module = WASM.read_bytes()
    for id, begin, end in _sections(module):
        if id == 5:
            assert module[begin : begin + 2] == b"\x01\x01"  # there is one memory, with a maximum
            least, _ = _leb(module, begin + 2)
            memory = b"\x01\x01" + _to_leb(least) + _to_leb(least + more)
            start = begin - len(_to_leb(end - begin)) - 1
            return module[:start] + b"\x05" + _to_leb(len(memory)) + memory + module[end:]
    raise AssertionError("no memory")


@pytest.mark.full
@pytest.mark.usefixtures("node")
def test_running_out_of_memory_is_an_error(tmp_path: Path) -> None:
    """An error is raised wherever memory runs out, and the tokenizer can be used afterwards."""
    text = "Hello w\u00f6rld 123 <|eot_id|>" * 20_000
    expected = ggtok.load(fixture("bpe-llama3")).encode(text)
    short = ggtok.load(fixture("bpe-llama3")).encode("short")
    request = {"messages": [{"role": "user", "content": "Hello " * 20_000}]}
    seen = set()
    wasm = tmp_path / "small.wasm"
    with Node() as small:
        for pages in range(0, 160, 3):
            wasm.write_bytes(with_memory(pages))
            run(small, "forget")
            run(small, "init", wasm=wasm)
            error = None
            try:
                js = Tokenizer(small, fixture("bpe-llama3"))
            except JsError as e:
                error = e
            seen.add("load" if error else "loaded")
            if error:
                assert (error.name, error.data["code"]) == ("LimitError", "memory")
                continue
            for method, arguments in (
                ("encode", (text,)),
                ("spans", (text, {"unit": "utf16"})),
                ("encodeChat", (request, {"template": "chatml"})),
                ("pieces", ()),
                ("decode", (expected,)),
            ):
                [found] = js.each(method, [arguments])
                if isinstance(found, JsError):
                    assert (found.name, found.data["code"]) == ("LimitError", "memory")
                    seen.add(method)
                elif method == "encode":
                    assert found == expected
                assert js.encode("short") == short
    assert {"load", "loaded", "encode", "spans", "encodeChat"} <= seen


# ---- limits ----


def test_a_call_beyond_its_budget_ends_the_worker(host: Host) -> None:
    source = {"$contents": host.file(fixture("bpe-llama3"))}
    js = Tokenizer(host, source, worker=True, budget=400)
    loop = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    request = {"messages": [{"role": "user", "content": "Hi"}]}
    text = {"$repeat": ["x y", 8 << 20]}
    found = js.each("spans", [(text, {"unit": "char"})] * 4)
    slow = [e for e in found if isinstance(e, JsError)]
    assert slow and {(e.name, e.data["code"]) for e in slow} == {("LimitError", "time")}
    [error] = js.each("count", [("x",)])
    assert error.data["code"] == "time"
    # Templates also have a budget of steps.
    again = Tokenizer(host, source, worker=True, budget=60_000)
    [error] = again.each("renderChat", [(request, {"template": loop})])
    assert error.name == "TemplateError"
    assert again.count("x") == 2
    again.free()


DEEP = {
    "parentheses": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "lists": "{{ " + "[" * 5000 + "1" + "]" * 5000 + " }}",
    "operators": "{{ " + "not " * 20000 + "1 }}",
    "blocks": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "calls": "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
    "callers": "{% macro f(n) %}{% call f(n + 1) %}{% endcall %}{% endmacro %}{{ f(0) }}",
    "filters": "{{ 'x'" + "|upper" * 5000 + " }}",
    "nested": "{% set ns = namespace(a=[]) %}{% for i in range(5000) %}"
    "{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a | tojson }}",
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("worker", [False, True])
def test_deep_templates_stay_within_the_stack(host: Host, name: str, worker: bool) -> None:
    """Deep templates fail as in the library, and don't crash the module."""
    tok = ggtok.load(fixture("bpe-llama3"))
    source = {"$contents": host.file(fixture("bpe-llama3"))}
    js = Tokenizer(host, source, worker=worker)
    messages = [{"role": "user", "content": "Hi"}]
    like: Any
    for like in ("llama.cpp", "transformers"):
        expected: Any
        try:
            expected = tok.apply_chat_template(messages, template=DEEP[name], like=like)
        except ggtok.TemplateError as e:
            expected = e
        options = {"template": DEEP[name], "like": like}
        [found] = js.each("renderChat", [({"messages": messages}, options)])
        if isinstance(expected, Exception):
            assert isinstance(found, JsError)
            assert found.name == "TemplateError", found.data
        else:
            assert found["text"] == expected
    assert js.count("x") == 2
    js.free()


def test_deep_values_are_refused(host: Host) -> None:
    js = Tokenizer(host, fixture("bpe-llama3"))
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    request = {"messages": [{"role": "user", "content": "Hi"}], "chat_template_kwargs": {"x": deep}}
    for like in ("llama.cpp", "transformers"):
        [error] = js.each("renderChat", [(request, {"template": "{{ x }}", "like": like})])
        assert error.name == "ArgumentError"
    js.free()


@pytest.mark.parametrize(
    ("method", "args"),
    [
        ("encode", (5,)),
        ("encode", (None,)),
        ("encode", ("x", None)),
        ("encode", ("x", 5)),
        ("count", (["x"],)),
        ("spans", (b"x", {"unit": "utf16"})),
        ("spans", ("x", {"unit": "bits"})),
        ("spans", ("x", "bytes")),
        ("trace", (None,)),
        ("traceToken", (None,)),
        ("find", (5,)),
        ("decode", (None,)),
        ("decode", (5,)),
        ("decode", ("12",)),
        ("decode", ({},)),
        ("decode", (True,)),
        ("decode", ([None],)),
        ("decode", ([[1]],)),
        ("decode", ([1], [])),
        ("decodeBytes", (None,)),
        ("decode", ([1.5],)),
        ("decode", ([1 << 40],)),
        ("decode", (["1"],)),
        ("decode", ([-1],)),
        ("piece", (-1,)),
        ("piece", (1 << 31,)),
        ("piece", (None,)),
        ("piece", ([1],)),
        ("piece", (1, True)),
        ("token", ("1",)),
        ("type", (999_999,)),
        ("score", (0.5,)),
        ("metadata", (5,)),
        ("metadata", ({"items": "5"},)),
        ("metadata", ({"items": -1},)),
        ("renderChat", (5,)),
        ("renderChat", ("{",)),
        ("renderChat", (None,)),
        ("renderChat", ({"messages": []}, 5)),
        ("chatOrigins", ({"messages": []}, "llama")),
        ("encodeChat", ({"messages": []}, None)),
        ("renderChat", ({},)),
        ("renderChat", ({"messages": 1},)),
        ("renderChat", ({"messages": []}, {"like": "x", "template": "x{}"})),
        ("renderChat", ({"messages": []}, {"template": "none of the file's"})),
        ("encodeChat", ({"messages": []}, {"userDefined": "x", "template": "x{}"})),
        ("countChat", ({"messages": []}, {"now": 5})),
    ],
)
def test_wrong_arguments_are_refused(host: Host, method: str, args: Any) -> None:
    js = Tokenizer(host, fixture("bpe-llama3"))
    [error] = js.each(method, [args])
    assert (error.name, error.data["code"]) == ("ArgumentError", "argument"), error
    assert js.count("x") == 2
    js.free()


def test_the_error_names_the_wrong_argument(host: Host) -> None:
    js = Tokenizer(host, fixture("bpe-llama3"))
    messages: dict[str, list[Any]] = {
        "ids must be an array of integers, not null": [None],
        "ids must be an array of integers, not a string": ["12"],
        "ids[1] must be an integer, not a string": [[39, "72"]],
        "ids[1] must be an integer of 32 bits, not 1099511627776": [[39, 1 << 40]],
        "options must be an object, not a number": [[39], 5],
    }
    errors = js.each("decode", list(messages.values()))
    assert [error.data["message"] for error in errors] == list(messages)
    js.free()


def test_unknown_options_are_refused_with_the_nearest_name(host: Host) -> None:
    js = Tokenizer(host, fixture("bpe-llama3"))
    request: dict[str, Any] = {"messages": []}
    for method, args, hint in (
        ("encode", ("x", {"addSpecials": True}), "did you mean 'addSpecial'?"),
        ("spans", ("x", {"units": "byte"}), "did you mean 'unit'?"),
        ("decode", ([1], {"clean_spaces": True}), "did you mean 'cleanSpaces'?"),
        ("piece", (1, {"x": True}), "the options are special"),
        ("metadata", ({"item": 5},), "did you mean 'items'?"),
        ("encodeChat", (request, {"userdefined": "parse"}), "did you mean 'userDefined'?"),
        ("renderChat", (request, {"trusted": True}), "the options are like, template, now, media"),
        ("countChat", (request, {"mediamarker": "x"}), "did you mean 'mediaMarker'?"),
    ):
        [error] = js.each(method, [args])
        assert error.name == "ArgumentError"
        assert f"; {hint}" in error.data["message"], error
    js.free()


@pytest.mark.parametrize("worker", [False, True])
def test_unknown_options_for_loading_are_refused(host: Host, worker: bool) -> None:
    with pytest.raises(JsError, match=r"unknown option 'prE'; did you mean 'pre'\?") as caught:
        Tokenizer(host, fixture("bpe-llama3"), worker=worker, prE="gpt-2")
    assert caught.value.name == "ArgumentError"


@pytest.mark.parametrize("worker", [False, True])
@pytest.mark.parametrize("options", [{"pre": 5}, {"pre": ["gpt-2"]}])
def test_wrong_options_for_loading_are_refused(host: Host, worker: bool, options: Any) -> None:
    with pytest.raises(JsError) as caught:
        Tokenizer(host, fixture("bpe-llama3"), worker=worker, **options)
    assert caught.value.name == "ArgumentError"
