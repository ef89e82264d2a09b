"""The map of a vocabulary: its tiles, gestures, keys, search, colours, links and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

import ggtok
from tests.support.vocabularies import FIXTURES, fixture
from tests.web.access import set_state, violations
from tests.web.hostile import MARKUP, vocabulary

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from tests.web.pages import Shown

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")

MAP = {"view": "vocabulary", "vocabulary.panel": "map"}
SETTLED = "() => document.querySelector('gg-vocabulary-map')?.settled"
AT = "() => document.querySelector('gg-app').app.values['map.at']"
ZOOM = "() => document.querySelector('gg-vocabulary-map').canvas.camera.zoom"
PATH = ".map .path button"


def show(shown: Shown, path: Path, **values: Any) -> None:
    shown.open(path)
    set_state(shown, {**MAP, **values})
    settled(shown)


def settled(shown: Shown) -> None:
    shown.page.wait_for_function(SETTLED)
    # The path in the view follows the camera in the next rendering.
    shown.page.evaluate("() => document.querySelector('gg-vocabulary-map').updateComplete")
    shown.page.wait_for_function(SETTLED)


def at(shown: Shown) -> int:
    found: int = shown.page.evaluate(AT)
    return found


def press(shown: Shown, *keys: str) -> None:
    for key in keys:
        shown.page.locator(".map-tiles").press(key)
        settled(shown)


def centre(shown: Shown, id: int) -> tuple[float, float]:
    """Returns where the middle of a token's own tile is on the page."""
    found = shown.page.evaluate(
        """id => {
          const { map, canvas } = document.querySelector("gg-vocabulary-map");
          const i = 4 * map.numbers[id];
          const [x0, y0, x1, y1] = map.inner.subarray(i, i + 4);
          const { x, y, zoom } = canvas.camera;
          const { left, top, width, height } = canvas.container.getBoundingClientRect();
          const at = [((x0 + x1) / 2 - x) * zoom * width, ((y0 + y1) / 2 - y) * zoom * height];
          return [left + at[0], top + at[1]];
        }""",
        id,
    )
    return found[0], found[1]


# ---- tiles ----

# Returns [tokens outside their parent, the sum of areas of own tiles, tokens without a tile].
TILES = """() => {
  const { map, forest } = document.querySelector("gg-vocabulary-map");
  const [outer, inner] = [map.outer, map.inner];
  const E = 1e-5;
  const within = (a, i, b, j) => a[i] >= b[j] - E && a[i + 1] >= b[j + 1] - E
    && a[i + 2] <= b[j + 2] + E && a[i + 3] <= b[j + 3] + E;
  let outside = 0, area = 0, empty = 0;
  for (let id = 0; id < forest.size; id += 1) {
    const i = 4 * map.numbers[id];
    const parent = forest.parents[id];
    if (!within(inner, i, outer, i)) outside += 1;
    if (parent >= 0 && !within(outer, i, outer, 4 * map.numbers[parent])) outside += 1;
    const own = (inner[i + 2] - inner[i]) * (inner[i + 3] - inner[i + 1]);
    area += own;
    if (!(own > 0)) empty += 1;
  }
  return [outside, area, empty];
}"""

# Returns the share of pixels that differ from the background, and of points that have a token.
PIXELS = """() => {
  const { canvas } = document.querySelector("gg-vocabulary-map");
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(canvas.container).backgroundColor;
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  const visible = [...canvas.container.querySelectorAll("canvas")].filter((one) =>
    one.style.visibility === "visible");
  const { width, height } = visible[0];
  const { data } = visible[0].getContext("2d").getImageData(0, 0, width, height);
  let tokens = 0;
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] && (data[i] !== r || data[i + 1] !== g || data[i + 2] !== b)) tokens += 1;
  return [visible.length, tokens / (width * height)];
}"""


@pytest.mark.parametrize("name", ["bpe-llama3", "bpe-gemma4", "spm", "ugm", "wpm", "rwkv"])
def test_the_tiles_of_all_tokens_fill_the_map(shown: Shown, name: str) -> None:
    show(shown, fixture(name))
    outside, area, empty = shown.page.evaluate(TILES)
    assert outside == empty == 0
    assert area == pytest.approx(1, abs=1e-3)
    for zoom in range(2):
        visible, share = shown.page.evaluate(PIXELS)
        assert visible == 1
        assert share > 0.95
        press(shown, "+")
        assert shown.page.evaluate(ZOOM) > 1 + zoom / 4


def test_a_token_is_in_the_area_of_its_first_merges_left_part(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    show(shown, fixture("bpe-llama3"))
    first: dict[bytes, bytes] = {}
    for left, right in ggtok.vocabulary(fixture("bpe-llama3")).merges:
        first.setdefault(left + right, left)
    found = shown.page.evaluate(
        "() => Array.from(document.querySelector('gg-vocabulary-map').forest.parents)"
    )
    pieces = [tok.token_to_piece(id) for id in range(tok.n_tokens)]
    for id, piece in enumerate(pieces):
        left = first.get(piece)
        assert left == (None if found[id] < 0 else pieces[found[id]]), piece
    assert shown.page.locator(".segments", has_text="Map of merges").count() == 1


@pytest.mark.parametrize("name", ["wpm", "ugm", "spm"])
def test_without_merges_a_token_is_in_the_area_of_its_longest_prefix(
    shown: Shown, name: str
) -> None:
    tok = ggtok.load(fixture(name))
    show(shown, fixture(name))
    found = shown.page.evaluate(
        "() => Array.from(document.querySelector('gg-vocabulary-map').forest.parents)"
    )
    special = set(
        shown.page.evaluate(
            """() => { const { vocab } = document.querySelector('gg-app').app.model;
            return [...Array(vocab.size).keys()].filter((id) => vocab.isSpecial(id)); }"""
        )
    )
    pieces = [tok.token_to_piece(id) for id in range(tok.n_tokens)]
    ids: dict[bytes, set[int]] = {}
    for id, piece in enumerate(pieces):
        if id not in special:
            ids.setdefault(piece, set()).add(id)
    for id, piece in enumerate(pieces):
        prefixes = [piece[:n] for n in range(len(piece) - 1, 0, -1)] if id not in special else []
        expected = next((ids[prefix] for prefix in prefixes if prefix in ids), {-1})
        assert found[id] in expected, piece
    assert shown.page.locator(".segments", has_text="Map of prefixes").count() == 1


def test_a_chain_of_prefixes_has_every_depth(shown: Shown, tmp_path: Path) -> None:
    n = 2000
    path = vocabulary(tmp_path / "chain.gguf", [b"a" * i for i in range(1, n)])
    show(shown, path)
    outside, _, _ = shown.page.evaluate(TILES)
    assert outside == 0
    tok = ggtok.load(path)
    (deepest,) = (id for id in range(tok.n_tokens) if tok.token_to_piece(id) == b"a" * (n - 1))
    set_state(shown, {**MAP, "map.at": deepest})
    settled(shown)
    assert "nothing grows from it" in shown.page.locator(".map-facts").inner_text()


# ---- ways to move ----


def test_the_wheel_zooms_to_the_pointer_and_sets_the_path(shown: Shown) -> None:
    show(shown, fixture("bpe-llama3"))
    tok = ggtok.load(fixture("bpe-llama3"))
    (space,) = tok.encode(" ", add_special=False)
    x, y = centre(shown, space)
    shown.page.mouse.move(x, y)
    for _ in range(12):
        shown.page.mouse.wheel(0, -200)
    shown.page.wait_for_function(f"() => ({ZOOM})() > 5")
    settled(shown)
    assert at(shown) == space
    after = centre(shown, space)
    assert abs(after[0] - x) < 300 and abs(after[1] - y) < 300
    assert shown.page.locator(PATH).count() == 2
    for _ in range(20):
        shown.page.mouse.wheel(0, 200)
    shown.page.wait_for_function(f"() => ({ZOOM})() === 1")
    settled(shown)
    assert at(shown) == -1


def test_a_click_goes_to_a_token_and_a_drag_moves(shown: Shown) -> None:
    show(shown, fixture("bpe-llama3"))
    big = shown.page.evaluate(
        "() => document.querySelector('gg-vocabulary-map').forest.childrenOf(-1)[0]"
    )
    shown.page.mouse.click(*centre(shown, big))
    settled(shown)
    assert at(shown) == big
    press(shown, "+", "+", "+")
    before = centre(shown, big)
    box = shown.page.locator(".map-tiles").bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    shown.page.mouse.move(x, y)
    shown.page.mouse.down()
    shown.page.mouse.move(x - 60, y - 40, steps=4)
    shown.page.mouse.up()
    settled(shown)
    moved = centre(shown, big)
    assert (moved[0] - before[0], moved[1] - before[1]) != (0, 0)
    for got, sent in zip(moved, (before[0] - 60, before[1] - 40), strict=True):
        assert abs(got - sent) < 62  # the map's edge may stop it


def test_back_goes_back_in_the_map(shown: Shown) -> None:
    """Clicks, keys and the path are steps for the browser's Back; the wheel isn't."""
    show(shown, fixture("bpe-llama3"))
    shown.page.wait_for_function("() => history.state?.view === 'vocabulary'")
    rows = shown.page.locator(".map-row")
    places = [-1]
    for _ in range(2):
        rows.first.click()
        settled(shown)
        places.append(at(shown))
    assert len(set(places)) == 3
    shown.page.wait_for_function("at => history.state.places['map.at'] === at", arg=places[-1])
    entries = shown.page.evaluate("history.length")
    box = shown.page.locator(".map-tiles").bounding_box()
    assert box
    shown.page.mouse.move(box["x"] + 50, box["y"] + 50)
    for _ in range(5):
        shown.page.mouse.wheel(0, -200)
    settled(shown)
    shown.page.wait_for_function("at => history.state.places['map.at'] === at", arg=at(shown))
    assert shown.page.evaluate("history.length") == entries
    for place in reversed(places[:-1]):
        shown.page.go_back()
        shown.page.wait_for_function(f"place => ({AT})() === place", arg=place)
        settled(shown)
    assert shown.page.locator("main[data-view=vocabulary]").count() == 1
    assert shown.page.evaluate(ZOOM) == 1
    shown.page.go_forward()
    shown.page.wait_for_function(f"place => ({AT})() === place", arg=places[1])


def test_every_tile_with_a_label_can_be_clicked(shown: Shown) -> None:
    show(shown, fixture("bpe-llama3"))
    labels = shown.page.evaluate(
        """() => {
          const { map, canvas } = document.querySelector("gg-vocabulary-map");
          const { width, height, camera } = canvas;
          const small = [];
          for (let n = 0; n < map.ids.length; n += 1) {
            const [x0, y0, x1, y1] = map.inner.subarray(4 * n, 4 * n + 4);
            const w = (x1 - x0) * width * camera.zoom, h = (y1 - y0) * height * camera.zoom;
            if (w >= 16 && h >= 11 && h < 14) small.push(map.ids[n]);
          }
          return small;
        }"""
    )
    assert labels
    for id in labels[:3]:
        shown.page.mouse.click(*centre(shown, id))
        settled(shown)
        assert at(shown) == id
        press(shown, "Home")


def test_two_fingers_zoom(shown: Shown) -> None:
    show(shown, fixture("bpe-llama3"))
    shown.page.evaluate(
        """() => {
          const tiles = document.querySelector(".map-tiles");
          const { left, top } = tiles.getBoundingClientRect();
          const send = (type, pointerId, x, y) => {
            const at = { clientX: left + x, clientY: top + y, bubbles: true };
            tiles.dispatchEvent(new PointerEvent(type, { pointerId, pointerType: "touch", ...at }));
          };
          send("pointerdown", 7, 200, 200);
          send("pointerdown", 8, 240, 200);
          for (let i = 1; i <= 10; i += 1) {
            send("pointermove", 7, 200 - 10 * i, 200);
            send("pointermove", 8, 240 + 10 * i, 200);
          }
          send("pointerup", 7, 100, 200);
          send("pointerup", 8, 340, 200);
        }"""
    )
    settled(shown)
    assert 4 < shown.page.evaluate(ZOOM) < 7  # from 40 to 240 pixels


def test_the_keyboard_reaches_every_depth(shown: Shown) -> None:
    show(shown, fixture("bpe-llama3"))
    cursor = "() => document.querySelector('gg-vocabulary-map').cursor"
    deepest, depth = shown.page.evaluate(
        """() => {
          const { map } = document.querySelector("gg-vocabulary-map");
          const depth = Math.max(...map.depths);
          return [map.ids[map.depths.indexOf(depth)], depth];
        }"""
    )
    path = shown.page.evaluate(
        "id => document.querySelector('gg-vocabulary-map').forest.pathTo(id)", deepest
    )
    assert len(path) == depth + 1 > 3
    shown.page.locator(".map-tiles").focus()
    for step, id in enumerate(path):
        press(shown, "ArrowDown" if step else "ArrowRight")
        for _ in range(600):
            if shown.page.evaluate(cursor) == id:
                break
            shown.page.keyboard.press("ArrowRight")
        assert shown.page.evaluate(cursor) == id
    status = shown.page.locator("gg-vocabulary-map [role=status].hidden").inner_text()
    assert f"id {deepest}" in status
    press(shown, "Enter")
    assert at(shown) == deepest
    assert shown.page.locator(PATH).count() == len(path) + 1
    for parent in [*path[-2::-1], -1]:
        press(shown, "Escape")
        assert at(shown) == parent
    press(shown, "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowUp")
    assert shown.page.evaluate(cursor) == -1


def test_the_list_and_the_path_go_to_tokens(shown: Shown) -> None:
    show(shown, fixture("bpe-llama3"))
    rows = shown.page.locator(".map-row")
    n = shown.page.evaluate(
        "() => document.querySelector('gg-vocabulary-map').forest.childrenOf(-1).length"
    )
    assert rows.count() == min(n, 60)
    rows.first.click()
    settled(shown)
    first = at(shown)
    children = shown.page.evaluate(
        "id => [...document.querySelector('gg-vocabulary-map').forest.childrenOf(id)]", first
    )
    assert rows.count() == min(len(children), 60)
    rows.first.click()
    settled(shown)
    assert at(shown) == children[0]
    shown.page.locator(PATH).nth(1).click()
    settled(shown)
    assert at(shown) == first
    shown.page.locator(PATH).first.click()
    settled(shown)
    assert at(shown) == -1
    assert shown.page.evaluate(ZOOM) == 1


def test_the_search_flies_to_a_token(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    show(shown, fixture("bpe-llama3"))
    field = shown.page.get_by_label("Find a token")
    field.fill("the")
    shown.page.locator(".map-row").first.wait_for()
    field.press("Enter")
    shown.page.wait_for_function(f"() => ({AT})() >= 0")
    settled(shown)
    pieces = [tok.token_to_piece(id) for id in range(tok.n_tokens)]
    matches = [(len(piece), id) for id, piece in enumerate(pieces) if b"the" in piece.lower()]
    assert at(shown) == min(matches)[1]
    x, y = centre(shown, at(shown))
    box = shown.page.locator(".map-tiles").bounding_box()
    assert box and box["x"] < x < box["x"] + box["width"]
    assert box["y"] < y < box["y"] + box["height"]
    field.fill("330")
    field.press("Enter")
    shown.page.wait_for_function(f"() => ({AT})() === 330")
    field.fill("no token has this")
    shown.page.get_by_text("No token contains this.").wait_for()


def test_the_link_has_the_place(shown: Shown) -> None:
    show(shown, fixture("bpe-llama3"), **{"map.at": 330, "map.colour": "length"})
    path = shown.page.locator(PATH).all_inner_texts()
    assert len(path) > 2
    shown.page.get_by_role("button", name="Copy link").click()
    fragment = shown.page.evaluate("location.hash")
    assert "map.at=330" in fragment and "map.colour=length" in fragment
    press(shown, "Home")
    assert shown.page.locator(PATH).count() == 1
    shown.page.wait_for_function("before => location.hash !== before", arg=fragment)
    shown.page.evaluate("fragment => { location.hash = fragment; }", fragment)
    shown.page.wait_for_function(f"() => ({AT})() === 330")
    settled(shown)
    assert shown.page.locator(PATH).all_inner_texts() == path
    # Another vocabulary has other ids.
    shown.open(fixture("wpm"))
    set_state(shown, MAP)
    settled(shown)
    assert at(shown) == -1


def test_without_motion_the_camera_jumps(browser: Browser) -> None:
    from tests.web.pages import Shown

    context = browser.new_context(reduced_motion="reduce")
    shown = Shown(context.new_page())
    show(shown, fixture("bpe-llama3"))
    same = "({ camera, target }) => camera === target"
    for key in "+", "Enter", "Home":
        shown.page.locator(".map-tiles").press(key)
        assert shown.page.evaluate(f"({same})(document.querySelector('gg-vocabulary-map').canvas)")
    context.close()
    assert not shown.errors


# ---- what it shows ----


def test_the_card_has_the_facts_of_the_token_under_the_mouse(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    show(shown, fixture("bpe-llama3"), **{"map.at": 330})
    id = at(shown)
    shown.page.mouse.move(*centre(shown, id))
    card = shown.page.locator(".map-card")
    card.wait_for()
    text = card.inner_text()
    tree = tok.merge_tree(id)
    assert f"id {id} · merge {(tree.merges[-1].rank or 0) + 1:,}" in text
    assert f"{len(tok.token_to_piece(id))} bytes" in text
    assert "Made of" in text
    left, right = tree.pairs[0].left, tree.pairs[0].right
    chips = card.locator("p", has_text="Made of").locator(".code").all_inner_texts()
    assert [chip.replace("\u00b7", " ") for chip in chips] == [left, right]
    shown.page.mouse.move(5, 5)
    card.wait_for(state="detached")


def test_colours_have_a_legend(shown: Shown) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    show(shown, fixture("bpe-llama3"))
    legend = shown.page.locator(".map-legend")
    fills = "() => { const { colours } = document.querySelector('gg-vocabulary-map'); \
return Array.from(colours.of, (swatch) => colours.css[swatch]); }"
    seen = set()
    text = "the cat sat on the mat"
    for mode in ("script", "rank", "length", "text"):
        set_state(shown, {**MAP, "map.colour": mode, "text": text})
        settled(shown)
        found = shown.page.evaluate(fills)
        assert len(found) == tok.n_tokens
        seen.add(tuple(found))
        assert legend.inner_text().strip()
    assert len(seen) == 4
    ids = tok.encode(text)
    once = sum(ids.count(id) == 1 for id in set(ids))
    items = " ".join(legend.inner_text().split())
    assert items.startswith(f"used once {once} used several times {len(set(ids)) - once} ")
    shown.page.get_by_label("Colour by").select_option("Script")
    settled(shown)
    before = shown.page.evaluate(PIXELS)
    latin = legend.get_by_role("button", name="Latin")
    latin.click()
    settled(shown)
    assert latin.get_attribute("aria-pressed") == "true"
    assert shown.page.evaluate(PIXELS)[0] == before[0]
    dimmed = shown.page.evaluate(
        """() => {
          const { shown, map, forest } = document.querySelector("gg-vocabulary-map");
          return [...map.ids].filter((id, n) => shown.isDimmed(n));
        }"""
    )
    (word,), (digit,) = (tok.encode(text, add_special=False) for text in (" the", "1"))
    assert digit in dimmed and word not in dimmed


def test_pictures_are_saved(shown: Shown, tmp_path: Path) -> None:
    path = vocabulary(tmp_path / "m&<x>.gguf", [text.encode() for text in MARKUP])
    for source in fixture("bpe-llama3"), path:
        show(shown, source)
        with shown.page.expect_download() as saved:
            shown.page.get_by_role("button", name="Save as PNG").click()
        assert saved.value.suggested_filename.endswith("-tokens.png")
        png = Path(saved.value.path()).read_bytes()
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = (int.from_bytes(png[i : i + 4]) for i in (16, 20))
        assert width == 2400 and 600 < height < 5000
        with shown.page.expect_download() as saved:
            shown.page.get_by_role("button", name="Save as SVG").click()
        picture = ElementTree.parse(saved.value.path()).getroot()
        space = "{http://www.w3.org/2000/svg}"
        assert {node.tag for node in picture.iter()} == {
            space + tag for tag in ("svg", "title", "rect", "g", "path", "text", "tspan")
        }
        name = shown.page.evaluate("() => document.querySelector('gg-app').app.model.name")
        assert picture.findtext(f"{space}title") == name
        assert len(picture.findall(f".//{space}path")) > 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_map_is_accessible_and_fits_a_phone(browser: Browser, scheme: Any) -> None:
    from tests.web.pages import Shown

    for width in 1280, 390:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        shown = Shown(context.new_page())
        for values in ({}, {"map.at": 330}, {"map.colour": "rank"}, {"map.colour": "text"}):
            show(shown, FIXTURES / "chat.gguf", **values)
            assert not violations(shown), f"{values}, {width} pixels"
            assert shown.page.evaluate("document.documentElement.scrollWidth") == width
        context.close()
        assert not shown.errors


def test_the_map_follows_the_window_and_the_theme(shown: Shown) -> None:
    show(shown, fixture("bpe-llama3"))
    colours = "() => document.querySelector('gg-vocabulary-map').colours.css.join()"
    light = shown.page.evaluate(colours)
    shown.page.get_by_label("Theme").select_option("Dark")
    shown.page.wait_for_function(f"light => ({colours})() !== light", arg=light)
    aspect = "() => document.querySelector('gg-vocabulary-map').map?.aspect"
    wide = shown.page.evaluate(aspect)
    shown.page.set_viewport_size({"width": 500, "height": 900})
    shown.page.wait_for_function(f"wide => ({aspect})() < wide", arg=wide)
    settled(shown)
    visible, share = shown.page.evaluate(PIXELS)
    assert visible == 1 and share > 0.95
