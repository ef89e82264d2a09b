// The forest of tokens: each token's parent is the token that its text begins with.
//
// With merges, the parent is the left part of the merge that makes the token; without, the longest
// other token that the piece begins with.

import { hierarchy, partition } from "d3-hierarchy";
import { html, nothing } from "lit";
import { repeat } from "lit/directives/repeat.js";
import { Element } from "./view.js";
import { tokenClass, tokenPiece } from "./tokens.js";
import { count, strings } from "./strings.js";

const t = strings.vocabulary;

const LEVELS = 5;
const MOST_CHILDREN = 48;
const NARROWEST = 0.0015; // of the picture's width

/** { children: lists of ids by parent, sizes: tokens of each subtree, roots } */
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

/** Longest tokens first would be quadratic in a token's length; this takes the sorted order. */
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

/** A zoomable picture of the forest. Property `forest`; event "token-find" (detail: id). */
export class Forest extends Element {
  static properties = {
    vocab: { attribute: false },
    forest: { attribute: false },
    focus: { state: true },
    at: { state: true },
  };

  constructor() {
    super();
    this.focus = -1;
    this.at = "";
  }

  willUpdate(changed) {
    if (changed.has("forest")) this.focus = -1;
    if ((changed.has("forest") || changed.has("focus")) && this.forest) this.nodes = this.#layout();
  }

  #tree(id, level) {
    const { children, sizes, roots } = this.forest;
    const list = id < 0 ? roots : (children.get(id) ?? []);
    const node = { id, own: id < 0 ? 0 : 1, below: list.length };
    if (level >= LEVELS || list.length === 0) {
      node.own = id < 0 ? 0 : sizes[id];
      return node;
    }
    const shown = list.slice(0, MOST_CHILDREN);
    node.children = shown.map((child) => this.#tree(child, level + 1));
    const rest = list.slice(MOST_CHILDREN).reduce((sum, child) => sum + sizes[child], 0);
    if (rest) node.children.push({ id: -2, own: rest, below: 0 });
    return node;
  }

  #layout() {
    const root = hierarchy(this.#tree(this.focus, 0)).sum(({ own }) => own);
    partition().size([1, LEVELS + 1])(root);
    return root.descendants().filter((node) => node.x1 - node.x0 >= NARROWEST);
  }

  #zoom(id) {
    this.focus = id;
    this.at = "";
    this.updateComplete.then(() => this.querySelector(".bars button")?.focus());
  }

  #path() {
    const path = [];
    for (let id = this.focus; id >= 0; id = this.forest.parent[id]) path.unshift(id);
    return path;
  }

  #keys = (event) => {
    const button = event.target.closest("button");
    if (!button || !event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const node = this.nodes[Number(button.dataset.n)];
    const level = this.nodes.filter(({ depth }) => depth === node.depth);
    const to = {
      ArrowRight: level[level.indexOf(node) + 1],
      ArrowLeft: level[level.indexOf(node) - 1],
      ArrowUp: node.parent,
      ArrowDown: node.children?.find((child) => this.nodes.includes(child)),
    }[event.key];
    const n = this.nodes.indexOf(to);
    if (n >= 0) {
      this.at = String(n);
      this.updateComplete.then(() => this.querySelector(`[data-n="${n}"]`)?.focus());
    }
  };

  #bar(node, n) {
    const { id } = node.data;
    const width = node.x1 - node.x0;
    const place = `left: ${100 * node.x0}%; width: ${100 * width}%; top: ${34 * node.depth}px`;
    if (id === -2) return html`<span class="bar-rest" .style=${place} title=${t.forestMore(node.value)}></span>`;
    const label = id < 0 ? t.forestTop : this.vocab.visible(id);
    return html`<button
      class=${id < 0 ? "top" : tokenClass(this.vocab, id)}
      data-n=${n}
      tabindex=${String(n) === (this.at || "0") ? 0 : -1}
      .style=${place}
      title=${t.forestLabel(label, node.value)}
      aria-label=${t.forestLabel(label, node.value)}
      @focus=${() => (this.at = String(n))}
      @click=${() => this.#zoom(n === 0 && id >= 0 ? this.forest.parent[id] : id)}
    >
      ${width < 0.012 ? nothing : id < 0 ? t.forestTop : tokenPiece(this.vocab, id)}
    </button>`;
  }

  render() {
    if (!this.forest) return nothing;
    const path = this.#path();
    return html`<nav class="path" aria-label=${t.forest}>
        <button ?disabled=${this.focus < 0} @click=${() => this.#zoom(-1)}>${t.forestTop}</button>
        ${path.map(
          (id) =>
            html`<span aria-hidden="true">›</span>
              <button ?disabled=${id === this.focus} @click=${() => this.#zoom(id)}><bdi class="parts code">${tokenPiece(this.vocab, id)}</bdi></button>`,
        )}
        ${this.focus < 0
          ? nothing
          : html`<span class="space"></span><span class="hint number">${count(this.forest.sizes[this.focus])} · id ${this.focus}</span>`}
      </nav>
      <div class="bars" role="group" aria-label=${t.forest} @keydown=${this.#keys} .style=${`height: ${34 * (LEVELS + 1)}px`}>
        ${repeat(
          this.nodes,
          (_, n) => n,
          (node, n) => this.#bar(node, n),
        )}
      </div>`;
  }
}

customElements.define("gg-forest", Forest);
