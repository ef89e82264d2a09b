// The forest of tokens: each token's parent is another token that its text begins with.
//
// With merges, the parent is the left part of the token's first merge; without merges, it is the
// longest token that the text begins with.

import { hierarchy, treemap } from "d3-hierarchy";
import { html, nothing } from "lit";
import { Element } from "./view.js";
import { tokenClass, tokenPiece } from "./tokens.js";
import { strings } from "./strings.js";

const t = strings.vocabulary;

const LEVELS = 2;
const MOST_TILES = 900; // tiles on each level, at most
const MOST_CHILDREN = 300; // children of one token to show at once
const MOST_PATH = 30; // tokens of the path to the token that is zoomed to, counted from its end
const HEADER = 18; // height of a tile's caption above its inner tiles, in pixels
const SMALLEST = 5; // pixels; a tile with a shorter side isn't drawn

/** Returns { parent: the parent of each id or -1, children: lists of ids by parent, sizes: tokens
 * in each subtree, roots }. */
export function forestOf(vocab, merges) {
  const { size } = vocab;
  const parent = new Int32Array(size).fill(-1);
  if (merges.length) {
    for (let i = 0; i < merges.length; i += 3) {
      const left = merges[i];
      const made = merges[i + 2];
      if (left >= 0 && made >= 0 && made !== left && parent[made] < 0 && vocab.length(left) < vocab.length(made)) parent[made] = left;
    }
  } else {
    longestPrefixes(vocab, parent);
  }
  const order = Array.from({ length: size }, (_, id) => id).sort((a, b) => vocab.length(b) - vocab.length(a));
  const sizes = new Int32Array(size).fill(1);
  const children = new Map();
  const roots = [];
  for (const id of order) {
    if (parent[id] < 0) {
      if (vocab.length(id)) roots.push(id);
      continue;
    }
    sizes[parent[id]] += sizes[id];
    const list = children.get(parent[id]);
    if (list) list.push(id);
    else children.set(parent[id], [id]);
  }
  const bySize = (a, b) => sizes[b] - sizes[a] || a - b;
  for (const list of children.values()) list.sort(bySize);
  return { parent, children, sizes, roots: roots.sort(bySize) };
}

/** Sets each token's parent to its longest proper prefix among the tokens. In sorted order, a stack
 * of prefixes finds it; looking up every prefix would take time quadratic in the token's length. */
function longestPrefixes(vocab, parent) {
  const { data, offsets } = vocab;
  const compare = (a, b) => {
    const n = Math.min(vocab.length(a), vocab.length(b));
    const p = offsets[a];
    const q = offsets[b];
    for (let i = 0; i < n; i += 1) if (data[p + i] !== data[q + i]) return data[p + i] - data[q + i];
    return vocab.length(a) - vocab.length(b) || a - b;
  };
  const begins = (a, b) => {
    if (vocab.length(a) >= vocab.length(b)) return false;
    for (let i = 0; i < vocab.length(a); i += 1) if (data[offsets[a] + i] !== data[offsets[b] + i]) return false;
    return true;
  };
  const sorted = [];
  for (let id = 0; id < vocab.size; id += 1) if (vocab.length(id) && !vocab.isSpecial(id)) sorted.push(id);
  sorted.sort(compare);
  const open = [];
  for (const id of sorted) {
    while (open.length && !begins(open.at(-1), id)) open.pop();
    if (open.length) parent[id] = open.at(-1);
    open.push(id);
  }
}

/** A zoomable picture of the forest, as nested tiles. Property: `forest`. */
export class Forest extends Element {
  static properties = {
    vocab: { attribute: false },
    forest: { attribute: false },
    focus: { state: true }, // the id of the token zoomed to, or -1
    from: { state: true }, // the index of the first child of `focus` that is shown
    at: { state: true }, // the index of the tile that the Tab key reaches
    box: { state: true },
  };

  #observer = new ResizeObserver(([{ contentRect }]) => {
    const { width, height } = contentRect;
    if (width && (width !== this.box?.width || height !== this.box?.height)) this.box = { width, height };
  });

  constructor() {
    super();
    this.#zoomTo(-1);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#observer.disconnect();
    this.observed = undefined;
  }

  willUpdate(changed) {
    if (changed.has("forest")) this.#zoomTo(-1);
    const moved = ["forest", "focus", "from", "box"].some((name) => changed.has(name));
    if (moved && this.forest && this.box) this.tiles = this.#layout();
  }

  updated() {
    const tiles = this.querySelector(".tiles");
    if (tiles && tiles !== this.observed) {
      this.observed = tiles;
      this.#observer.observe(tiles);
    }
  }

  #zoomTo(id, from = 0) {
    this.focus = id;
    this.from = from;
    this.at = 0;
  }

  #zoom(id, from) {
    this.#zoomTo(id, from);
    this.updateComplete.then(() => this.querySelector(".tiles button")?.focus());
  }

  #children(id) {
    return id < 0 ? this.forest.roots : (this.forest.children.get(id) ?? []);
  }

  #tree(id, level, total) {
    const { sizes } = this.forest;
    const list = this.#children(id);
    if (level === LEVELS || list.length === 0) return { id, own: sizes[id] };
    const from = level === 0 ? this.from : 0;
    const share = level === 0 ? 1 : sizes[id] / total;
    const to = from + Math.min(MOST_CHILDREN, Math.ceil(MOST_TILES * share));
    const children = list.slice(from, to).map((child) => this.#tree(child, level + 1, total));
    const own = list.slice(to).reduce((sum, child) => sum + sizes[child], 0);
    if (own) children.push({ rest: to, level, own });
    return { id, own: 0, children };
  }

  #layout() {
    const { width, height } = this.box;
    const total = this.focus < 0 ? this.vocab.size : this.forest.sizes[this.focus];
    const root = hierarchy(this.#tree(this.focus, 0, total)).sum(({ own }) => own);
    treemap().size([width, height]).paddingInner(1).paddingTop(({ depth }) => (depth ? HEADER : 0)).paddingLeft(1).paddingRight(1).paddingBottom(1)(root);
    return root.descendants().filter((tile) => tile.x1 - tile.x0 >= SMALLEST && tile.y1 - tile.y0 >= SMALLEST && tile.depth > 0);
  }

  #path() {
    const path = [];
    for (let id = this.focus; id >= 0 && path.length < MOST_PATH; id = this.forest.parent[id]) path.unshift(id);
    return path;
  }

  #keys = (event) => {
    const button = event.target.closest("button");
    if (!button || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const tile = this.tiles[Number(button.dataset.n)];
    const siblings = this.tiles.filter(({ parent, data }) => parent === tile.parent && (data.id !== undefined || data.level === 0));
    const to = {
      ArrowRight: siblings[siblings.indexOf(tile) + 1],
      ArrowLeft: siblings[siblings.indexOf(tile) - 1],
      ArrowUp: tile.parent,
      ArrowDown: this.tiles.find(({ parent, data }) => parent === tile && data.id !== undefined),
    }[event.key];
    const n = this.tiles.indexOf(to);
    if (n < 0) return;
    this.at = n;
    this.updateComplete.then(() => this.querySelector(`[data-n="${n}"]`)?.focus());
  };

  /** Whether the tile has room for its text, or for the beginning of a long one. */
  #fits({ data, x0, y0, x1, y1 }) {
    const width = this.vocab.parts(data.id).reduce((sum, { kind, text }) => sum + (kind === "text" ? 8 * text.length : 9 + 7 * String(text).length), 8);
    return x1 - x0 >= Math.min(width, 64) && y1 - y0 > 15;
  }

  #tile(tile, n) {
    const { data, x0, y0, x1, y1, value, depth } = tile;
    const place = `left: ${x0}px; top: ${y0}px; width: ${x1 - x0}px; height: ${y1 - y0}px`;
    if (data.id === undefined) {
      const label = t.forestMore(value);
      if (data.level > 0) return html`<span class="rest" .style=${place} title=${label}>${x1 - x0 > 90 && y1 - y0 > 20 ? label : nothing}</span>`;
      return html`<button class="rest" data-n=${n} tabindex=${n === this.at ? 0 : -1} .style=${place} @click=${() => this.#zoom(this.focus, data.rest)}>
        <span>${label}</span>
      </button>`;
    }
    const label = t.forestLabel(this.vocab.spoken(data.id), value);
    return html`<button
      class="${tokenClass(this.vocab, data.id)}${depth === 1 ? " outer" : ""}"
      data-n=${n}
      tabindex=${n === this.at ? 0 : -1}
      .style=${place}
      title=${label}
      aria-label=${label}
      @click=${() => this.#zoom(data.id)}
      >${this.#fits(tile) ? html`<span>${tokenPiece(this.vocab, data.id)}</span>` : nothing}</button
    >`;
  }

  render() {
    const { forest, focus, from } = this;
    return html`<nav class="path" aria-label=${t.forest}>
        <button ?disabled=${focus < 0 && from === 0} @click=${() => this.#zoom(-1)}>${t.forestTop}</button>
        ${forest &&
        this.#path().map(
          (id) =>
            html`<span aria-hidden="true">›</span>
              <button ?disabled=${id === focus && from === 0} @click=${() => this.#zoom(id)}>
                <bdi class="parts code">${tokenPiece(this.vocab, id)}</bdi>
              </button>`,
        )}
        ${from ? html`<span aria-hidden="true">› ${t.forestFrom(from)}</span>` : nothing}
        <span class="space"></span>
        ${forest && focus >= 0
          ? html`<span class="hint number">${strings.token.id} ${focus}, ${strings.models.tokens(forest.sizes[focus])}</span>`
          : nothing}
      </nav>
      <div class="tiles" role="group" aria-label=${t.forest} @keydown=${this.#keys}>
        ${forest && this.tiles ? this.tiles.map((tile, n) => this.#tile(tile, n)) : nothing}
      </div>
      ${forest && this.#children(focus).length === 0 ? html`<p class="hint">${t.forestLeaf}</p>` : nothing}`;
  }
}

customElements.define("gg-forest", Forest);
