"""The page works in Firefox. The other test_page_*.py test it thoroughly in Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ggtok
from tests.support.vocabularies import FIXTURES
from tests.web.hosts import FIREFOX_NEEDED, PAGE

if TYPE_CHECKING:
    from tests.web.firefox import Firefox

IDS = """(list) => [...document.querySelectorAll(`${list} [role=option]`)].map((one) =>
  Number(one.getAttribute("aria-label").split(" ").at(-1)))"""
SHOWS = """(selector, text) =>
  [...document.querySelectorAll(selector)].some((one) => one.textContent.includes(text))"""


MAP_SETTLED = "() => document.querySelector('gg-vocabulary-map')?.settled"
WHEEL = """() => {
  const tiles = document.querySelector(".map-tiles");
  const { left, top } = tiles.getBoundingClientRect();
  const at = { clientX: left + 50, clientY: top + 50 };
  for (let i = 0; i < 8; i += 1)
    tiles.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, ...at, cancelable: true }));
}"""
# Returns the number of visible layers of the map, and the share of opaque pixels in the first.
PIXELS = """() => {
  const visible = [...document.querySelectorAll(".map-tiles canvas")].filter((one) =>
    one.style.visibility === "visible");
  const { width, height } = visible[0];
  const { data } = visible[0].getContext("2d").getImageData(0, 0, width, height);
  let drawn = 0;
  for (let i = 0; i < data.length; i += 4) if (data[i] + data[i + 1] + data[i + 2] > 0) drawn += 1;
  return [visible.length, drawn / (width * height)];
}"""


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Firefox]:
    pytest.importorskip("websockets", reason=FIREFOX_NEEDED)
    from tests.web import firefox

    if not firefox.command():
        pytest.skip(FIREFOX_NEEDED)
    window = firefox.Firefox(tmp_path)
    yield window
    window.close()


def test_every_view_works(firefox: Firefox) -> None:
    names = ["chat.gguf", "gguf/spm.gguf"]
    chat, spm = (ggtok.load(FIXTURES / name) for name in names)
    firefox.open(PAGE.as_uri())
    for n, name in enumerate(names):
        firefox.wait("() => document.querySelector('#model-file')?.disabled === false")
        firefox.choose("#model-file", FIXTURES / name)
        firefox.wait("n => document.querySelector('gg-app').app.models.length === n", n + 1)
        firefox.run("() => document.querySelector('#tab-models').click()")
    firefox.run("() => document.querySelector('#tab-text').click()")
    text = "Hi there, \u4f60 the 123"
    firefox.run("() => document.querySelector('gg-app').app.set({ text: '' })")
    firefox.wait("() => document.querySelector('textarea.editor')?.focus() ?? true")
    firefox.type(text)
    firefox.wait("text => document.querySelector('gg-text-view').result.text === text", text)
    expected = spm.encode(text)
    firefox.wait(f"(list, n) => ({IDS})(list).length === n", "gg-text-view", len(expected))
    assert firefox.run(IDS, "gg-text-view") == expected

    firefox.run("() => document.querySelector('#tab-compare').click()")
    for tok in (chat, spm):
        firefox.wait(SHOWS, "gg-compare-view", str(len(tok.encode(text))))
    firefox.run("() => document.querySelector('#tab-vocabulary').click()")
    firefox.wait(SHOWS, "gg-vocabulary-view .found", f"{spm.n_tokens:,} tokens")
    firefox.run("() => document.querySelector('gg-app').app.use(0)")
    firefox.run("() => document.querySelector('gg-app').app.set({ 'vocabulary.panel': 'map' })")
    firefox.wait(MAP_SETTLED)
    at = "() => document.querySelector('gg-app').app.values['map.at']"
    firefox.run("() => document.querySelector('.map-row').click()")
    assert firefox.wait(at) > 0
    firefox.wait(MAP_SETTLED)
    zoom = "() => document.querySelector('gg-vocabulary-map').canvas.camera.zoom > 2"
    firefox.run(WHEEL)
    firefox.wait(zoom)
    firefox.wait(MAP_SETTLED)
    assert firefox.run(PIXELS) == [1, 1]
    firefox.run("() => document.querySelector('#tab-chat').click()")
    sample = firefox.run(
        "() => JSON.parse(document.querySelector('gg-app').app.values['chat.messages'])"
    )
    expected = chat.encode_chat(sample)
    firefox.run("() => document.querySelector('gg-app').app.set({ 'chat.show': 'tokens' })")
    firefox.wait(f"(list, n) => ({IDS})(list).length === n", "gg-chat-view", len(expected))
    assert firefox.run(IDS, "gg-chat-view") == expected
    firefox.run("() => document.querySelector('gg-app').app.set({ 'chat.show': 'origins' })")
    firefox.wait(SHOWS, ".prompt [data-from='2 user']", sample[1]["content"])
    for view, shown in (("why", "123"), ("file", "tokenizer.ggml.model")):
        firefox.run("view => document.querySelector(`#tab-${view}`).click()", view)
        firefox.wait(SHOWS, f"main[data-view={view}] gg-{view}-view", shown)
    assert firefox.run("() => window.violations") is None
    assert not firefox.log

    # The check of violations above can fail: a forbidden script is a violation.
    script = (
        "() => document.body.append(Object.assign(document.createElement('script'), { text: '1' }))"
    )
    firefox.run(script)
    assert firefox.wait("() => window.violations") == ["script-src-elem: inline"]
