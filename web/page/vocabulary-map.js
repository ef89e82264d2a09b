// The map of a vocabulary: every token as a tile in the area of the token that it grows from.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { declare } from "./state.js";
import { Latest, View } from "./view.js";
import { mergesOf } from "./merge-table.js";
import { messageOf } from "./models.js";
import { Forest } from "./forest.js";
import { Gestures } from "./map-gestures.js";
import { MapCanvas } from "./map-canvas.js";
import { colourBy } from "./map-colours.js";
import { hit } from "./map-paint.js";
import { layOut } from "./map-layout.js";
import { picture, svg } from "./map-export.js";
import { save } from "./save.js";
import { Parts } from "./parts.js";
import { search } from "./search.js";
import { tokenChip, tokenPiece } from "./tokens.js";
import { count, strings } from "./strings.js";

const t = strings.map;

declare({ "map.at": -1, "map.colour": "script" });

const TARGET = { mouse: 5, pen: 5, touch: 11 }; // pixels; smaller subtrees can't be pointed at
const LEGIBLE = 30; // pixels of the token that the keys have reached
const COVERS = 0.6; // of the viewport: the part that the token must fill whose path is shown
const STRETCH = 1.15; // change of the viewport's shape after which the map is laid out again
const MOST_PATH = 12;
const MOST_CHILDREN = 60; // in a part of the list
const MOST_FOUND = 40;
const MOST_LEGEND = 14;
const KEY_ZOOM = 1.6;

const forests = new WeakMap(); // by model

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

export class VocabularyMap extends View {
  static properties = {
    forest: { state: true },
    pointed: { state: true }, // { id, x, y } of the token under the mouse, or undefined
    cursor: { state: true }, // the id that the keys have reached, or -1
    found: { state: true },
    spotlight: { state: true }, // the value of the legend's item that stands out, or undefined
    error: { state: true },
  };

  #model;
  #at = -1; // the token that the camera was sent to
  #byHand = false; // whether the user has moved the camera since
  #drawn; // what the colours depend on
  #parts = new Parts(this, MOST_CHILDREN);
  #used; // { key, counts } of the text
  #latest = new Latest((error) => (this.error = messageOf(error)));
  #observer = new ResizeObserver(() => this.#resize());
  #theme = new MutationObserver(() => this.requestUpdate());
  #scheme = matchMedia("(prefers-color-scheme: dark)");
  #rerender = () => this.requestUpdate();
  #ticket = 0;

  constructor() {
    super();
    this.cursor = -1;
    this.error = "";
  }

  connectedCallback() {
    super.connectedCallback();
    this.#theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.#scheme.addEventListener("change", this.#rerender);
    if (this.canvas) this.#observer.observe(this.canvas.container);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#theme.disconnect();
    this.#observer.disconnect();
    this.#scheme.removeEventListener("change", this.#rerender);
  }

  get #vocab() {
    return this.#model?.vocab;
  }

  get #colour() {
    const mode = this.app.values["map.colour"];
    return mode in t.colours(true) ? mode : "script";
  }

  /** The id of the token that the view shows, or -1. */
  get #focus() {
    const at = this.app.values["map.at"];
    return this.#vocab?.has(at) ? at : -1;
  }

  // ---- data ----

  willUpdate(changed) {
    const { model } = this.app;
    if (model && model !== this.#model) {
      if (this.#model) this.app.values["map.at"] = -1; // an id of another vocabulary
      this.#model = model;
      this.#at = undefined;
      this.forest = this.map = this.pointed = this.found = this.spotlight = undefined;
      this.cursor = -1;
      this.#plant(model);
    }
    if (changed.has("forest") || this.#at !== this.#focus) this.#parts.show(0);
    if (this.#colour === "text") this.#encode();
  }

  async #plant(model) {
    try {
      let forest = forests.get(model);
      if (!forest) {
        const merges = await mergesOf(model);
        await frame();
        forests.set(model, (forest = new Forest(model.vocab, merges)));
      }
      if (model === this.#model) this.forest = forest;
    } catch (error) {
      this.error = messageOf(error);
    }
  }

  #encode() {
    const { values, options, model } = this.app;
    const key = JSON.stringify([model.id, values.text, options]);
    if (this.#used?.key === key) return;
    this.#used = { key, counts: new Map() };
    this.#latest.request(async () => {
      const counts = new Map();
      for (const id of await model.tok.encode(values.text, options)) counts.set(id, (counts.get(id) ?? 0) + 1);
      if (this.#used.key !== key) return;
      this.#used = { key, counts };
      this.requestUpdate();
    });
  }

  /** Whether everything that the user asked for is drawn. */
  get settled() {
    return Boolean(this.map) && !this.#latest.busy && !this.canvas.busy && !this.isUpdatePending;
  }

  updated() {
    const container = this.querySelector(".map-tiles");
    if (container && !this.canvas) {
      this.canvas = new MapCanvas(container, { moved: () => this.#moved(), settled: () => this.#settled() });
      new Gestures(container, this.canvas, {
        moving: () => (this.#byHand = true),
        point: (x, y) => this.#point(x, y),
        pick: (x, y, pointer) => this.#pick(x, y, pointer),
      });
      this.#observer.observe(container);
    }
    this.#draw();
    if (this.map && this.#at !== this.#focus) {
      const first = this.#at === undefined;
      this.#at = this.#focus;
      this.#byHand = false;
      const moved = this.canvas.goToToken(this.#number(this.#at), { how: first ? "now" : "fly" });
      if (first && moved) this.canvas.redraw();
    }
    this.#outline();
  }

  #number(id) {
    return id < 0 ? -1 : this.map.numbers[id];
  }

  #resize() {
    const { width, height } = this.canvas;
    if (!this.map || !width || !height) return this.requestUpdate();
    clearTimeout(this.#ticket);
    const change = width / height / this.map.aspect;
    this.#ticket = setTimeout(
      () => {
        if (Math.max(change, 1 / change) > STRETCH) {
          this.map = undefined;
          this.#at = undefined;
          this.requestUpdate();
        } else {
          this.canvas.redraw();
          this.#outline();
        }
      },
      Math.max(change, 1 / change) > STRETCH ? 150 : 0,
    );
  }

  /** Lays out the map and chooses its colours if something has changed. */
  #draw() {
    const { forest, canvas } = this;
    if (!forest || !canvas?.width || !canvas.height) return;
    const vocab = this.#vocab;
    this.map ??= layOut(forest, vocab, canvas.width / canvas.height);
    const { map } = this;
    const dark = getComputedStyle(document.documentElement).colorScheme.includes("dark");
    const mode = this.#colour;
    const used = mode === "text" ? this.#used?.counts : undefined;
    const now = [map, mode, used, dark, this.spotlight];
    if (this.#drawn?.every((value, i) => value === now[i])) return;
    const recolour = !this.colours || this.#drawn?.slice(0, 4).some((value, i) => value !== now[i]);
    this.#drawn = now;
    if (recolour) this.colours = colourBy(mode, { map, forest, vocab, used, dark });
    const { has } = this.colours.legend;
    const isDimmed = has && this.spotlight !== undefined ? (n) => !has(n, this.spotlight) : undefined;
    this.shown = { vocab, isDimmed, marks: used ? Array.from(used.keys(), (id) => map.numbers[id]) : [] };
    canvas.show(map, this.colours, this.shown);
    this.requestUpdate(); // the legend
  }

  // ---- motion ----

  #moved() {
    this.pointed = undefined;
    this.#outline();
  }

  /** After a gesture, the path is that of the token that fills the view. */
  #settled() {
    this.canvas.container.classList.toggle("zoomed", this.canvas.target.zoom > 1);
    this.#outline();
    if (!this.#byHand) return;
    this.#byHand = false;
    const { width, height, camera } = this.canvas;
    const n = camera.zoom === 1 ? -1 : hit(this.map, camera, { x: width / 2, y: height / 2, width, height, smallest: COVERS * Math.min(width, height) });
    const box = n < 0 ? undefined : this.#box(n, "outer");
    const fills = box && Math.min(box.width / width, box.height / height) >= COVERS;
    const parent = n < 0 || fills ? n : this.#number(this.forest.parents[this.map.ids[n]]);
    this.#at = parent < 0 ? -1 : this.map.ids[parent];
    this.app.set({ "map.at": this.#at });
  }

  #go(id) {
    this.cursor = -1;
    this.found = undefined;
    if (id === this.#focus) {
      this.#at = id;
      this.canvas.goToToken(this.#number(id));
    } else {
      this.app.go({ "map.at": id });
    }
  }

  #zoom(factor, point) {
    this.#byHand = true;
    this.canvas.zoomBy(factor, point);
  }

  #under(x, y, pointer = "mouse") {
    const { width, height, camera } = this.canvas;
    if (!this.map) return -1;
    const n = hit(this.map, camera, { x, y, width, height, smallest: TARGET[pointer] ?? TARGET.touch });
    return n < 0 ? -1 : this.map.ids[n];
  }

  #point(x, y) {
    const id = x === undefined ? -1 : this.#under(x, y);
    this.pointed = id < 0 ? undefined : { id, x, y };
  }

  #pick(x, y, pointer) {
    const id = this.#under(x, y, pointer);
    if (id < 0) return;
    if (id === this.#focus) this.#zoom(2, { x: x / this.canvas.width, y: y / this.canvas.height });
    else this.#go(id);
  }

  #keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.map) return;
    const { forest, cursor } = this;
    const at = cursor < 0 ? this.#focus : cursor;
    const level = forest.childrenOf(at < 0 ? -1 : forest.parents[at]);
    const next = (step) => (at < 0 ? level[0] : level[Math.max(0, Math.min(level.length - 1, level.indexOf(at) + step))]);
    const [child = at] = forest.childrenOf(at);
    const actions = {
      ArrowRight: () => this.#reach(next(1)),
      ArrowLeft: () => this.#reach(next(-1)),
      ArrowDown: () => this.#reach(child),
      ArrowUp: () => this.#reach(at < 0 ? -1 : forest.parents[at]),
      Enter: () => this.#go(at),
      Escape: () => this.#go(this.#focus < 0 ? -1 : forest.parents[this.#focus]),
      Home: () => this.#go(-1),
      "+": () => this.#zoom(KEY_ZOOM),
      "=": () => this.#zoom(KEY_ZOOM),
      "-": () => this.#zoom(1 / KEY_ZOOM),
    };
    if (!(event.key in actions)) return;
    event.preventDefault();
    actions[event.key]();
  };

  /** Moves the keys' token, and the camera if the token is too small to read or isn't in view. */
  #reach(id) {
    this.cursor = id;
    this.pointed = undefined;
    if (id < 0) return this.#go(-1);
    const { left, top, width, height } = this.#box(this.#number(id), "outer", this.canvas.target);
    const legible = Math.min(width, height) >= LEGIBLE || this.canvas.target.zoom >= 0.99 * this.canvas.mostZoom;
    const inView = left > -1 && top > -1 && left + width < this.canvas.width + 1 && top + height < this.canvas.height + 1;
    if (!legible || !inView) {
      this.#byHand = true;
      this.canvas.goToToken(this.#number(id), { room: 2.5 });
    }
  }

  /** Returns where a token's subtree, or its own tile, is on the screen. */
  #box(n, rectangles, { x, y, zoom } = this.canvas.camera) {
    const [x0, y0, x1, y1] = this.map[rectangles].subarray(4 * n, 4 * n + 4);
    const { width, height } = this.canvas;
    return { left: (x0 - x) * width * zoom, top: (y0 - y) * height * zoom, width: (x1 - x0) * width * zoom, height: (y1 - y0) * height * zoom };
  }

  #outline() {
    if (!this.map) return;
    for (const [name, id] of [["pointed", this.pointed?.id ?? -1], ["cursor", this.cursor < 0 ? this.#focus : this.cursor]]) {
      const { style } = this.querySelector(`.map-outline.${name}`);
      style.visibility = id < 0 ? "hidden" : "visible";
      if (id < 0) continue;
      const { width: all, height: most } = this.canvas;
      const box = this.#box(this.#number(id), "outer");
      const left = Math.max(0, box.left);
      const top = Math.max(0, box.top);
      Object.assign(style, { left: `${left}px`, top: `${top}px`, width: `${Math.max(0, Math.min(all, box.left + box.width) - left)}px`, height: `${Math.max(0, Math.min(most, box.top + box.height) - top)}px` });
    }
  }

  // ---- search ----

  async #search(query) {
    const vocab = this.#vocab;
    if (!query) return void (this.found = undefined);
    const matches = await search(this.#model, "text", query, false);
    const ids = [];
    for (let id = 0; id < vocab.size; id += 1) if (matches[id]) ids.push(id);
    ids.sort((a, b) => vocab.length(a) - vocab.length(b) || a - b);
    const stored = await this.#model.tok.find(query).catch(() => null);
    const exact = [stored, /^\d+$/.test(query) ? Number(query) : null].filter((id) => vocab.has(id));
    this.found = { query, n: ids.length, ids: [...new Set([...exact, ...ids.slice(0, MOST_FOUND)])].slice(0, MOST_FOUND) };
  }

  #find = (event) => {
    const { value } = event.target;
    this.#latest.request(() => this.#search(value));
  };

  #flyToFirst = async (event) => {
    event.preventDefault();
    const { value } = event.target.elements.query;
    await this.#search(value);
    if (this.found?.ids.length) this.#go(this.found.ids[0]);
  };

  // ---- pictures ----

  get #title() {
    const focus = this.#focus;
    return focus < 0 ? this.#model.name : `${this.#model.name}: ${this.#vocab.visible(focus)}`;
  }

  get #picture() {
    const style = getComputedStyle(this);
    const { map, colours, shown, canvas, forest } = this;
    const { size } = forest;
    const paper = getComputedStyle(document.body).backgroundColor;
    const note = `${t.caption(size, forest.merges.size > 0)} · ggtok`;
    return { ...shown, map, colours, camera: canvas.target, font: canvas.font, title: this.#title, note, legend: colours.legend, ink: style.color, paper };
  }

  #savePng() {
    picture(this.#picture).toBlob((blob) => save(blob, `${t.fileName(this.#model.name)}.png`), "image/png");
  }

  #saveSvg() {
    save(new Blob([svg(this.#picture)], { type: "image/svg+xml" }), `${t.fileName(this.#model.name)}.svg`);
  }

  // ---- rendering ----

  #link(id) {
    return html`<button class="quiet map-go" @click=${() => this.#go(id)}>${tokenChip(this.#vocab, id)}</button>`;
  }

  /** Renders what is known about a token; `token` renders other tokens. */
  #facts(id, token) {
    const { forest } = this;
    const vocab = this.#vocab;
    const { names, of } = vocab.scripts;
    const rank = forest.merges.rank[id];
    const parts = forest.partsOf(id)?.filter((part) => part >= 0);
    const parent = forest.parents[id];
    const grown = forest.descendants[id];
    const facts = [t.id(id), rank < 0 ? nothing : t.rank(rank), t.bytes(vocab.length(id)), names[of[id]]].filter((fact) => fact !== nothing);
    const children = forest.childrenOf(id).subarray(0, 6);
    return html`<p class="map-name code"><bdi>${tokenPiece(vocab, id)}</bdi></p>
      <p class="number">${facts.join(" · ")}</p>
      ${parts
        ? html`<p>${t.madeOf} ${parts.map((part, i) => html`${i ? " + " : nothing}${token(part)}`)}</p>`
        : parent >= 0
          ? html`<p>${t.prefix} ${token(parent)}</p>`
          : nothing}
      <p>${t.grows(grown)}${token === this.#chip && children.length ? html`: ${Array.from(children, (child) => html`${token(child)} `)}${children.length < forest.childrenOf(id).length ? "…" : nothing}` : nothing}</p>`;
  }

  #chip = (id) => html`<span class="code">${tokenChip(this.#vocab, id)}</span>`;

  #card() {
    const { pointed } = this;
    if (!pointed || !this.forest) return nothing;
    const { width, height } = this.canvas;
    const x = pointed.x > width / 2 ? `right: ${width - pointed.x + 14}px` : `left: ${pointed.x + 14}px`;
    const y = pointed.y > height / 2 ? `bottom: ${height - pointed.y + 14}px` : `top: ${pointed.y + 14}px`;
    return html`<div class="map-card" aria-hidden="true" .style="${x}; ${y}">${this.#facts(pointed.id, this.#chip)}</div>`;
  }

  #path() {
    const { forest } = this;
    const focus = this.#focus;
    const path = forest && focus >= 0 ? forest.pathTo(focus, MOST_PATH) : [];
    return html`<nav class="path" aria-label=${t.list}>
      <button ?disabled=${focus < 0} @click=${() => this.#go(-1)}>${t.top}</button>
      ${path.map(
        (id) =>
          html`<span aria-hidden="true">›</span>
            <button aria-current=${id === focus ? "true" : nothing} @click=${() => this.#go(id)}><bdi class="parts code">${tokenPiece(this.#vocab, id)}</bdi></button>`,
      )}
    </nav>`;
  }

  #legend() {
    const { colours } = this;
    if (!colours) return nothing;
    const { items, scale, has } = colours.legend;
    const swatch = (i) => html`<i .style="background: ${colours.css[i]}"></i>`;
    return html`<div class="map-legend" role="group" aria-label=${t.legend}>
      ${scale ? html`<span>${scale.from}</span><span class="map-scale">${scale.swatches.map(swatch)}</span><span>${scale.to}</span>` : nothing}
      ${items.slice(0, MOST_LEGEND).map((item) => {
        const content = html`${swatch(item.swatch)}${item.name}${item.n === undefined ? nothing : html` <span class="number">${count(item.n)}</span>`}`;
        if (!has) return html`<span class="map-item">${content}</span>`;
        const on = this.spotlight === item.value;
        return html`<button class="quiet map-item" aria-pressed=${on} @click=${() => (this.spotlight = on ? undefined : item.value)}>${content}</button>`;
      })}
      ${items.length > MOST_LEGEND ? html`<span class="hint">${t.others(items.length - MOST_LEGEND)}</span>` : nothing}
    </div>`;
  }

  #list() {
    const { forest, found } = this;
    if (!forest) return nothing;
    const item = (id) =>
      html`<li>
        <button class="map-row" @click=${() => this.#go(id)}>
          <span class="code">${tokenChip(this.#vocab, id)}</span><span class="number">${forest.descendants[id] ? count(forest.descendants[id]) : nothing}</span>
        </button>
      </li>`;
    if (found) {
      return html`<p class="hint" role="status">${found.ids.length ? t.matches(Math.max(found.n, found.ids.length)) : t.notFound}</p>
        <ul class="map-list">${found.ids.map(item)}</ul>`;
    }
    const focus = this.#focus;
    const children = Array.from(forest.childrenOf(focus));
    return html`${focus < 0 ? html`<p>${t.roots(children.length, forest.merges.size > 0)}</p>` : html`<div class="map-facts">${this.#facts(focus, (id) => this.#link(id))}</div>`}
      ${children.length ? html`<ul class="map-list" aria-label=${t.list}>${this.#parts.map(children, item)}</ul>` : nothing} ${this.#parts.bar(children.length)}`;
  }

  #announced() {
    const { cursor, forest } = this;
    if (cursor < 0 || !forest) return "";
    const vocab = this.#vocab;
    return t.announced(vocab.spoken(cursor), [t.id(cursor), t.grows(forest.descendants[cursor])]);
  }

  render() {
    const { model } = this.app;
    if (!model) return nothing;
    const { forest } = this;
    const merges = forest ? forest.merges.size > 0 : model.info.type === "bpe";
    const empty = this.#colour === "text" && !this.app.values.text;
    return html`<p role="alert" class="error">${this.error}</p>
      <div class="map">
        <div class="map-main">
          <div class="map-bar">
            ${this.#path()}
            <label class="inline"
              >${t.colour}
              <select .value=${live(this.#colour)} @change=${(event) => this.#recolour(event.target.value)}>
                ${Object.entries(t.colours(merges)).map(([name, text]) => html`<option value=${name} ?selected=${name === this.#colour}>${text}</option>`)}
              </select></label
            >
            <div class="map-zoom" role="group" aria-label=${t.zoom}>
              <button aria-label=${t.zoomIn} title=${t.zoomIn} @click=${() => this.#zoom(KEY_ZOOM)}>+</button>
              <button aria-label=${t.zoomOut} title=${t.zoomOut} @click=${() => this.#zoom(1 / KEY_ZOOM)}>−</button>
              <button aria-label=${t.all} title=${t.all} @click=${() => this.#go(-1)}>⤢</button>
            </div>
            <button ?disabled=${!forest} aria-label=${t.save("PNG")} title=${t.save("PNG")} @click=${() => this.#savePng()}>PNG</button>
            <button ?disabled=${!forest} aria-label=${t.save("SVG")} title=${t.save("SVG")} @click=${() => this.#saveSvg()}>SVG</button>
          </div>
          <div class="map-stage">
            <div class="map-tiles" tabindex="0" role="application" aria-label=${t.label(model.name, model.vocab.size, merges)} aria-description=${t.keys} @keydown=${this.#keys}>
              <div class="map-outline cursor"></div>
              <div class="map-outline pointed"></div>
            </div>
            ${forest ? nothing : html`<p class="map-busy">${t.busy}</p>`} ${this.#card()}
          </div>
          ${this.#legend()}
          ${empty ? html`<p class="hint">${t.noText}</p>` : nothing}
          <p class="hint">${merges ? t.hint.merges : t.hint.prefixes} <span class="map-keys">${t.keys}</span></p>
        </div>
        <aside class="map-side" aria-label=${t.list}>
          <form class="map-search" @submit=${this.#flyToFirst}>
            <label class="field"
              ><span>${t.search}</span>
              <input type="search" name="query" spellcheck="false" autocapitalize="off" autocomplete="off" placeholder=${t.placeholder} @input=${this.#find} />
            </label>
          </form>
          ${this.#list()}
        </aside>
      </div>
      <p class="hidden" role="status">${this.#announced()}</p>`;
  }

  #recolour(mode) {
    this.spotlight = undefined;
    this.app.set({ "map.colour": mode });
  }
}

customElements.define("gg-vocabulary-map", VocabularyMap);
