// Long lists and deep values, which come from files and links: bounded before they are drawn.

import { html, nothing } from "lit";
import { points } from "./points.js";
import { strings } from "./strings.js";

const t = strings.parts;

const MOST_JSON = 1_000_000; // characters; parsing and copying longer JSON would block the page
const MOST_DEPTH = 100; // JSON.stringify and messages to workers recurse; the engine's limit is lower

/** A list of which the page shows one part of at most `most` items, with buttons for the others. */
export class Parts {
  #host;
  #most;
  #part = 0;

  constructor(host, most) {
    this.#host = host;
    this.#most = most;
  }

  /** Shows the part with this item. */
  show(index) {
    this.#part = Math.max(0, Math.floor(index / this.#most));
    this.#host.requestUpdate();
  }

  /** Returns the shown items: `row(item, index)` for each of them. */
  map(items, row) {
    const last = Math.max(0, Math.ceil(items.length / this.#most) - 1);
    this.#part = Math.min(this.#part, last);
    const from = this.#part * this.#most;
    return items.slice(from, from + this.#most).map((item, i) => row(item, from + i));
  }

  /** Renders the buttons for the other parts of a list of n items, after {@link map}. */
  bar(n) {
    if (n <= this.#most) return nothing;
    const from = this.#part * this.#most;
    const to = Math.min(n, from + this.#most);
    return html`<div class="bar parts-bar">
      <span class="hint">${this.#most === 1 ? t.part(to, n) : t.items(from + 1, to, n)}</span>
      <span class="space"></span>
      <button ?disabled=${from === 0} @click=${() => this.show(from - 1)}>${strings.text.previous}</button>
      <button ?disabled=${to === n} @click=${() => this.show(to)}>${strings.text.next}</button>
    </div>`;
  }
}

/** Renders the first `most` items, and how many items follow. */
export function first(items, most, row) {
  return html`${items.slice(0, most).map(row)}${items.length > most ? html`<span class="hint">${t.more(items.length - most)}</span>` : nothing}`;
}

/** Returns the beginning of a text, with "…" if it is longer than `most` UTF-16 units. */
export const shortened = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

/** Parses JSON of bounded length and depth; throws an Error that says what is wrong with `what`. */
export function parseJson(text, what) {
  const long = text.length > MOST_JSON ? points(text) : 0;
  if (long > MOST_JSON) throw new Error(t.longJson(what, long, MOST_JSON));
  if (depthOf(text) > MOST_DEPTH) throw new Error(t.deepJson(what, MOST_DEPTH));
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(t.badJson(what, error.message));
  }
}

/** Returns how deep the brackets of JSON text are nested. */
function depthOf(text) {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const character = text[i];
    if (quoted && character === "\\") i += 1;
    else if (character === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (character === "[" || character === "{") deepest = Math.max(deepest, (depth += 1));
    else if (character === "]" || character === "}") depth -= 1;
  }
  return deepest;
}
