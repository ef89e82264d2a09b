// The Why view: the steps from a text to each of its ids, and the merges of any token.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { declare } from "./state.js";
import { Latest, View } from "./view.js";
import { messageOf } from "./models.js";
import { shortNumber, symbolOfToken } from "./merges.js";
import { byteLength, textTemplate } from "./bytes.js";
import { tokenChip } from "./tokens.js";
import { first } from "./parts.js";
import "./editor.js";
import { count, strings } from "./strings.js";

const t = strings.why;

declare({ "why.token": -1, "why.of": "" }); // -1: the text's first token, after added special tokens

const MOST_BYTES = 16 * 1024; // bytes of UTF-8 that ggtok_trace accepts
const MOST_PLACES = 200;
const MOST_ITEMS = 50; // of the short lists
const utf8 = new TextEncoder();

/** Returns the longest beginning of a text that can be traced. */
export function beginning(text) {
  const short = text.slice(0, MOST_BYTES);
  const { read } = utf8.encodeInto(short, new Uint8Array(MOST_BYTES));
  return short.slice(0, read);
}

/** Returns where each id of a trace comes from: { token, fragment, word, n }, where n is the index
 * of the token in the word. */
export function placesOf(trace) {
  const places = trace.before.map((token) => ({ token }));
  for (const fragment of trace.fragments) {
    if (fragment.special) places.push({ token: fragment.special, fragment });
    for (const word of fragment.words) word.tokens.forEach((token, n) => places.push({ token, fragment, word, n }));
  }
  return [...places, ...trace.after.map((token) => ({ token }))];
}

class WhyView extends View {
  static properties = {
    result: { state: true },
    error: { state: true },
    tree: { state: true },
    treeError: { state: true },
    whole: { state: true }, // the merges of the current token, which is a whole word: { model, id, ... }
  };

  #latest = new Latest((error) => this.#failed(error, "error"));
  #latestTree = new Latest((error) => this.#failed(error, "treeError"));
  #latestWhole = new Latest((error) => this.#failed(error, "error"));
  #asked = "";
  #askedTree = "";

  constructor() {
    super();
    this.error = this.treeError = "";
  }

  #failed(error, name) {
    this[name] = messageOf(error);
    if (name === "error") this.result = undefined;
    else this.tree = undefined;
  }

  willUpdate() {
    const { model, values, options } = this.app;
    if (!model) return;
    const asked = JSON.stringify([model.id, values.text, options]);
    if (asked !== this.#asked) {
      this.#asked = asked;
      this.#latest.request(() => this.#trace(model, values.text, options));
    }
    const askedTree = JSON.stringify([model.id, values["why.of"]]);
    if (askedTree !== this.#askedTree) {
      this.#askedTree = askedTree;
      this.#latestTree.request(() => this.#traceToken(model, values["why.of"]));
    }
    const id = this.#wholeWord;
    if (id !== undefined && (this.whole?.model !== model || this.whole.id !== id)) {
      this.whole = { model, id };
      this.#latestWhole.request(async () => {
        const trace = await model.tok.traceToken(id);
        if (this.whole?.model === model && this.whole.id === id) this.whole = { model, id, ...trace };
      });
    }
  }

  /** Whether the result shown is for the current text. */
  get settled() {
    return !this.#latest.busy && !this.#latestTree.busy && !this.#latestWhole.busy && this.result?.model === this.app.model;
  }

  async #trace(model, text, options) {
    const traced = beginning(text);
    const trace = await model.tok.trace(traced, options);
    this.error = "";
    this.result = { model, text, trace, places: placesOf(trace), cut: traced.length < text.length };
  }

  async #traceToken(model, written) {
    this.treeError = "";
    this.tree = undefined;
    if (!written) return;
    const id = /^\d+$/.test(written) ? Number(written) : await model.tok.find(written);
    if (id === null || !model.vocab.has(id)) throw new Error(t.noToken(written.slice(0, 40), model.vocab.size));
    const trace = await model.tok.traceToken(id);
    this.tree = { model, id, ...trace };
  }

  // ---- the current token ----

  /** Notes that a key was pressed, because moving to a token by key selects it, but pointing at it
   * doesn't. */
  #byKey = {
    capture: true,
    handleEvent: () => {
      this.key = true;
      setTimeout(() => (this.key = false));
    },
  };

  get #current() {
    const places = this.result?.places ?? [];
    const chosen = this.app.values["why.token"];
    const index = chosen < 0 ? places.findIndex(({ fragment }) => fragment) : chosen;
    return Math.max(0, Math.min(places.length - 1, index));
  }

  /** The id of the current token if its word became it without merging. */
  get #wholeWord() {
    const { result } = this;
    const place = result?.model === this.app.model ? result?.places[this.#current] : undefined;
    return place?.token.how === "whole word" && result.model.vocab.has(place.token.id) ? place.token.id : undefined;
  }

  /** Renders the merges of the token's word. A whole word has those that would make its token. */
  #tree({ token, word, n }) {
    if (word.symbols.length) return html`<gg-merges .symbols=${word.symbols} .merges=${word.merges} .focus=${symbolOfToken(word, n)}></gg-merges>`;
    const { whole } = this;
    if (token.how !== "whole word" || whole?.id !== token.id || !whole.symbols?.length) return nothing;
    return html`<p>${whole.reached ? t.wholeWordMerges : t.wholeWordOnly}</p>
      <gg-merges .symbols=${whole.symbols} .merges=${whole.merges} .focus=${0}></gg-merges>`;
  }

  #fragment({ fragment, token }) {
    if (!fragment) return html`<p>${token.why}</p>`;
    const span = t.bytes(fragment.begin, fragment.end);
    return html`<h3>${fragment.special ? t.special : t.raw}</h3>
      <p class="hint">${span}</p>
      <p class="code wrap"><bdi class="sunk">${textTemplate(fragment.text, 300)}</bdi></p>
      ${fragment.normalized === null
        ? nothing
        : html`<p>${t.becomes}</p>
            <p class="code wrap"><bdi class="sunk">${textTemplate(fragment.normalized, 300)}</bdi></p>`}
      ${fragment.notes.length ? html`<ul class="notes">${first(fragment.notes, MOST_ITEMS, (note) => html`<li>${note}</li>`)}</ul>` : nothing}`;
  }

  #rules(rules) {
    if (!rules.length) return nothing;
    return html`<table class="rules">
      <thead><tr><th>${t.scanner}</th><th>${t.alternative}</th></tr></thead>
      <tbody>
        ${rules.slice(0, MOST_ITEMS).map(
          ({ scanner, expression }) =>
            html`<tr><td>${scanner}</td><td class="code wrap">${expression === null ? html`<span class="hint">${t.between}</span>` : textTemplate(expression, 600)}</td></tr>`,
        )}
      </tbody>
    </table>`;
  }

  #word(place) {
    const { word } = place;
    const { type } = this.result.model.info;
    return html`<section class="panel" aria-labelledby="why-word">
      <h2 id="why-word">${t.word}</h2>
      <p class="bar"><bdi class="code sunk">${textTemplate(word.text, 120)}</bdi> <span class="hint">${t.bytes(word.begin, word.end)}</span></p>
      ${this.#tree(place)}
      <p class="hint">${t.how[type] ?? nothing}</p>
      ${this.#rules(word.rules)} ${this.#lattice(word)}
    </section>`;
  }

  /** Renders the table of best paths near the current token. */
  #lattice(word) {
    const { lattice, tokens } = word;
    if (!lattice.length) return nothing;
    const fromEnd = this.result.model.info.type.startsWith("plamo");
    const on = onPath(lattice, fromEnd);
    const near = lattice.findIndex((place) => on.has(place) && place.id === this.result.places[this.#current].token.id);
    const from = Math.max(0, Math.min(lattice.length - MOST_PLACES, near - MOST_PLACES / 2));
    const rows = lattice.slice(from, from + MOST_PLACES);
    const { vocab } = this.result.model;
    return html`<h3>${t.lattice}</h3>
      <p class="hint">${fromEnd ? t.latticeFromEnd : t.latticeFromStart} ${t.onPath(tokens.length)}</p>
      <div class="scroll lattice" tabindex="0" role="region" aria-label=${t.lattice}>
        <table>
          <thead>
            <tr>
              <th class="number">${fromEnd ? t.table.character : t.table.byte}</th>
              <th>${t.table.token}</th>
              <th class="number">${t.table.id}</th>
              <th class="number">${t.table.score}</th>
              <th class="number">${t.table.sum}</th>
              <th>${t.table.path}</th>
            </tr>
          </thead>
          <tbody>
            ${rows.map(
              (place) =>
                html`<tr class=${on.has(place) ? "current" : ""}>
                  <td class="number">${count(place.at)}</td>
                  <td class="code"><bdi class=${place.id >= 0 ? `token h${vocab.hue(place.id)}` : "token"}>${textTemplate(place.text, 40)}</bdi></td>
                  <td class="number">${place.id < 0 ? "–" : place.id}</td>
                  <td class="number">${shortNumber(place.score)}</td>
                  <td class="number">${shortNumber(place.total)}</td>
                  <td>${on.has(place) ? t.best : ""}</td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
      ${rows.length < lattice.length ? html`<p class="hint">${t.someRows(rows.length, lattice.length)}</p>` : nothing}`;
  }

  /** Renders the word's tokens. */
  #tokens({ word, n }) {
    const from = Math.max(0, Math.min(word.tokens.length - MOST_PLACES, n - MOST_PLACES / 2));
    const rows = word.tokens.slice(from, from + MOST_PLACES);
    const { vocab } = this.result.model;
    const scored = rows.some(({ score }) => score !== null);
    const first = this.#current - n;
    return html`<section class="panel" aria-labelledby="why-tokens">
      <h2 id="why-tokens">${t.tokensOfWord(word.tokens.length)}</h2>
      <div class="scroll">
        <table>
          <thead>
            <tr>
              <th class="number">${t.table.id}</th>
              <th>${t.table.token}</th>
              <th>${t.table.how}</th>
              ${scored ? html`<th class="number">${t.table.score}</th>` : nothing}
              <th>${t.table.remark}</th>
            </tr>
          </thead>
          <tbody>
            ${rows.map((token, i) => {
              const here = from + i === n;
              return html`<tr class=${here ? "current" : ""}>
                <td class="number">
                  <button class="quiet number" aria-current=${here ? "true" : nothing} @click=${() => this.app.set({ "why.token": first + from + i })}>
                    ${token.id}
                  </button>
                </td>
                <td class="code">${vocab.has(token.id) ? tokenChip(vocab, token.id) : textTemplate(token.text)}</td>
                <td>${t.hows[token.how]}</td>
                ${scored ? html`<td class="number">${token.score === null ? "" : shortNumber(token.score)}</td>` : nothing}
                <td>${token.why}</td>
              </tr>`;
            })}
          </tbody>
        </table>
      </div>
    </section>`;
  }

  async #showTree(id) {
    this.app.set({ "why.of": String(id) });
    await this.updateComplete;
    this.querySelector(".any-token").scrollIntoView({ block: "nearest" });
  }

  #explained() {
    const { result } = this;
    const place = result?.places[this.#current];
    if (!place) return html`<p class="hint">${t.empty}</p>`;
    const { token, word } = place;
    const { vocab, info } = result.model;
    const merges = ["bpe", "spm"].includes(info.type);
    // The tree of merges is near the top; what happened before the merges is below it.
    const treeFirst = word && (word.symbols.length > 0 || token.how === "whole word");
    return html`<section class="panel" aria-labelledby="why-token" id="why-of-token">
        <h2 id="why-token">${t.tokenHeading(this.#current + 1, result.places.length)}</h2>
        <p class="bar">
          ${vocab.has(token.id) ? html`<span class="code">${tokenChip(vocab, token.id)}</span>` : nothing}
          <strong class="number">${token.id}</strong>
          <span>${t.hows[token.how]}</span>
          ${merges && word && vocab.has(token.id)
            ? html`<button @click=${() => this.#showTree(token.id)}>${t.treeOf}</button>`
            : nothing}
        </p>
        ${token.why && place.fragment ? html`<p>${token.why}</p>` : nothing}
        ${treeFirst ? nothing : this.#fragment(place)}
      </section>
      ${word ? html`${this.#word(place)} ${this.#tokens(place)}` : nothing}
      ${treeFirst
        ? html`<section class="panel" aria-labelledby="why-fragment">
            <h2 id="why-fragment">${t.beforeWords}</h2>
            ${this.#fragment(place)}
          </section>`
        : nothing}`;
  }

  // ---- any token ----

  #anyToken() {
    const { model, values } = this.app;
    if (!["bpe", "spm"].includes(model?.info.type)) return nothing;
    const { tree } = this;
    return html`<section class="panel any-token" aria-labelledby="why-any">
      <h2 id="why-any">${t.any}</h2>
      <label class="field query"
        ><span>${t.anyLabel}</span>
        <input type="search" spellcheck="false" .value=${live(values["why.of"])} placeholder=${t.anyPlaceholder} @change=${(event) => this.app.set({ "why.of": event.target.value })}
      /></label>
      <p role="alert" class="error">${this.treeError}</p>
      ${tree
        ? html`<p class="bar">
              <span class="code">${tokenChip(tree.model.vocab, tree.id)}</span><strong class="number">${tree.id}</strong>
              <span>${tree.reached ? (tree.merges.length ? t.reached : t.isSymbol) : t.notReached}</span>
            </p>
            <ul class="notes">
              ${tree.whole_word ? html`<li>${t.wholeWord}</li>` : nothing}
              ${tree.words.length > 1 ? html`<li>${t.split} ${first(tree.words, MOST_ITEMS, (word) => html`<bdi class="code sunk">${textTemplate(word, 40)}</bdi> `)}</li>` : nothing}
              ${first(tree.notes, MOST_ITEMS, (note) => html`<li>${note}</li>`)}
            </ul>
            ${tree.reached || !tree.symbols.length
              ? nothing
              : html`<p>${t.becomesTokens} ${first(tree.tokens, MOST_ITEMS, (token) => html`${tokenChip(tree.model.vocab, token.id)} `)}</p>`}
            <gg-merges .symbols=${tree.symbols} .merges=${tree.merges} .focus=${0}></gg-merges>
            ${tree.pairs.length
              ? html`<h3>${t.pairs}</h3>
                  <ul class="notes">
                    ${first(
                      tree.pairs,
                      MOST_ITEMS,
                      ({ left, right, rank, score }) =>
                        html`<li>
                          <bdi class="code sunk">${textTemplate(left, 40)}</bdi> + <bdi class="code sunk">${textTemplate(right, 40)}</bdi>
                          <span class="hint">${rank === null ? t.score(score) : t.rank(rank)}</span>
                        </li>`,
                    )}
                  </ul>`
              : nothing}`
        : nothing}
    </section>`;
  }

  render() {
    const { values } = this.app;
    const { result } = this;
    const current = this.#current;
    const word = result?.places[current]?.word;
    return html`<h1 class="hidden">${t.heading}</h1>
      <div class="why-view">
        <section class="panel input" aria-label=${t.textLabel}>
          <div class="bar">
            ${this.option("addSpecial")} ${this.option("parseSpecial")} ${this.option("continuation")}
          </div>
          <gg-editor
            .text=${values.text}
            label=${strings.text.textLabel}
            placeholder=${strings.text.textPlaceholder}
            @text-input=${(event) => this.app.set({ text: event.detail, "why.token": -1 })}
          ></gg-editor>
          <p role="alert" class="error">${this.error}</p>
          ${result?.cut ? html`<p class="note">${t.cut}</p>` : nothing}
          ${values.text
            ? nothing
            : html`<p class="bar hint">${t.typeSomething} <button @click=${() => this.app.set({ text: t.sample })}>${strings.text.trySample}</button></p>`}
          ${result && result.places.length
            ? html`<p class="hint">${t.pick}</p>
                <gg-tokens
                  .vocab=${result.model.vocab}
                  .ids=${result.trace.ids}
                  .display=${"text"}
                  .current=${current}
                  .classOf=${(i) => (word && result.places[i]?.word === word ? "same-word" : "")}
                  @keydown=${this.#byKey}
                  @token-current=${(event) => this.key && this.app.set({ "why.token": event.detail })}
                  @token-pick=${(event) => this.app.set({ "why.token": event.detail })}
                ></gg-tokens>`
            : nothing}
        </section>
        <div class="explained">${this.#explained()}</div>
        ${this.#anyToken()}
      </div>`;
  }
}

/** Returns the lattice entries that are on the best path. */
function onPath(lattice, fromEnd) {
  const at = new Map(lattice.map((place) => [place.at, place]));
  const on = new Set();
  if (fromEnd) {
    for (let place = at.get(0); place; place = at.get(place.at + [...place.text].length)) on.add(place);
  } else {
    for (let place = lattice.at(-1); place; place = at.get(place.at - byteLength(place.text))) on.add(place);
  }
  return on;
}

customElements.define("gg-why-view", WhyView);
