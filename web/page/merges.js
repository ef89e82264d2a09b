// The merges of a word as a tree that the user builds and undoes step by step.
//
// Symbols are the bottom row. A merge is a bar above the two bars that it joins.

import { html, nothing } from "lit";
import { Element } from "./view.js";
import { byteLength, spoken, textTemplate } from "./bytes.js";
import { count, strings } from "./strings.js";

const t = strings.why;

const MOST_LEAVES = 160; // symbols to show in the picture, at most
const MOST_ROWS = 200; // merges to list in the table, at most
const FEW = 32; // symbols; a word up to this length is shown as a whole

/**
 * Returns the nodes of a word's forest, and its roots in order. A node covers the symbols from
 * `first` to `last`; `step` is the number of its merge, from 1 (0 for a symbol).
 */
export function forestOf(symbols, merges) {
  const nodes = symbols.map((text, i) => ({ first: i, last: i, text, step: 0, height: 0, parent: undefined }));
  const at = [...nodes]; // for each first symbol, the largest node so far that begins there
  merges.forEach((merge, i) => {
    const left = at[merge.at];
    const right = at[left.last + 1];
    const node = {
      first: left.first,
      last: right.last,
      text: merge.left + merge.right,
      step: i + 1,
      height: Math.max(left.height, right.height) + 1,
      parent: undefined,
      merge,
    };
    left.parent = node;
    right.parent = node;
    at[merge.at] = node;
    nodes.push(node);
  });
  return { nodes, roots: nodes.filter(({ parent }) => parent === undefined).sort((a, b) => a.first - b.first) };
}

/** Returns the index of the first symbol of a word's n-th token. A symbol that isn't a token
 * becomes several tokens, one for each byte. */
export function symbolOfToken({ symbols, merges, tokens }, n) {
  const fell = ({ how }) => how === "byte" || how === "unknown";
  let k = 0;
  for (const root of forestOf(symbols, merges).roots) {
    if (k >= tokens.length) break;
    const most = k + (fell(tokens[k]) ? byteLength(root.text) : 1);
    for (k += 1; k < Math.min(most, tokens.length) && fell(tokens[k]); ) k += 1;
    if (n < k) return root.first;
  }
  return Math.max(0, symbols.length - 1);
}

/**
 * Properties:
 *   symbols, merges  of a word, or of a token
 *   focus            the index of a symbol: of a long word, only the tree with this symbol is shown
 */
export class Merges extends Element {
  static properties = {
    symbols: { attribute: false },
    merges: { attribute: false },
    focus: { type: Number },
    step: { state: true },
  };

  constructor() {
    super();
    this.symbols = [];
    this.merges = [];
    this.focus = 0;
    this.step = 0;
  }

  willUpdate(changed) {
    if (!["symbols", "merges", "focus"].some((name) => changed.has(name))) return;
    const { nodes, roots } = forestOf(this.symbols, this.merges);
    const long = this.symbols.length > FEW;
    const root = roots.find(({ last }) => last >= this.focus) ?? roots[0];
    this.range = long && root ? { first: root.first, last: root.last } : { first: 0, last: this.symbols.length - 1 };
    this.whole = !long;
    this.nodes = nodes.filter(({ first, last }) => first >= this.range.first && last <= this.range.last);
    this.steps = this.nodes.filter(({ step }) => step).sort((a, b) => a.step - b.step);
    this.step = this.steps.length;
  }

  #go(step) {
    this.step = Math.max(0, Math.min(this.steps.length, step));
  }

  #priority({ rank, score }) {
    return rank === null ? t.score(score) : t.rank(rank);
  }

  /** Describes the last step: as a template or, if `plain`, as text. */
  #said(plain) {
    const { step, steps } = this;
    if (!steps.length) return t.noMerge;
    if (!step) return t.before(steps.length);
    const { merge } = steps[step - 1];
    const [left, right] = [merge.left, merge.right].map((text) =>
      plain ? spoken(text) : html`<bdi class="code sunk">${textTemplate(text, 40)}</bdi>`,
    );
    const parts = [t.step(step, steps.length), left, "+", right, this.#priority(merge)];
    return plain ? parts.join(" ") : html`${parts.map((part) => html`${part} `)}`;
  }

  /** Returns the nodes that are the symbols after the current step. */
  #now() {
    const done = new Set(this.steps.slice(0, this.step));
    const exists = (node) => node.step === 0 || done.has(node);
    return this.nodes.filter((node) => exists(node) && !(node.parent && done.has(node.parent))).sort((a, b) => a.first - b.first);
  }

  #bar(node, done, newest, rows) {
    const left = node.first - this.range.first + 1;
    const right = node.last - this.range.first + 2;
    const shown = node.step === 0 || done.has(node);
    const kind = `${node.step ? "bar-merge" : "bar-symbol"}${shown ? "" : " waiting"}${node === newest ? " newest" : ""}`;
    return html`<span class=${kind} .style=${`grid-column: ${left} / ${right}; grid-row: ${rows - node.height}`}
      ><bdi>${textTemplate(node.text, 24)}</bdi>${node.step ? html`<small class="number">${node.merge.rank ?? ""}</small>` : nothing}</span
    >`;
  }

  #picture() {
    const done = new Set(this.steps.slice(0, this.step));
    const newest = this.steps[this.step - 1];
    const rows = Math.max(0, ...this.nodes.map(({ height }) => height)) + 1;
    const n = this.range.last - this.range.first + 1;
    if (n > MOST_LEAVES) return html`<p class="hint">${t.tooWide(n, MOST_LEAVES)}</p>`;
    const now = this.#now().map(({ text }) => spoken(text)).join(" | ");
    return html`<div class="bars-scroll" tabindex="0" role="group" aria-label=${t.tree}>
      <div class="bars code" role="img" aria-label=${t.now(now)} .style=${`grid-template-columns: repeat(${n}, minmax(max-content, 1fr))`}>
        ${this.nodes.map((node) => this.#bar(node, done, newest, rows))}
      </div>
    </div>`;
  }

  #table() {
    const rows = this.steps.slice(0, MOST_ROWS);
    if (!rows.length) return nothing;
    return html`<details class="merge-table" open>
      <summary>${t.mergesInOrder(this.steps.length)}</summary>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th class="number">${t.table.step}</th>
              <th>${t.table.left}</th>
              <th>${t.table.right}</th>
              <th>${t.table.made}</th>
              <th class="number">${rows[0].merge.rank === null ? t.table.score : t.table.rank}</th>
            </tr>
          </thead>
          <tbody>
            ${rows.map(
              (node, i) =>
                html`<tr class=${i + 1 === this.step ? "current" : i < this.step ? "" : "waiting"}>
                  <td class="number">
                    <button class="quiet" aria-current=${i + 1 === this.step ? "step" : nothing} aria-label=${t.goTo(i + 1)} @click=${() => this.#go(i + 1)}>
                      ${count(i + 1)}
                    </button>
                  </td>
                  <td class="code"><bdi>${textTemplate(node.merge.left, 40)}</bdi></td>
                  <td class="code"><bdi>${textTemplate(node.merge.right, 40)}</bdi></td>
                  <td class="code"><bdi>${textTemplate(node.text, 40)}</bdi></td>
                  <td class="number">${node.merge.rank === null ? shortNumber(node.merge.score) : count(node.merge.rank)}</td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
      ${this.steps.length > MOST_ROWS ? html`<p class="hint">${t.moreRows(this.steps.length - MOST_ROWS)}</p>` : nothing}
    </details>`;
  }

  render() {
    if (!this.symbols.length) return nothing;
    const { step, steps } = this;
    return html`
      ${this.whole ? nothing : html`<p class="hint">${t.part}</p>`}
      ${steps.length
        ? html`<div class="bar stepper" role="group" aria-label=${t.stepper}>
            <button ?disabled=${step === 0} @click=${() => this.#go(0)}>${t.first}</button>
            <button ?disabled=${step === 0} @click=${() => this.#go(step - 1)}>${t.back}</button>
            <button ?disabled=${step === steps.length} @click=${() => this.#go(step + 1)}>${t.forward}</button>
            <button ?disabled=${step === steps.length} @click=${() => this.#go(steps.length)}>${t.last}</button>
            <input
              type="range"
              min="0"
              max=${steps.length}
              .value=${String(step)}
              aria-label=${t.slider}
              aria-valuetext=${this.#said(true)}
              @input=${(event) => this.#go(Number(event.target.value))}
            />
          </div>`
        : nothing}
      <p class="said">${this.#said()}</p>
      ${this.#picture()} ${this.#table()}
    `;
  }
}

customElements.define("gg-merges", Merges);

/** Formats a number with up to six significant digits. */
export function shortNumber(x) {
  return Number.isFinite(x) ? String(Number(x.toPrecision(6))) : String(x);
}
