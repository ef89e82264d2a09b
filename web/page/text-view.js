// The Text view: the tokens of a text as the user types it, or the text of ids.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { declare } from "./state.js";
import { Latest, View } from "./view.js";
import { messageOf } from "./models.js";
import { points } from "./points.js";
import { hueAt } from "./tokens.js";
import "./editor.js";
import { count, ratio, strings } from "./strings.js";

const t = strings.text;

declare({ "text.display": "text", "text.split": 0 });

const DISPLAYS = ["text", "both", "ids"];
const EMPTY = { ids: [], text: "", bytes: 0, characters: 0 };
const utf8 = new TextEncoder();

class TextView extends View {
  static properties = {
    result: { state: true },
    error: { state: true },
    current: { state: true },
    stored: { state: true },
  };

  #latest = new Latest((error) => {
    const { model } = this.app;
    this.error = error.code === "time" ? t.stopped : messageOf(error);
    this.result = { ...EMPTY, model };
  });
  #key = "";

  constructor() {
    super();
    this.result = EMPTY;
    this.error = "";
    this.current = -1;
  }

  connectedCallback() {
    super.connectedCallback();
    document.addEventListener("selectionchange", this.#caret);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    document.removeEventListener("selectionchange", this.#caret);
  }

  willUpdate() {
    const { model, values, options } = this.app;
    if (!model) return;
    const { input, text, ids } = values;
    if (
      model === this.#requested?.model &&
      input === this.#requested.input &&
      text === this.#requested.text &&
      ids === this.#requested.ids &&
      JSON.stringify(options) === this.#key
    )
      return;
    this.#requested = { model, input, text, ids };
    this.#key = JSON.stringify(options);
    this.#latest.request(() => (input === "ids" ? this.#decode(model, ids) : this.#encode(model, text, options)));
  }

  #requested;

  /** Whether the result shown is for the current text and options. */
  get settled() {
    return !this.#latest.busy && this.result.model === this.app.model;
  }

  async #encode(model, text, options) {
    const began = performance.now();
    const { ids, starts, ends } = await model.tok.spans(text, { ...options, unit: "utf16" });
    const ms = performance.now() - began;
    this.error = "";
    const before = this.result;
    this.result = { model, ids, starts, ends, text, ms, bytes: utf8.encode(text).length, characters: points(text) };
    if (model !== before.model) this.current = this.#selected(before);
    if (this.current >= ids.length) this.current = -1;
  }

  /** Returns the index of the token to select after another model's result: the token at the same
   * position; at first, one that looks like a word. */
  #selected(before) {
    const { ids, starts, ends, text, model } = this.result;
    const at = before.text === text ? before.starts?.[this.current] : undefined;
    const same = at === undefined ? -1 : ids.findIndex((_, i) => starts[i] <= at && at < ends[i]);
    return same >= 0 ? same : ids.findIndex((id, i) => ends[i] - starts[i] > 1 && !model.vocab.isSpecial(id));
  }

  async #decode(model, written) {
    const ids = idsOf(written, model.vocab.size);
    const began = performance.now();
    const text = await model.tok.decode(ids);
    const ms = performance.now() - began;
    this.error = "";
    this.result = { model, ids, text, ms, bytes: utf8.encode(text).length, characters: points(text) };
    if (this.current >= ids.length) this.current = -1;
  }

  async updated(changed) {
    if (!changed.has("current") && !changed.has("result")) return;
    const id = this.result.ids[this.current];
    this.stored = undefined;
    if (id === undefined) return;
    const stored = await this.result.model.tok.token(id).catch(() => undefined);
    if (this.result.ids[this.current] === id) this.stored = stored;
  }

  // ---- from the caret in the text to a token ----

  get #editor() {
    return this.querySelector("gg-editor");
  }

  /** Makes the token at the text's caret the current one. */
  #caret = () => {
    const editor = this.#editor;
    const { starts, ends, text } = this.result;
    if (!editor?.focused || !starts || text !== this.app.values.text) return;
    const at = editor.caret;
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (starts[middle] <= at) low = middle;
      else high = middle - 1;
    }
    while (low > 0 && (starts[low] === ends[low] || (starts[low] === at && low > 0 && ends[low - 1] > at))) low -= 1;
    if (low === this.current) return;
    this.current = low;
    this.querySelector("gg-tokens")?.reveal(low);
  };

  #pick(index) {
    const { starts, ends, text } = this.result;
    if (!starts || text !== this.app.values.text || starts[index] === ends[index]) return;
    this.#editor.select(starts[index], ends[index], !matchMedia("(pointer: coarse)").matches);
  }

  // ---- what is shown ----

  #input() {
    const { input, text, ids } = this.app.values;
    const isText = input !== "ids";
    return html`<section class="panel input" aria-labelledby="input-heading">
      <div class="bar">
        <h2 id="input-heading" class="hidden">${t.input}</h2>
        <div class="segments" role="radiogroup" aria-label=${t.input}>
          ${[
            ["text", t.fromText],
            ["ids", t.fromIds],
          ].map(
            ([value, label]) =>
              html`<label
                ><input type="radio" name="input" value=${value} .checked=${live(input === value)} @change=${() => this.#switchInput(value)} /><span
                  >${label}</span
                ></label
              >`,
          )}
        </div>
      </div>
      ${isText
        ? html`<gg-editor
            .text=${text}
            label=${t.textLabel}
            placeholder=${t.textPlaceholder}
            @text-input=${(event) => this.app.set({ text: event.detail })}
          ></gg-editor>`
        : html`<gg-editor
              code
              .text=${ids}
              label=${t.idsLabel}
              placeholder=${t.idsPlaceholder}
              @text-input=${(event) => this.app.set({ ids: event.detail })}
            ></gg-editor>
            <p role="alert" class="error">${this.error}</p>
            <h3>${t.decoded}</h3>
            <pre class="decoded" tabindex="0" role="group" aria-label=${t.decoded}><bdi>${this.result.text.slice(0, 100_000)}</bdi></pre>`}
      ${isText
        ? html`<div class="bar line-of-options">${this.option("addSpecial")} ${this.option("parseSpecial")} ${this.option("continuation")}</div>
            <p role="alert" class="error">${this.error}</p>`
        : nothing}
    </section>`;
  }

  /** Switches the input between text and ids, and converts what was entered. */
  #switchInput(input) {
    const { ids, text } = this.result;
    if (input === "ids") this.app.set({ input, ids: Array.from(ids).join(", ") });
    else this.app.set(this.error ? { input } : { input, text });
  }

  /** The number of tokens after which a new part begins, or 0. */
  get #split() {
    return Math.max(0, Math.floor(this.app.values["text.split"]) || 0);
  }

  #stats() {
    const { ids, bytes, characters, ms } = this.result;
    const fact = (n, name) => [count(n), name(n)];
    const facts = [
      fact(ids.length, t.stats.tokens),
      fact(characters, t.stats.characters),
      fact(bytes, t.stats.bytes),
      [bytes && ids.length ? ratio(bytes / ids.length) : "–", t.stats.perToken],
    ];
    if (this.#split) facts.push(fact(Math.ceil(ids.length / this.#split), t.stats.parts));
    return html`<dl class="stats" id="stats">
      ${facts.map(([value, name]) => html`<div><dd class="number">${value}</dd><dt>${name}</dt></div>`)}
      ${ms === undefined ? nothing : html`<div class="time"><dd class="number">${t.stats.time(ms)}</dd></div>`}
    </dl>`;
  }

  #copyJson() {
    const { model, ids, text, starts, ends } = this.result;
    const tokens = Array.from(ids, (id, i) => ({
      id,
      text: model.vocab.text(id),
      ...(starts ? { start: starts[i], end: ends[i] } : {}),
    }));
    const value = { model: model.name, text, ...(starts ? { ...this.app.options, unit: "utf16" } : {}), ids: Array.from(ids), tokens };
    this.copy(JSON.stringify(value, null, 1), "JSON");
  }

  #tokens() {
    const { result, current } = this;
    const vocab = result.model?.vocab;
    const display = DISPLAYS.includes(this.app.values["text.display"]) ? this.app.values["text.display"] : "text";
    const split = this.#split;
    return html`<section class="panel output" aria-labelledby="tokens-heading">
      <div class="bar">
        <h2 id="tokens-heading" class="hidden">${t.tokens}</h2>
        <div class="segments" role="radiogroup" aria-label=${t.display}>
          ${DISPLAYS.map(
            (value) =>
              html`<label
                ><input
                  type="radio"
                  name="display"
                  value=${value}
                  .checked=${live(display === value)}
                  @change=${() => this.app.set({ "text.display": value })}
                /><span>${t.displays[value]}</span></label
              >`,
          )}
        </div>
        ${this.#stats()}
      </div>
      ${vocab
        ? html`<gg-tokens
            class="frame"
            .vocab=${vocab}
            .ids=${result.ids}
            .display=${display}
            .split=${split}
            .current=${current}
            @token-current=${(event) => (this.current = event.detail)}
            @token-pick=${(event) => this.#pick(event.detail)}
          ></gg-tokens>`
        : nothing}
      <div class="bar line-of-options">
        <label class="inline"
          >${t.split}
          <input
            type="number"
            min="0"
            max="1000000"
            class="short"
            title=${t.splitHint}
            placeholder=${t.splitOff}
            .value=${live(split ? String(split) : "")}
            @change=${(event) => this.app.set({ "text.split": Math.max(0, Math.floor(Number(event.target.value)) || 0) })}
          />
          ${t.splitUnit(split)}</label
        >
        <span class="space"></span>
        <button ?disabled=${!result.ids.length} @click=${() => this.copy(Array.from(result.ids).join(", "), "Ids")}>${t.copyIds}</button>
        <button ?disabled=${!result.ids.length} @click=${() => this.#copyJson()}>${t.copyJson}</button>
      </div>
      ${this.app.values.text || this.app.values.input === "ids"
        ? nothing
        : html`<p class="bar hint">${t.empty} <button @click=${() => this.app.set({ text: t.sample })}>${t.trySample}</button></p>`}
    </section>`;
  }

  #facts() {
    const { result, current } = this;
    const id = result.ids[current];
    const token =
      id === undefined
        ? undefined
        : { id, hue: hueAt(result.model.vocab, result.ids, current), index: current, total: result.ids.length, start: result.starts?.[current], end: result.ends?.[current], text: result.text };
    return html`<aside class="panel details" aria-label=${strings.token.heading}>
      <gg-token .vocab=${result.model?.vocab} .token=${token} .stored=${this.stored}></gg-token>
      ${token
        ? html`<p class="bar">
            <button @click=${() => this.copy(String(id), `Id ${id}`)}>${strings.token.copyId}</button>
            <button
              @click=${() => this.app.set({ view: "vocabulary", "vocabulary.mode": "id", "vocabulary.query": String(id) })}
            >
              ${strings.token.find}
            </button>
            ${result.starts
              ? html`<button @click=${() => this.app.set({ view: "why", "why.token": current })}>${strings.token.why}</button>`
              : nothing}
          </p>`
        : nothing}
    </aside>`;
  }

  render() {
    return html`<h1 class="hidden">${t.heading}</h1>
      <div class="text-view">${this.#input()} ${this.#tokens()} ${this.#facts()}</div>`;
  }
}

/** Parses a list of ids in any common notation; throws an Error that says what is wrong. */
export function idsOf(written, n) {
  const words = written.split(/[\s,;[\](){}"']+/u).filter(Boolean);
  return words.map((word, i) => {
    if (!/^\d+$/.test(word)) throw new Error(t.badId(word.slice(0, 40), i + 1));
    const id = Number(word);
    if (id >= n) throw new Error(t.idRange(word.slice(0, 40), n));
    return id;
  });
}

customElements.define("gg-text-view", TextView);
