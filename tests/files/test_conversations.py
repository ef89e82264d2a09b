"""Files of conversations, as they are used for fine-tuning."""

from __future__ import annotations

import gzip
import itertools
import json
import random
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok.corpora import encode_conversations, jsonl
from ggtok.corpora.finished import verify
from ggtok.corpora.summary import EncodeProgress
from tests.files.corpus import documents, files_of
from tests.support import samples
from tests.support.full import full

USER = {"role": "user", "content": "What is a token?"}
ANSWER = {"role": "assistant", "content": "A piece of text, such as <|eot_id|>."}
SYSTEM = {"role": "system", "content": "Be brief."}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
CALL = {"type": "function", "function": {"name": "f", "arguments": {"a": [1, 2.5]}}}
CALLING = [
    USER,
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "3"},
    ANSWER,
]
# A template without {% generation %}, which would mark the answers.
UNMARKED = "{% for m in messages %}{{ m.role }}: {{ m.content }} {% endfor %}"


def sent(sender: str, value: Any) -> dict[str, Any]:
    return {"from": sender, "value": value}


# Records, and the messages and tools that they have.
SHAPES: list[tuple[Any, list[Any], list[Any] | None]] = [
    ({"messages": [USER, ANSWER]}, [USER, ANSWER], None),
    ({"id": 7, "messages": [SYSTEM, USER, ANSWER], "tools": TOOLS}, [SYSTEM, USER, ANSWER], TOOLS),
    ({"messages": CALLING, "tools": json.dumps(TOOLS)}, CALLING, TOOLS),
    ({"messages": [USER, ANSWER], "tools": " "}, [USER, ANSWER], None),
    ([USER, ANSWER], [USER, ANSWER], None),
    ({"messages": [USER]}, [USER], None),
    (
        {"conversations": [sent("human", USER["content"]), sent("gpt", ANSWER["content"])]},
        [USER, ANSWER],
        None,
    ),
    (
        {"system": "Be brief.", "conversations": [sent("user", "x"), sent("model", "y")]},
        [SYSTEM, {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}],
        None,
    ),
    ({"system": "no", "conversations": [SYSTEM, USER, ANSWER]}, [SYSTEM, USER, ANSWER], None),
    ({"system": "Be brief.", "messages": [USER, ANSWER]}, [SYSTEM, USER, ANSWER], None),
    ({"system": "no", "messages": [SYSTEM, USER, ANSWER]}, [SYSTEM, USER, ANSWER], None),
    ({"system": "", "messages": [USER, ANSWER]}, [USER, ANSWER], None),
    ({"system": None, "conversation": [USER, ANSWER]}, [USER, ANSWER], None),
    (
        {
            "conversations": [
                sent("human", USER["content"]),
                sent("function_call", json.dumps(CALL["function"])),
                sent("observation", "3"),
                sent("gpt", ANSWER["content"]),
            ],
            "tools": TOOLS,
        },
        CALLING,
        TOOLS,
    ),
]


@pytest.fixture(scope="session")
def chat(load_fixture: Callable[[str], ggtok.Tokenizer]) -> ggtok.Tokenizer:
    return ggtok.load(Path(__file__).parents[2] / "fixtures" / "chat.gguf")


def lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def read(out: Path) -> list[tuple[list[int], list[bool]]]:
    """Returns the ids and the mask of each document of a NumPy output."""
    ids, mask = np.load(out), np.load(out.with_suffix(".mask.npy"))
    ends = np.load(out.with_suffix(".offsets.npy"))
    assert mask.dtype == bool and len(mask) == len(ids) == ends[-1]
    return [(ids[a:b].tolist(), mask[a:b].tolist()) for a, b in itertools.pairwise(ends)]


def expected(
    tok: ggtok.Tokenizer, messages: list[Any], tools: Any = None, **options: Any
) -> tuple[list[int], list[bool]]:
    closed: dict[str, Any] = {"add_generation_prompt": False, "continue_final_message": False}
    return tok.encode_chat(
        messages, tools=tools, return_assistant_mask=True, **{**closed, **options}
    )


@pytest.mark.parametrize("parser", ["fastest", "standard"])
def test_shapes(
    chat: ggtok.Tokenizer, tmp_path: Path, parser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if parser == "standard":
        monkeypatch.setattr(jsonl, "_parser", lambda: jsonl._standard)
    (tmp_path / "a.jsonl").write_bytes(lines([record for record, *_ in SHAPES]))
    summary = chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat=True)
    assert summary.documents == len(SHAPES)
    assert [Path(path).name for path in summary.files] == [
        *("o.npy", "o.offsets.npy", "o.mask.npy", "o.npy.manifest.json")
    ]
    found = read(tmp_path / "o.npy")
    assert found == [expected(chat, messages, tools) for _, messages, tools in SHAPES]
    assert any(found[0][1]) and not all(found[0][1]) and not any(found[5][1])


def test_formats_have_the_same_masks(chat: ggtok.Tokenizer, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    source = tmp_path / "a.jsonl.gz"
    source.write_bytes(gzip.compress(lines([record for record, *_ in SHAPES])))
    for out, format in ("o.npy", "npy"), ("o.bin", "raw"), ("m.bin", "megatron"), ("o.arrow", None):
        chat.encode_files(source, tmp_path / out, chat=True, format=format)  # type: ignore[arg-type]
        assert verify(str(tmp_path / out))[1] == []
    found = read(tmp_path / "o.npy")
    masks = [mask for _, mask in found]
    flat = np.array([bit for mask in masks for bit in mask], np.uint8).tobytes()
    assert (tmp_path / "o.bin.mask").read_bytes() == flat == (tmp_path / "m.mask").read_bytes()
    table = pa.ipc.open_file(tmp_path / "o.arrow").read_all()
    assert table.column_names == ["ids", "assistant_masks"]
    assert table["ids"].to_pylist() == [ids for ids, _ in found]
    assert table["assistant_masks"].to_pylist() == masks
    (tmp_path / "o.bin.mask").write_bytes(bytes(len(flat)))
    assert verify(str(tmp_path / "o.bin"))[1] == [
        f"{tmp_path / 'o.bin.mask'}: has changed (its checksum differs)"
    ]


def test_arguments_of_encode_chat(chat: ggtok.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines([SHAPES[0][0]]))
    template = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    for i, options in enumerate(
        (
            {"like": "transformers"},
            {"template": template},
            {"tools": TOOLS},
            {"trusted": True},
            {"chat_template_kwargs": {"x": 1}, "user_defined": "plain"},
        )
    ):
        out = tmp_path / f"{i}.npy"
        chat.encode_files(tmp_path / "a.jsonl", out, chat=options)
        more: Any = {"continue_final_message": None} if "like" in options else {}
        assert read(out) == [expected(chat, [USER, ANSWER], **{**options, **more})]


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        ({"chat": 1}, "chat must be True or a dict of encode_chat's arguments, not int"),
        ({"chat": {1: 2}}, "chat must be True or a dict"),
        ({"chat": {"known": None}}, "chat: known can't be set"),
        ({"chat": {"add_generation_prompt": True}}, "add_generation_prompt can't be set"),
        ({"chat": {"response_format": {1, 2}}}, "chat: the arguments must be JSON values"),
        ({"chat": {"like": "vllm"}}, "like must be"),
        ({"chat": {"tools": [1]}}, "tools"),
        ({"chat": {"tool_choice": "zzz"}}, "tool_choice"),
        ({"chat": {"reasoning_format": "zzz"}}, "reasoning_format"),
        ({"chat": {"chat_template_kwargs": 5}}, "chat_template_kwargs"),
        ({"chat": {"messages": []}}, "chat: messages can't be set"),
        ({"chat": {"chat_template_kwargs": {"messages": []}}}, "chat: messages can't be set"),
        ({"chat": {"clock": 5}}, "clock must be a function, not int"),
        ({"chat": {"clock": lambda: 5}}, "clock must return a datetime, not int"),
        ({"chat": {"mask": 1}}, "chat: mask must be True or False, not 1"),
        ({"chat": {"color": 1}}, "color is neither an argument nor a variable"),
        ({"chat": True, "field": "text"}, "field has no effect with chat"),
        ({"chat": True, "separator": "x"}, "separator has no effect with chat"),
        ({"chat": True, "kind": "text"}, r"a.jsonl: not JSON lines.* kind='jsonl' .--kind. reads"),
    ],
)
def test_wrong_arguments(
    chat: ggtok.Tokenizer, tmp_path: Path, arguments: dict[str, Any], pattern: str
) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines([SHAPES[0][0]]))
    with pytest.raises(ggtok.errors.ArgumentError, match=pattern):
        chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", errors="skip", **arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_json_files_are_recognized_by_their_content(chat: ggtok.Tokenizer, tmp_path: Path) -> None:
    for i, (records, n) in enumerate(
        (([SHAPES[0][0]], 1), ([SHAPES[4][0]] * 2, 2), ([SHAPES[6][0]], 1))
    ):
        (tmp_path / f"{i}.json").write_bytes(lines(records))
        out = tmp_path / f"{i}.npy"
        assert chat.encode_files(tmp_path / f"{i}.json", out, chat=True).documents == n
    for name, text, pattern in (
        ("array", json.dumps([SHAPES[0][0]]), r"an array of records, not JSON lines; 'jq.*it$"),
        ("pretty", json.dumps(SHAPES[0][0], indent=1), "not JSON lines, in which each line"),
        ("other", "x", "not JSON lines"),
    ):
        (tmp_path / f"{name}.json").write_text(text)
        with pytest.raises(ggtok.InvalidValueError, match=pattern):
            chat.encode_files(tmp_path / f"{name}.json", tmp_path / "o.npy", chat=True)


DEEP = b"[" * 1000 + b"]" * 1000  # orjson parses it, but json doesn't write it
FAULTS = [
    (b'{"conversations": [{"from": "human", "value": ' + DEEP + b"}]}", "malformed", ""),
    (b'{"conversations": [{"from": ' + DEEP + b', "value": ""}]}', "malformed|missing", ""),
    (
        b'{"messages": [{"role": "user", "content": "\\ud83d\\ude00", "y": ' + DEEP + b"}]}",
        "malformed",
        "",
    ),
    (
        b'{"conversations": [{"from": ["human"], "value": ""}]}',
        "missing",
        r"conversations\[0\].from is list, not one of human, ",
    ),
    (
        b'{"system": ["x"], "conversations": [{"from": "human", "value": "x"}]}',
        "missing",
        "the field 'system' is not a string, but list",
    ),
    (
        b'{"system": 1, "messages": [{"role": "user", "content": "x"}]}',
        "missing",
        "the field 'system' is not a string, but int",
    ),
    (b'{"text": 1}', "missing", "none of the fields 'messages', 'conversations' and 'con"),
    (b'{"messages": []}', "missing", "the field 'messages' is an empty list"),
    (b'{"messages": {}}', "missing", "the field 'messages' is not a list of messages"),
    (b"[1]", "missing", r"messages\[0\] is not an object"),
    (b"3", "malformed", "not a JSON object or a list of messages"),
    (b'{"messages": [{"role": "user"}]}', "malformed", r"messages\[0\] has no 'content'"),
    (b'{"messages": [{"content": "x"}]}', "missing", "has neither 'role' nor 'from' and 'value'"),
    (b'{"messages": [{"role": "user", "content": 1}]}', "malformed", r"messages\[0\]"),
    (
        b'{"conversations": [{"from": "human", "value": "x"}, {"from": "ego", "value": ""}]}',
        "missing",
        r'conversations\[1\].from is "ego", not one of human, ',
    ),
    (
        b'{"conversations": [{"from": "function_call", "value": "f(x)"}]}',
        "missing",
        r"conversations\[0\].value is not valid JSON",
    ),
    (
        b'{"conversations": [{"from": "function_call", "value": "[1]"}]}',
        "missing",
        "is not a call with a name and arguments",
    ),
    (b'{"messages": [{"role": "user", "content": "x"}], "tools": "{"}', "missing", "tools is not"),
    (b'{"messages": [{"role": "user", "content": "x"}], "tools": 1}', "malformed", "tools must be"),
    (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', "invalid_utf8", "lone surrogate"),
    (b'{"messages": [{"role": "user", "content": "\xff"}]}', "invalid_utf8", "not valid UTF-8"),
    (b'{"messages": ' + b"[" * 3000 + b"]" * 3000 + b"}", "malformed|missing", ""),
    (b'{"messages": [{"role": "user", "content": "x"}', "malformed", "not valid JSON"),
    (
        b'{"messages": [{"role": "user", "content": "x", "y": ' + b"[" * 400 + b"]" * 400 + b"}]}",
        "malformed",
        "",
    ),
]


@pytest.mark.parametrize("parser", ["fastest", "standard"])
@pytest.mark.parametrize(("line", "kinds", "pattern"), FAULTS)
def test_faulty_lines(
    chat: ggtok.Tokenizer,
    tmp_path: Path,
    line: bytes,
    kinds: str,
    pattern: str,
    parser: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error names the file, the line and the field; the rules skip and replace apply."""
    if parser == "standard":
        monkeypatch.setattr(jsonl, "_parser", lambda: jsonl._standard)
    good = lines([SHAPES[0][0]])
    (tmp_path / "a.jsonl").write_bytes(good + line + b"\n" + good)
    with pytest.raises(
        ggtok.DocumentError, match=rf"a.jsonl: the line at byte {len(good)}: .*{pattern}"
    ) as raised:
        chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat=True)
    assert raised.value.kind in kinds.split("|")
    alone = expected(chat, [USER, ANSWER])
    for rule in ("skip", "replace"):
        out = tmp_path / f"{rule}.npy"
        summary = chat.encode_files(tmp_path / "a.jsonl", out, chat=True, errors=rule)  # type: ignore[arg-type]
        assert getattr(summary, raised.value.kind) == 1
        assert summary.skipped == (rule == "skip")
        found = read(out)
        assert found[0] == found[-1] == alone
        assert len(found) == (2 if rule == "skip" else 3)
        if rule == "replace":
            is_text = raised.value.kind == "invalid_utf8"
            replaced = [{"role": "user", "content": "\ufffd"}]
            assert found[1] == (expected(chat, replaced) if is_text else ([], []))


def test_nul_and_long_lines(
    chat: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = {"role": "user", "content": "a\0b" * 5000}
    (tmp_path / "a.jsonl").write_bytes(lines([[message]]))
    chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat=True)
    assert read(tmp_path / "o.npy") == [expected(chat, [message])]
    monkeypatch.setattr(jsonl, "LIMIT", 1000)
    with pytest.raises(ggtok.FileError, match="a line: it is longer than"):
        chat.encode_files(tmp_path / "a.jsonl", tmp_path / "p.npy", chat=True)


class Stop(Exception):
    pass


def stop_after(after: int) -> Any:
    def progress(_: EncodeProgress) -> None:
        nonlocal after
        after -= 1
        if after < 0:
            raise Stop

    return progress


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with conversations of all shapes, some of them faulty."""
    folder = tmp_path_factory.mktemp("many")
    r = random.Random(2)
    texts = iter(documents(3, 700, 60))
    for name in ("a.jsonl", "b.jsonl.gz"):
        data = b""
        for _ in range(90):
            talk = [{"role": "user", "content": next(texts)}]
            talk.append({"role": "assistant", "content": next(texts)})
            data += lines([r.choice([talk, {"messages": talk}, r.choice(SHAPES)[0]])])
            data += b"\n" * r.randrange(2)
            if r.random() < 0.2:
                data += r.choice(FAULTS)[0] + b"\n"
        (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    return folder


@pytest.mark.parametrize("format", ["npy", pytest.param("arrow", marks=pytest.mark.full)])
def test_stopped_anywhere(
    chat: ggtok.Tokenizer, tmp_path: Path, small: None, many: Path, format: str
) -> None:
    """Files, manifest and Summary are identical wherever the run was stopped."""
    out = tmp_path / f"o.{format}"
    options: dict[str, Any] = {"chat": True, "errors": "skip"}
    whole = chat.encode_files(many, out, **options)
    assert whole.malformed and whole.missing and whole.invalid_utf8
    files = files_of(tmp_path, "o.")
    for seed in range(4 if samples.FULL else 2):
        r = random.Random(seed)
        for path in tmp_path.iterdir():
            path.unlink()
        resumed = False
        while True:
            try:
                progress = stop_after(r.choice([0, 3, 9]))
                threads = r.choice([1, 2])
                summary = chat.encode_files(
                    many, out, progress=progress, threads=threads, **options
                )
                break
            except Stop:
                resumed = True
        assert resumed and files_of(tmp_path, "o.") == files
        assert summary.as_dict() | {"seconds": 0, "resumed": 0} == whole.as_dict() | {
            "seconds": 0,
            "resumed": 0,
        }


class Clock(datetime):
    day = 1

    @classmethod
    def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
        return datetime(2026, 1, cls.day, tzinfo=tz)


def test_a_resumed_run_keeps_its_time(
    chat: ggtok.Tokenizer,
    tmp_path: Path,
    small: None,
    many: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Templates may write the date, so the plan has the time of a run's begin."""
    monkeypatch.setattr(encode_conversations, "datetime", Clock)
    template = (
        "{{ strftime_now('%d') }}{% for m in messages %}{{ m.role }} {{ m.content }}\n{% endfor %}"
    )
    options: dict[str, Any] = {"errors": "skip", "chat": {"template": template}}
    for day in range(1, 40):
        monkeypatch.setattr(Clock, "day", min(day, 28))
        try:
            chat.encode_files(many, tmp_path / "o.npy", progress=stop_after(5), **options)
            break
        except Stop:
            continue
    else:
        pytest.fail("the run never ends")
    assert day > 2
    assert (
        chat.decode(read(tmp_path / "o.npy")[-1][0]).removeprefix("<|begin_of_text|>")[:2] == "01"
    )
    monkeypatch.setattr(Clock, "day", 5)
    assert chat.encode_files(many, tmp_path / "o.npy", **options).already_complete
    options["chat"]["clock"] = lambda: datetime(2026, 1, 9)
    with pytest.raises(ggtok.InvalidValueError, match=r"was begun with other options.*: chat was"):
        chat.encode_files(many, tmp_path / "o.npy", **options)


@pytest.mark.parametrize("damage", ["mask", "time"])
def test_forged_journals_are_refused(
    chat: ggtok.Tokenizer, tmp_path: Path, small: None, many: Path, damage: str
) -> None:
    import zlib

    template = "{{ strftime_now('%d') }}{% for m in messages %}{{ m.content }}{% endfor %}"
    options: dict[str, Any] = {"errors": "skip", "chat": {"template": template}}
    with pytest.raises(Stop):
        chat.encode_files(many, tmp_path / "o.npy", progress=stop_after(30), **options)
    path = tmp_path / "o.npy.journal"
    forged = b""
    for line in path.read_bytes().splitlines():
        entry = json.loads(line[9:])
        if "checkpoint" in entry and damage == "mask":
            del entry["checkpoint"]["mask"]
        if "plan" in entry and damage == "time":
            entry["plan"]["options"]["chat"]["time"] = "yesterday"
        text = json.dumps(entry).encode()
        forged += b"%08x %s\n" % (zlib.crc32(text), text)
    path.write_bytes(forged)
    with pytest.raises(ggtok.GGTokError, match=r"contradicts itself|chat was"):
        chat.encode_files(many, tmp_path / "o.npy", **options)


def test_masks_that_cannot_be_found(
    load_fixture: Callable[[str], ggtok.Tokenizer], tmp_path: Path
) -> None:
    """WPM's tokens don't spell the text, so an answer's tokens are known only if a control token
    precedes them. That is no fault of a conversation, so the run ends."""
    (tmp_path / "a.jsonl").write_bytes(lines([[USER], [USER, ANSWER]]))
    pattern = r"^no mask .* don't spell .*; pass mask=False in chat \(--no-mask\) to write none"
    with pytest.raises(ggtok.InvalidValueError, match=pattern):
        load_fixture("wpm").encode_files(
            tmp_path / "a.jsonl", tmp_path / "o.npy", errors="skip", chat={"template": UNMARKED}
        )


@pytest.mark.parametrize("out", ["o.npy", "o.bin", full("m.arrow")])
def test_no_mask_is_written_if_none_is_wanted(
    load_fixture: Callable[[str], ggtok.Tokenizer], tmp_path: Path, out: str
) -> None:
    wpm = load_fixture("wpm")
    (tmp_path / "a.jsonl").write_bytes(lines([[USER], [USER, ANSWER]]))
    chat: dict[str, Any] = {"template": UNMARKED, "mask": False}
    summary = wpm.encode_files(tmp_path / "a.jsonl", tmp_path / out, chat=chat)
    assert summary.documents == 2
    assert not any("mask" in Path(path).name for path in summary.files)
    assert verify(str(tmp_path / out))[1] == []
    assert not list(tmp_path.glob("*mask*"))
    if out == "o.npy":
        closed: dict[str, Any] = {"add_generation_prompt": False, "continue_final_message": False}
        whole = [wpm.encode_chat(m, template=UNMARKED, **closed) for m in ([USER], [USER, ANSWER])]
        assert np.load(tmp_path / out).tolist() == [id for ids in whole for id in ids]


def test_a_character_without_a_token_is_a_fault_of_its_line(
    load_fixture: Callable[[str], ggtok.Tokenizer], tmp_path: Path
) -> None:
    """In a vocabulary whose tokens spell all other texts."""
    odd = load_fixture("bpe-odd")
    asked = {"role": "user", "content": "x"}
    talks = [[asked, {"role": "assistant", "content": text}] for text in ("\U0001fae8", "plain")]
    (tmp_path / "a.jsonl").write_bytes(lines(talks))
    options: dict[str, Any] = {"chat": {"template": UNMARKED}}
    with pytest.raises(ggtok.DocumentError, match=r"at byte 0: no mask .* don't spell") as raised:
        odd.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", **options)
    assert "pass mask=False in chat (--no-mask) to write none" in str(raised.value)
    summary = odd.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", errors="skip", **options)
    assert (summary.documents, summary.malformed, summary.skipped) == (1, 1, 1)


def test_masks_are_part_of_the_plan(chat: ggtok.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines([[USER, ANSWER]]))
    chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat={"mask": True})
    again = chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat=True)
    assert again.already_complete and (tmp_path / "o.mask.npy").exists()
    with pytest.raises(ggtok.InvalidValueError, match="chat was"):
        chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat={"mask": False})


def test_other_errors_end_the_run(
    chat: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only errors that a conversation can cause are faults of a line."""
    (tmp_path / "a.jsonl").write_bytes(lines([[USER]]))
    failed = ggtok.OutOfMemoryError("out of memory")
    monkeypatch.setattr(
        encode_conversations.api.ChatCall,
        "run",
        lambda self, given, want, bits=0: ([failed] * len(given), 0),
    )
    with pytest.raises(ggtok.OutOfMemoryError):
        chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat=True, errors="skip")


def test_chat_is_part_of_the_plan(chat: ggtok.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines([{**SHAPES[0][0], "text": "x"}]))
    chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy")
    with pytest.raises(ggtok.InvalidValueError, match="chat was null"):
        chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat=True)


def test_a_run_with_a_tuple_is_resumed_with_the_same_arguments(
    chat: ggtok.Tokenizer, tmp_path: Path
) -> None:
    """The plan has arguments as JSON, in which a tuple is a list."""
    (tmp_path / "a.jsonl").write_bytes(lines([[USER]]))
    options: dict[str, Any] = {"chat": {"chat_template_kwargs": {"x": (1, 2)}}}
    chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", **options)
    assert chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", **options).already_complete


def test_shards_have_one_time(
    chat: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the day changes while they are written, or between two runs."""

    class Later(datetime):
        days = itertools.count(1)

        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime(2026, 1, next(cls.days), tzinfo=tz)

    monkeypatch.setattr(encode_conversations, "datetime", Later)
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_bytes(lines([[USER]]))
    sources = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    options: dict[str, Any] = {
        "chat": {"template": "{{ strftime_now('%d') }} {{ messages[0].content }}"}
    }
    out = tmp_path / "o.npy"
    names = [tmp_path / f"o-0000{i}-of-00002.npy" for i in range(2)]
    chat.encode_files(sources, out, shards=2, **options)
    ids = [read(name) for name in names]
    assert ids[0] == ids[1]
    for path in tmp_path.glob("o-00001*"):
        path.unlink()
    chat.encode_files(sources, out, shards=2, **options)
    assert [read(name) for name in names] == ids


def test_blank_messages_are_not_missed(
    chat: ggtok.Tokenizer, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    """A template that trims a message of white space writes none of its text."""
    (tmp_path / "a.jsonl").write_bytes(lines([[{"role": "user", "content": " \n"}]]))
    template = "{% for m in messages %}{{ m.role }}: {{ m.content | trim }}{% endfor %}"
    chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat={"template": template})
    assert not recwarn.list


def test_prompts_without_text_of_each_shard_are_counted_once(
    chat: ggtok.Tokenizer, tmp_path: Path
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_bytes(lines([[{"role": "human", "content": "x"}]]))
    template = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}x"
    sources = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    with pytest.warns(ggtok.VocabWarning) as warned:
        chat.encode_files(sources, tmp_path / "o", shards=2, chat={"template": template})
    assert [str(w.message).split(" no text")[0] for w in warned] == ["the prompt has"] * 2


def test_prompts_without_text_are_counted_in_one_warning(
    chat: ggtok.Tokenizer, tmp_path: Path
) -> None:
    records = [[{"role": "human", "content": "x"}]] * 3 + [[USER]]
    (tmp_path / "a.jsonl").write_bytes(lines(records))
    template = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"
    with pytest.warns(ggtok.VocabWarning, match="the prompts of 3 conversations have no text"):
        chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat={"template": template})


def test_images_are_not_included(chat: ggtok.Tokenizer, tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    content = [{"type": "text", "text": "x"}, image]
    (tmp_path / "a.jsonl").write_bytes(lines([[{"role": "user", "content": content}]] * 2))
    with pytest.warns(ggtok.VocabWarning, match="2 image, audio or video parts"):
        chat.encode_files(tmp_path / "a.jsonl", tmp_path / "o.npy", chat=True)
