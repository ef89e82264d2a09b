// The list of the Vocabulary view: a table of tokens with sortable columns.

import { html, nothing } from "lit";
import { Element } from "./view.js";
import { Rows } from "./rows.js";
import { tokenChip, tokenChips } from "./tokens.js";
import { count, strings } from "./strings.js";

const t = strings.vocabulary;

const ROW = 34; // height of a row, in pixels

const numeric = new Set(["id", "bytes", "rank", "score"]);

/** Returns the names of the columns that a vocabulary has. `merges` is its MergeTable or undefined. */
export function columnsOf(vocab, merges) {
  const own = merges ? ["rank", "parts"] : vocab.hasScores ? ["score"] : [];
  return ["id", "text", "bytes", ...own, "type", "script"];
}

/** Returns the orders of a vocabulary's tokens: the names of the columns that can be sorted, and
 * each with "-" before it for the reverse order. */
export function ordersOf(vocab, merges) {
  const sortable = columnsOf(vocab, merges).filter((name) => name !== "parts");
  return sortable.flatMap((name) => [name, `-${name}`]);
}

/** Sorts ids. Tokens without a rank are last in either order. */
export function sortIds(ids, order, vocab, merges) {
  const descending = order.startsWith("-");
  const name = descending ? order.slice(1) : order;
  if (name === "id") return descending ? ids.reverse() : ids;
  const compare = comparisons(vocab, merges)[name];
  if (!compare || !ordersOf(vocab, merges).includes(order)) return ids;
  const sign = descending ? -1 : 1;
  const missing = name === "rank" ? (id) => merges.rank[id] < 0 : () => false;
  return ids.sort((a, b) => missing(a) - missing(b) || sign * compare(a, b) || a - b);
}

function comparisons(vocab, merges) {
  const scripts = () => {
    const { names, of } = vocab.scripts;
    const place = names.map((name) => [...names].sort().indexOf(name));
    return (a, b) => place[of[a]] - place[of[b]];
  };
  return {
    text: vocab.compare,
    bytes: (a, b) => vocab.length(a) - vocab.length(b),
    rank: (a, b) => merges.rank[a] - merges.rank[b],
    score: (a, b) => vocab.scores[a] - vocab.scores[b],
    type: (a, b) => vocab.types[a] - vocab.types[b],
    get script() {
      return scripts();
    },
  };
}

/**
 * A list of tokens as rows. Properties: vocab, merges (a MergeTable or undefined), ids, order,
 * current (an id), picked (a Set). Events: "token-current" (detail: id), "token-toggle" (detail: id),
 * "token-order" (detail: an order).
 */
class TokenList extends Element {
  static properties = {
    vocab: { attribute: false },
    merges: { attribute: false },
    ids: { attribute: false },
    order: { attribute: false },
    current: { attribute: false },
    picked: { attribute: false },
  };

  #rows = new Rows(this, {
    count: () => this.ids.length,
    estimate: () => ROW,
    scroller: () => this.querySelector(".list"),
    overscan: 8,
  });
  #at = 0;

  constructor() {
    super();
    this.ids = [];
    this.picked = new Set();
  }

  willUpdate(changed) {
    if (changed.has("ids")) {
      this.#at = Math.max(0, this.ids.indexOf(this.current));
      this.scrollToTop = true;
    }
  }

  updated() {
    if (this.scrollToTop) {
      this.scrollToTop = false;
      this.querySelector(".list").scrollTop = 0;
    }
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }

  #keys = (event) => {
    const page = Math.max(1, Math.floor(this.querySelector(".list").clientHeight / ROW) - 1);
    const at = this.#at;
    const last = this.ids.length - 1;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: last }[event.key];
    if (to !== undefined && last >= 0) {
      event.preventDefault();
      this.#at = Math.max(0, Math.min(last, to));
      this.#rows.scrollTo(this.#at, "auto");
      this.#tell("token-current", this.ids[this.#at]);
    } else if ((event.key === " " || event.key === "Enter") && last >= 0) {
      event.preventDefault();
      this.#tell("token-toggle", this.ids[at]);
    }
  };

  #click = (event) => {
    const row = event.target.closest?.("[data-row]");
    if (!row) return;
    this.#at = Number(row.dataset.row);
    const id = this.ids[this.#at];
    this.#tell("token-current", id);
    if (event.target.closest(".pick")) this.#tell("token-toggle", id);
  };

  /** Renders a cell's content. */
  #cell(name, id) {
    const { vocab, merges } = this;
    switch (name) {
      case "id":
        return id;
      case "text":
        return tokenChip(vocab, id);
      case "bytes":
        return count(vocab.length(id));
      case "rank":
        return merges.rank[id] < 0 ? "–" : count(merges.rank[id]);
      case "parts":
        return merges.rank[id] < 0 ? "–" : tokenChips(vocab, this.#parts(id));
      case "score":
        return Number(vocab.scores[id].toPrecision(6));
      case "type":
        return strings.token.types[vocab.types[id]];
      default:
        return vocab.scripts.names[vocab.scripts.of[id]];
    }
  }

  #parts(id) {
    const { left, right } = this.merges;
    return [left[id], right[id]].filter((part) => this.vocab.has(part));
  }

  #spokenParts(id) {
    return this.merges.rank[id] < 0 ? "–" : this.#parts(id).map((part) => this.vocab.spoken(part)).join("");
  }

  #row(i, columns) {
    const { vocab } = this;
    const id = this.ids[i];
    const label = columns.map((name) => (name === "text" ? vocab.spoken(id) : name === "parts" ? this.#spokenParts(id) : this.#cell(name, id)));
    return html`<div
      class="token-row ${id === this.current ? "current" : ""}"
      role="option"
      id="vocabulary-${i}"
      data-row=${i}
      aria-selected=${this.picked.has(id) ? "true" : "false"}
      aria-posinset=${i + 1}
      aria-setsize=${this.ids.length}
      aria-label=${label.join(" ")}
    >
      <span class="pick" title=${t.pick(id)}></span>
      ${columns.map((name) => html`<span class=${classOf(name)}>${this.#cell(name, id)}</span> `)}
    </div>`;
  }

  #header(name) {
    const label = t.columns[name];
    if (name === "parts") return html`<span class=${classOf(name)}>${label}</span>`;
    const sorted = [name, `-${name}`].indexOf(this.order);
    const next = sorted === 0 ? `-${name}` : name;
    return html`<span class=${classOf(name)}
      ><button class="quiet" title=${t.sorts[next]} aria-pressed=${sorted < 0 ? "false" : "true"} @click=${() => this.#tell("token-order", next)}>
        ${label}<i aria-hidden="true">${["▴", "▾"][sorted] ?? ""}</i>
      </button></span
    >`;
  }

  render() {
    if (!this.vocab) return nothing;
    const shown = this.ids.length > 0 && this.#rows.has(this.#at);
    const columns = columnsOf(this.vocab, this.merges);
    return html`<div class="token-table ${this.merges ? "with-merges" : this.vocab.hasScores ? "with-scores" : ""}">
      <div class="token-row head" role="group" aria-label=${t.head}><span></span>${columns.map((name) => this.#header(name))}</div>
      <div
        class="list"
        role="listbox"
        tabindex="0"
        aria-multiselectable="true"
        aria-label=${t.rows}
        aria-activedescendant=${shown ? `vocabulary-${this.#at}` : nothing}
        @keydown=${this.#keys}
        @click=${this.#click}
      >
        ${this.ids.length ? this.#rows.render((i) => this.#row(i, columns)) : nothing}
      </div>
    </div>`;
  }
}

const classOf = (name) => `${name === "text" ? "piece code" : name === "parts" ? "parts code" : name}${numeric.has(name) ? " number" : ""}`;

customElements.define("gg-token-list", TokenList);
