// Tokens as coloured pieces.
//
//   tokenPiece(vocab, id)            the content of one piece: text, visible white space, and the
//                                    bytes of incomplete characters
//   tokenChip(vocab, id)             a piece in its colour, for prose and tables
//   <gg-tokens .vocab .ids ...>      a list of any length; only its visible rows are in the page
//   <gg-token .vocab .token>         the facts about one token
//
// Tokens, texts and ids come from files and users, so the page inserts them only as text nodes.

import { html, nothing } from "lit";
import { Element } from "./view.js";
import { points } from "./points.js";
import { Rows } from "./rows.js";
import { HUES } from "./vocabulary-table.js";
import { strings } from "./strings.js";

const t = strings.token;

function part({ kind, text }) {
  switch (kind) {
    case "text":
      return text;
    case "more":
      return html`<i class="more">${t.hiddenBytes(text)}</i>`;
    case "code":
    case "byte":
      return html`<i class=${kind} title=${kind === "byte" ? t.partial : nothing}>${text}</i>`;
    default:
      return html`<i class=${kind}>${text}</i>`;
  }
}

export function partsTemplate(parts) {
  return parts.length ? parts.map(part) : html`<i class="more">${t.empty}</i>`;
}

export const tokenPiece = (vocab, id) => partsTemplate(vocab.parts(id));

/** Returns the classes for a token's colour and kind. */
export function tokenClass(vocab, id, hue = vocab.isSpecial(id) ? 0 : vocab.hue(id)) {
  return vocab.isSpecial(id) ? `token special${hue % 2 ? " odd" : ""}` : `token h${hue}`;
}

export function tokenChip(vocab, id, hue) {
  return html`<bdi class=${tokenClass(vocab, id, hue)}>${tokenPiece(vocab, id)}</bdi>`;
}

/** Returns the numbers of the colours of tokens in a row. A token has its own colour, unless that
 * is the same as the colour before it or the next one on the colour wheel. Special tokens have two
 * colours in turn. */
export function huesOf(vocab, ids) {
  const hues = new Uint8Array(ids.length);
  for (let i = 0; i < ids.length; i += 1) {
    const before = i ? hues[i - 1] : 4;
    if (vocab.isSpecial(ids[i])) {
      hues[i] = i && vocab.isSpecial(ids[i - 1]) ? 1 - (before % 2) : 0;
      continue;
    }
    const own = vocab.hue(ids[i]);
    const apart = Math.abs(own - before);
    const alike = i && !vocab.isSpecial(ids[i - 1]) && Math.min(apart, HUES - apart) < 2;
    hues[i] = alike ? (own + 3) % HUES : own;
  }
  return hues;
}

const known = new WeakMap(); // colours of lists of ids

/** Returns the number of the colour of a token in a list. */
export function hueAt(vocab, ids, i) {
  if (!known.has(ids)) known.set(ids, huesOf(vocab, ids));
  return known.get(ids)[i];
}

/** Renders tokens in a row. */
export function tokenChips(vocab, ids) {
  const hues = huesOf(vocab, ids);
  return ids.map((id, i) => tokenChip(vocab, id, hues[i]));
}

const MOST_UNBROKEN = 24; // bytes of a token that a line's end doesn't break
const MOST_IN_BLOCK = 160;
const MOST_BYTES_IN_BLOCK = 900;

/**
 * Returns the index of the first token of each block in a list. A block ends after a line feed,
 * after many tokens or bytes, and at each multiple of `split`.
 */
export function blocksOf(vocab, ids, split, byLines) {
  const starts = [];
  let begin = 0;
  let bytes = 0;
  for (let i = 0; i < ids.length; i += 1) {
    bytes += vocab.length(ids[i]);
    const next = i + 1;
    if (
      (byLines && vocab.breaks[ids[i]]) ||
      bytes >= MOST_BYTES_IN_BLOCK ||
      next - begin >= MOST_IN_BLOCK ||
      (split > 0 && next % split === 0)
    ) {
      starts.push(begin);
      begin = next;
      bytes = 0;
    }
  }
  if (begin < ids.length || starts.length === 0) starts.push(begin);
  return starts;
}

/**
 * A list of tokens. Properties:
 *   vocab, ids   what is drawn
 *   display      "text", "both" (with ids) or "ids"
 *   split        the number of tokens after which a new part begins, or 0
 *   current      the index of the token whose details are shown, or -1
 *   label        the accessible name
 *   classOf      optional: (index, id) => extra class names
 * Events: "token-current" (detail: index) as the pointer or an arrow key reaches a token;
 * "token-pick" (detail: index) for a click or Enter.
 */
export class Tokens extends Element {
  static properties = {
    vocab: { attribute: false },
    ids: { attribute: false },
    display: { type: String },
    split: { type: Number },
    current: { type: Number },
    label: { type: String },
    classOf: { attribute: false },
  };

  #blocks = [0];
  #rows = new Rows(this, {
    count: () => this.#blocks.length,
    estimate: (row) => this.#estimate(row),
    scroller: () => this.querySelector(".tokens"),
  });

  constructor() {
    super();
    this.ids = [];
    this.display = "text";
    this.split = 0;
    this.current = -1;
    this.name = `tokens-${(Tokens.count += 1)}`;
  }

  static count = 0; // elements created so far, which need different ids

  willUpdate(changed) {
    if (changed.has("ids") || changed.has("vocab") || changed.has("split") || changed.has("display")) {
      this.#blocks = blocksOf(this.vocab, this.ids, this.split, this.display !== "ids");
      if (changed.has("display") || changed.has("vocab")) this.#rows.forget();
    }
  }

  #estimate(row) {
    const begin = this.#blocks[row];
    const end = this.#blocks[row + 1] ?? this.ids.length;
    const line = this.display === "both" ? 46 : 26;
    const columns = Math.max(20, (this.clientWidth || 600) / 9);
    let width = 0;
    for (let i = begin; i < end; i += 1) width += this.display === "ids" ? 7 : this.vocab.length(this.ids[i]) + 0.4;
    return line * Math.max(1, Math.ceil(width / columns)) + (this.split > 0 && begin % this.split === 0 ? 26 : 0);
  }

  #blockOf(index) {
    let low = 0;
    let high = this.#blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#blocks[middle] <= index) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Scrolls until the token is visible. */
  reveal(index) {
    if (index < 0 || index >= this.ids.length) return;
    const id = `${this.name}-${index}`;
    if (this.renderRoot.querySelector(`#${id}`) === null) this.#rows.scrollTo(this.#blockOf(index));
    requestAnimationFrame(() => this.renderRoot.querySelector(`#${id}`)?.scrollIntoView({ block: "nearest" }));
  }

  #go(index) {
    const to = Math.max(0, Math.min(this.ids.length - 1, index));
    this.#tell("token-current", to);
    this.reveal(to);
  }

  #tell(name, index) {
    this.dispatchEvent(new CustomEvent(name, { detail: index, bubbles: true }));
  }

  #keys = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || this.ids.length === 0) return;
    const at = this.current;
    const moves = {
      ArrowRight: at + 1,
      ArrowLeft: at - 1,
      ArrowDown: this.#vertical(1),
      ArrowUp: this.#vertical(-1),
      Home: 0,
      End: this.ids.length - 1,
      PageDown: at + 100,
      PageUp: at - 100,
    };
    if (event.key in moves) {
      event.preventDefault();
      this.#go(moves[event.key]);
    } else if ((event.key === "Enter" || event.key === " ") && at >= 0) {
      event.preventDefault();
      this.#tell("token-pick", at);
    }
  };

  /** Returns the index of the token above or below the current one. */
  #vertical(direction) {
    const from = this.querySelector(`#${this.name}-${this.current}`)?.getBoundingClientRect();
    if (!from) return Math.max(0, this.current);
    let best = this.current + direction;
    let distance = Infinity;
    for (const element of this.querySelectorAll("[data-i]")) {
      const to = element.getBoundingClientRect();
      const down = (to.top - from.top) * direction;
      if (down < from.height / 2) continue;
      const far = down * 1000 + Math.abs(to.left + to.width / 2 - from.left - from.width / 2);
      if (far < distance) {
        distance = far;
        best = Number(element.dataset.i);
      }
    }
    return best;
  }

  #over = (event) => {
    const element = event.target.closest?.("[data-i]");
    if (element && event.pointerType !== "touch") this.#tell("token-current", Number(element.dataset.i));
  };

  #click = (event) => {
    const element = event.target.closest?.("[data-i]");
    if (!element) return;
    this.#tell("token-current", Number(element.dataset.i));
    if (getSelection().isCollapsed) this.#tell("token-pick", Number(element.dataset.i));
  };

  #token(i) {
    const id = this.ids[i];
    const { vocab } = this;
    const extra = this.classOf ? ` ${this.classOf(i, id)}` : "";
    const long = vocab.length(id) > MOST_UNBROKEN ? " long" : "";
    return html`<wbr /><span
      class="${tokenClass(vocab, id, hueAt(vocab, this.ids, i))}${long}${i === this.current ? " current" : ""}${extra}"
      role="option"
      id="${this.name}-${i}"
      data-i=${i}
      aria-selected=${i === this.current ? "true" : "false"}
      aria-posinset=${i + 1}
      aria-setsize=${this.ids.length}
      aria-label=${t.label(vocab.spoken(id), id)}
      >${this.display === "ids" ? id : this.display === "both" ? this.#withId(id) : tokenPiece(vocab, id)}</span
    >`;
  }

  /** Renders the piece and its id, which is on the line where the piece ends. */
  #withId(id) {
    const parts = this.vocab.parts(id);
    let end = parts.length;
    while (end > 0 && parts[end - 1].kind === "newline") end -= 1;
    const before = parts.slice(0, end);
    return html`${before.length || !parts.length ? partsTemplate(before) : nothing}<i class="gap"> </i><b class="id">${id}</b>${parts.slice(end).map(part)}`;
  }

  #block(row) {
    const begin = this.#blocks[row];
    const end = this.#blocks[row + 1] ?? this.ids.length;
    const tokens = [];
    for (let i = begin; i < end; i += 1) tokens.push(this.#token(i));
    const first = this.split > 0 && begin % this.split === 0;
    return html`${first
      ? html`<div class="part" role="none">${strings.text.part(begin / this.split + 1, begin)}</div>`
      : nothing}${tokens}`;
  }

  render() {
    if (!this.vocab) return nothing;
    const shown = this.current >= 0 && this.current < this.ids.length && this.#rows.has(this.#blockOf(this.current));
    return html`<div
      class="tokens ${this.display}"
      role="listbox"
      dir="ltr"
      tabindex="0"
      aria-label=${this.label ?? strings.text.listLabel(this.ids.length)}
      aria-activedescendant=${shown ? `${this.name}-${this.current}` : nothing}
      @keydown=${this.#keys}
      @pointerover=${this.#over}
      @click=${this.#click}
    >
      ${this.ids.length ? this.#rows.render((row) => this.#block(row)) : nothing}
    </div>`;
  }
}

customElements.define("gg-tokens", Tokens);

const utf8 = new TextEncoder();

/**
 * The facts about one token. Properties:
 *   vocab
 *   token    undefined, or { id, hue, index, total, start, end, text }: `start` and `end` are
 *            UTF-16 units of `text`; without them the token has no span
 *   stored   the token's text as stored in the file
 */
export class TokenFacts extends Element {
  static properties = {
    vocab: { attribute: false },
    token: { attribute: false },
    stored: { attribute: false },
  };

  #span() {
    const { start, end, text } = this.token;
    if (start === undefined) return nothing;
    if (start === end) return html`<dt>${t.span}</dt><dd>${t.added}</dd>`;
    const before = text.slice(0, start);
    const source = text.slice(start, end);
    const c0 = points(before);
    const b0 = utf8.encode(before).length;
    const bytes = utf8.encode(source);
    return html`<dt>${t.span}</dt>
      <dd>${t.spanValue(c0, c0 + points(source), b0, b0 + bytes.length)}</dd>`;
  }

  render() {
    const { vocab, token } = this;
    if (!vocab || !token || !vocab.has(token.id)) return html`<p class="hint">${t.none}</p>`;
    const { id } = token;
    const length = vocab.length(id);
    const type = vocab.types[id];
    const score = vocab.hasScores ? vocab.scores[id] : undefined;
    return html`<dl class="facts">
      <dt>${t.id}</dt>
      <dd>
        <strong class="number">${id}</strong>
        ${token.index === undefined ? nothing : html`<span class="hint">${t.position(token.index, token.total)}</span>`}
      </dd>
      <dt>${t.text}</dt>
      <dd class="code">${tokenChip(vocab, id, token.hue)}</dd>
      ${this.stored === undefined
        ? nothing
        : html`<dt>${t.stored}</dt>
            <dd class="code"><bdi>${this.stored.length > 200 ? `${this.stored.slice(0, 200)}…` : this.stored}</bdi></dd>`}
      <dt>${t.bytes}</dt>
      <dd class="code">${vocab.hex(id, 32) || t.empty} ${length > 32 ? t.moreBytes(length) : nothing}</dd>
      <dt>${t.type}</dt>
      <dd>${t.types[type] ?? type}</dd>
      ${score === undefined
        ? nothing
        : html`<dt>${t.score}</dt>
            <dd class="number">${Number(score.toPrecision(6))}</dd>`}
      ${this.#span()}
    </dl>`;
  }
}

customElements.define("gg-token", TokenFacts);
