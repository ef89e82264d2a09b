"""The references for the template engine: llama.cpp's engine, compiled from the pinned source
distribution, and jinja2, set up as in transformers.

Both return a kind and a text: "O" and the output, "C" and a compilation error, "E" and a rendering
error, "X" if the reference crashed, or "T" if it timed out.
"""

from __future__ import annotations

import copy
import json
import os
import select
import subprocess
import tarfile
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any

from fixtures import fetch
from ggtok.errors import TemplateError
from ggtok.native import jinja
from tests.support import samples

Answer = tuple[str, str | bytes]
NOW = datetime(2026, 3, 7, 15, 4, 5, tzinfo=timezone.utc)
_VENDOR = "llama_cpp_python-0.3.36/vendor/llama.cpp/"
_SOURCES = ("common/", "vendor/nlohmann/", "ggml/include/")
_COMPILED = (
    "jinja/lexer.cpp jinja/parser.cpp jinja/runtime.cpp jinja/value.cpp jinja/string.cpp "
    "json.cpp unicode.cpp"
).split()


def ggtok_answer(source: str, values: dict[str, Any], dialect: jinja.Dialect) -> Answer:
    """Returns the result from ggtok's engine."""
    try:
        template = jinja.compile(source, dialect)
    except TemplateError as e:
        return "C", str(e)
    try:
        text = template.render(values, NOW).text
    except TemplateError as e:
        return "E", str(e)
    return "O", text


def build() -> Path:
    """Returns the reference program, which the first call compiles (in a minute)."""
    folder = fetch.cache_folder() / f"jinja-{fetch.SHA256[:12]}"
    program = folder / "reference"
    if program.exists():
        return program
    folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fetch._download(folder)) as sdist:
        for member in sdist:
            name = member.name.removeprefix(_VENDOR)
            if member.isfile() and name.startswith(_SOURCES):
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                source = sdist.extractfile(member)
                assert source is not None
                target.write_bytes(source.read())
    (folder / fetch.SDIST).unlink()
    command = ["g++", "-std=c++17", "-O1", "-DNDEBUG", "-I", "common", "-I", "vendor"]
    command += ["-I", "ggml/include", str(Path(__file__).parent / "jinja_reference.cpp")]
    command += [f"common/{name}" for name in _COMPILED] + ["-o", "unfinished"]
    subprocess.run(command, cwd=folder, check=True)
    (folder / "unfinished").rename(program)
    return program


class LlamaCpp:
    """llama.cpp's engine in a separate process, because some templates crash it or never finish."""

    def __init__(self) -> None:
        self._program = build()
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, source: str, values: dict[str, Any]) -> Answer:
        process = self._process or self._start()
        template, variables = source.encode(), json.dumps(values).encode()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(b"%d %d\n" % (len(template), len(variables)) + template + variables)
            process.stdin.flush()
            if not select.select([process.stdout], [], [], 5)[0]:
                self.close()
                return "T", ""
            kind, _, size = process.stdout.readline().decode().partition(" ")
            text = process.stdout.read(int(size)) if size else b""
        except BrokenPipeError:
            kind, text = "", b""
        if not kind:
            self.close()
            return "X", ""
        try:
            return kind, text.decode()
        except UnicodeDecodeError:
            return kind, text

    def _start(self) -> subprocess.Popen[bytes]:
        import resource

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))

        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [str(self._program)],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TZ": "UTC"},
            preexec_fn=limit,
        )
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@cache
def _environment() -> Any:
    """Returns an environment like the one in transformers for chat templates. (With --full, tests
    use the original instead.)"""
    from jinja2 import TemplateError, nodes
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class TemplateNamespace(Namespace):
        def __init__(*args: Any, **fields: Any) -> None:
            found = dict(*args[1:], **fields)
            any(map(check_field, found))
            Namespace.__init__(args[0], found)

        def __setitem__(self, name: str, value: Any) -> None:
            check_field(name)
            super().__setitem__(name, value)

    def check_field(name: object) -> None:
        if isinstance(name, str) and name.startswith("_"):
            raise TemplateError(f"a namespace has no private field {name!r}")

    class Generation(Extension):
        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

        def _body(self, caller: Any) -> Any:
            return caller()

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    def tojson(
        value: Any,
        ensure_ascii: bool = False,
        indent: Any = None,
        separators: Any = None,
        sort_keys: bool = False,
    ) -> str:
        options: dict[str, Any] = {"indent": indent, "separators": separators}
        return json.dumps(value, ensure_ascii=ensure_ascii, sort_keys=sort_keys, **options)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["namespace"] = TemplateNamespace
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda text: datetime.now().strftime(text)
    return environment


def transformers(source: str, values: dict[str, Any]) -> Answer:
    """Renders with jinja2 in transformers' environment for chat templates."""
    try:
        if samples.FULL:
            from transformers.utils import chat_template_utils

            template = chat_template_utils._cached_compile_jinja_template(source)
        else:
            template = _environment().from_string(source)
    except Exception as e:
        return "C", f"{type(e).__name__}: {e}"
    try:
        return "O", template.render(**copy.deepcopy(values))
    except Exception as e:
        return "E", f"{type(e).__name__}: {e}"
