// The Vocabulary view: search, filters, charts, the map, unreachable tokens and
// logit_bias.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { declare } from "./state.js";
import { Latest, View, painted } from "./view.js";
import { messageOf } from "./models.js";
import "./vocabulary-map.js";
import { mergesOf } from "./merge-table.js";
import { unreachableTokens } from "./unreachable.js";
import { saveTokens } from "./exports.js";
import { ordersOf, sortIds } from "./token-list.js";
import { search } from "./search.js";
import { tokenChip } from "./tokens.js";
import { count, strings } from "./strings.js";

const t = strings.vocabulary;

declare({
  "vocabulary.panel": "list",
  "vocabulary.mode": "text",
  "vocabulary.query": "",
  "vocabulary.case": false,
  "vocabulary.type": "",
  "vocabulary.script": "",
  "vocabulary.min": 0,
  "vocabulary.max": 0,
  "vocabulary.sort": "id",
  "vocabulary.picked": "",
  "vocabulary.bias": -100,
});

const PANELS = ["list", "charts", "map"];
const LONGEST_BAR = 24; // bytes; all longer tokens share one bar

class VocabularyView extends View {
  static properties = {
    ids: { state: true },
    error: { state: true },
    current: { state: true },
    stored: { state: true },
    checked: { state: true },
    onlyUnreachable: { state: true },
    notOne: { state: true },
    merges: { state: true },
    busy: { state: true },
    open: { state: true }, // whether a narrow screen shows all filters
  };

  #latest = new Latest((error) => {
    this.error = messageOf(error);
    this.busy = false;
    this.ids = [];
  });
  #key;
  #model;
  #stop = false;

  constructor() {
    super();
    this.ids = [];
    this.error = "";
    this.notOne = "";
    this.onlyUnreachable = false;
  }

  #value(name) {
    return this.app.values[`vocabulary.${name}`];
  }

  #set(changes) {
    this.app.set(Object.fromEntries(Object.entries(changes).map(([name, value]) => [`vocabulary.${name}`, value])));
  }

  get #vocab() {
    return this.app.model?.vocab;
  }

  get #picked() {
    const ids = this.#value("picked").split(",").filter(Boolean).map(Number);
    return ids.filter((id) => this.#vocab.has(id));
  }

  willUpdate() {
    const { model } = this.app;
    if (!model) return;
    if (model !== this.#model) {
      this.#model = model;
      this.current = undefined;
      this.checked = undefined;
      this.merges = undefined;
      this.onlyUnreachable = false;
      this.#stop = true;
      this.#key = undefined;
      this.#loadMerges(model);
    }
    const names = ["mode", "query", "case", "type", "script", "min", "max", "sort"];
    const sortsByMerges = /rank/.test(this.#value("sort")) && this.merges !== undefined;
    const key = JSON.stringify([...names.map((name) => this.#value(name)), this.onlyUnreachable, sortsByMerges]);
    if (key === this.#key) return;
    this.#key = key;
    this.#latest.request(() => this.#find(model));
  }

  async #loadMerges(model) {
    try {
      const merges = await mergesOf(model);
      if (model === this.#model && merges.size) this.merges = merges;
    } catch (error) {
      this.error = messageOf(error);
    }
  }

  async #find(model) {
    const { vocab } = model;
    this.busy = true;
    await painted();
    const found = await search(model, this.#value("mode"), this.#value("query"), this.#value("case"));
    const type = this.#value("type");
    const script = this.#value("script");
    const min = this.#value("min");
    const max = this.#value("max") || Infinity;
    const scripts = script ? vocab.scripts : undefined;
    const number = scripts?.names.indexOf(script);
    const unreachable = this.onlyUnreachable ? new Set(this.checked?.found) : undefined;
    const ids = [];
    for (let id = 0; id < vocab.size; id += 1) {
      if (found && !found[id]) continue;
      if (type !== "" && vocab.types[id] !== Number(type)) continue;
      if (scripts && scripts.of[id] !== number) continue;
      const length = vocab.length(id);
      if (length < min || length > max) continue;
      if (unreachable && !unreachable.has(id)) continue;
      ids.push(id);
    }
    sortIds(ids, this.#value("sort"), vocab, this.merges);
    if (model !== this.#model) return;
    this.error = "";
    this.busy = false;
    this.ids = ids;
    if (ids.length && this.#value("mode") === "id" && this.#value("query")) this.current = ids[0];
  }

  async updated(changed) {
    if (!changed.has("current")) return;
    this.stored = undefined;
    const { current } = this;
    if (current === undefined) return;
    const stored = await this.app.model?.tok.token(current).catch(() => undefined);
    if (current === this.current) this.stored = stored;
  }

  // ---- unreachable tokens ----

  async #check() {
    const { model } = this.app;
    this.#stop = false;
    this.checked = { done: 0, all: model.vocab.size, found: [], ...this.checked, running: true };
    try {
      for await (const state of unreachableTokens(model, this.checked)) {
        if (model !== this.#model) return;
        this.checked = { ...state, running: true };
        if (this.#stop) break;
      }
    } catch (error) {
      this.error = messageOf(error);
    }
    if (model === this.#model) this.checked = { ...this.checked, running: false };
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.#stop = true;
  }

  #unreachable() {
    const { checked } = this;
    return html`<details>
      <summary>${t.unreachable}</summary>
      <p class="hint">${t.unreachableHint}</p>
      <p class="bar" role="status">
        ${!checked
          ? html`<button @click=${() => this.#check()}>${t.check}</button>`
          : checked.running
            ? html`<progress max=${checked.all} value=${checked.done} aria-label=${t.unreachable}></progress>
                <span class="number">${t.checking(checked.done, checked.all)}</span>
                <button @click=${() => (this.#stop = true)}>${t.stop}</button>`
            : html`<span>${t.unreachableFound(checked.found.length, checked.done)}</span>
                ${checked.done < checked.all ? html`<button @click=${() => this.#check()}>${t.checkRest}</button>` : nothing}
                <label class="check"
                  ><input type="checkbox" .checked=${live(this.onlyUnreachable)} @change=${(event) => (this.onlyUnreachable = event.target.checked)} />
                  ${t.showOnly}</label
                >`}
      </p>
    </details>`;
  }

  // ---- logit_bias ----

  #toggle(id) {
    const picked = this.#picked;
    this.#set({ picked: (picked.includes(id) ? picked.filter((other) => other !== id) : [...picked, id]).join(",") });
  }

  #addWord = async (event) => {
    event.preventDefault();
    const field = this.querySelector("#bias-word");
    const word = field.value.trim();
    if (!word) return;
    const capital = word.charAt(0).toUpperCase() + word.slice(1);
    const forms = [...new Set([word, capital, word.toUpperCase()].flatMap((form) => [form, ` ${form}`]))];
    const { model } = this.app;
    try {
      const options = await model.alone();
      const results = await Promise.all(forms.map((form) => model.tok.encode(form, options)));
      const found = results.filter((ids) => ids.length === 1).map(([id]) => id);
      const left = forms.filter((_, i) => results[i].length !== 1);
      this.notOne = left.length ? t.notOne(left.map((form) => `“${form.replace(" ", "␠")}”`).join(" ")) : "";
      this.#set({ picked: [...new Set([...this.#picked, ...found])].join(",") });
      field.value = "";
    } catch (error) {
      this.error = messageOf(error);
    }
  };

  #logitBias() {
    const picked = this.#picked;
    const bias = this.#value("bias");
    const json = `{${picked.map((id) => `"${id}": ${bias}`).join(", ")}}`;
    return html`<section class="panel bias" aria-labelledby="bias-heading">
      <h2 id="bias-heading">${t.picked}</h2>
      <p class="hint">${t.pickedHint}</p>
      <form class="line" @submit=${this.#addWord}>
        <input id="bias-word" aria-label=${t.word} placeholder=${t.word} autocapitalize="off" spellcheck="false" title=${t.variantsHint} />
        <button>${t.variants}</button>
      </form>
      ${this.notOne ? html`<p class="hint" role="status">${this.notOne}</p>` : nothing}
      ${picked.length
        ? html`<ul class="chips">
              ${picked.slice(0, 200).map(
                (id) =>
                  html`<li>
                    <button aria-label=${t.unpick(this.#vocab.spoken(id), id)} title=${t.unpick(this.#vocab.visible(id), id)} @click=${() => this.#toggle(id)}>
                      <span class="code">${tokenChip(this.#vocab, id)}</span> <span class="number">${id}</span> <span aria-hidden="true">×</span>
                    </button>
                  </li>`,
              )}
            </ul>
            <p class="bar">
              <label class="inline"
                >${t.bias}
                <input
                  class="short"
                  type="number"
                  min="-100"
                  max="100"
                  step="any"
                  .value=${live(String(bias))}
                  @change=${(event) => this.#set({ bias: Number(event.target.value) || 0 })}
              /></label>
              <button @click=${() => this.copy(json, "JSON")}>${strings.text.copyJson}</button>
              <button @click=${() => this.#set({ picked: "" })}>${t.clear}</button>
            </p>
            <pre class="json" tabindex="0" role="group" aria-label=${t.picked}>${json}</pre>`
        : nothing}
    </section>`;
  }

  // ---- charts ----

  #bars(heading, rows, choose) {
    const most = Math.max(1, ...rows.map(({ n }) => n));
    return html`<section class="panel chart" aria-label=${heading}>
      <h2>${heading}</h2>
      <ul>
        ${rows.map(
          ({ name, n, value }) =>
            html`<li>
              <button @click=${() => choose(value)} aria-label=${t.bar(name, n)}>
                <span>${name}</span> <span class="track"><i .style=${`width: ${(100 * n) / most}%`}></i></span> <span class="number">${count(n)}</span>
              </button>
            </li>`,
        )}
      </ul>
    </section>`;
  }

  #charts() {
    const vocab = this.#vocab;
    const lengths = new Map();
    const { names, of } = vocab.scripts;
    const scripts = new Uint32Array(names.length);
    for (const id of this.ids) {
      const length = Math.min(vocab.length(id), LONGEST_BAR);
      lengths.set(length, (lengths.get(length) ?? 0) + 1);
      scripts[of[id]] += 1;
    }
    const byLength = [...lengths].sort(([a], [b]) => a - b).map(([length, n]) => ({
      name: length === LONGEST_BAR ? t.longer(length) : String(length),
      n,
      value: length,
    }));
    const byScript = names.map((name, i) => ({ name, n: scripts[i], value: name })).filter(({ n }) => n).sort((a, b) => b.n - a.n);
    return html`<div class="charts">
      ${this.#bars(t.lengths, byLength, (length) => this.#set({ min: length, max: length === LONGEST_BAR ? 0 : length, panel: "list" }))}
      ${this.#bars(t.scripts, byScript, (script) => this.#set({ script, panel: "list" }))}
    </div>`;
  }

  #export() {
    const button = (format) =>
      html`<button class="optional" ?disabled=${!this.ids.length} title=${t.exportHint} @click=${() => saveTokens(this.app.model, this.merges, this.ids, format)}>
        ${t.exports[format]}
      </button>`;
    return html`${button("csv")} ${button("json")}`;
  }

  // ---- filters ----

  #select(name, label, options, extra = "optional") {
    return html`<label class="field ${extra}"
      ><span>${label}</span>
      <select @change=${(event) => this.#set({ [name]: event.target.value })}>
        ${options.map(([value, text]) => html`<option value=${value} ?selected=${String(this.#value(name)) === value}>${text}</option>`)}
      </select></label
    >`;
  }

  #number(name, label, group) {
    return html`<input
      class="short"
      type="number"
      min="0"
      aria-label="${group}, ${label}"
      placeholder=${label}
      .value=${live(this.#value(name) ? String(this.#value(name)) : "")}
      @change=${(event) => this.#set({ [name]: Math.max(0, Math.floor(Number(event.target.value)) || 0) })}
    />`;
  }

  #filters(panel) {
    const vocab = this.#vocab;
    const mode = t.modes[this.#value("mode")] ? this.#value("mode") : "text";
    const types = [...new Set(vocab.types)].sort().map((type) => [String(type), strings.token.types[type]]);
    const scripts = [...vocab.scripts.names].sort().map((name) => [name, name]);
    const filtered = ["query", "type", "script", "min", "max"].some((name) => this.#value(name));
    return html`<search class=${this.open ? "filters open" : "filters"}>
      <label class="field query"
        ><span>${t.search}</span>
        <input
          type="search"
          spellcheck="false"
          autocapitalize="off"
          placeholder=${t.placeholders[mode]}
          .value=${live(this.#value("query"))}
          @input=${(event) => this.#set({ query: event.target.value })}
        />
      </label>
      ${this.#select("mode", t.mode, Object.entries(t.modes), "")}
      <button class="filters-toggle" aria-expanded=${this.open ? "true" : "false"} @click=${() => (this.open = !this.open)}>${t.filters}</button>
      ${this.#select("type", t.type, [["", t.any], ...types])} ${this.#select("script", t.script, [["", t.any], ...scripts])}
      <div class="field optional" role="group" aria-label=${t.length}>
        <span aria-hidden="true">${t.length}</span>
        <span class="pair">${this.#number("min", t.min, t.length)}${this.#number("max", t.max, t.length)}</span>
      </div>
      ${panel !== "list" ? nothing : this.#select("sort", t.sort, ordersOf(vocab, this.merges).map((order) => [order, t.sorts[order]]))}
      ${mode === "text"
        ? html`<label class="check optional"
            ><input type="checkbox" .checked=${live(this.#value("case"))} @change=${(event) => this.#set({ case: event.target.checked })} />
            ${t.matchCase}</label
          >`
        : nothing}
      ${filtered ? html`<button @click=${() => this.#set({ query: "", type: "", script: "", min: 0, max: 0 })}>${t.reset}</button>` : nothing}
      ${panel === "list" ? this.#export() : nothing}
    </search>`;
  }

  #facts() {
    const token = this.current === undefined ? undefined : { id: this.current };
    return html`<section class="panel" aria-label=${strings.token.heading}>
      <gg-token .vocab=${this.#vocab} .token=${token} .stored=${this.stored}></gg-token>
    </section>`;
  }

  #panel(panel) {
    if (panel === "charts") return this.#charts();
    if (panel === "map") return html`<gg-vocabulary-map .app=${this.app}></gg-vocabulary-map>`;
    return html`<div class="columns">
      <gg-token-list
        .vocab=${this.#vocab}
        .merges=${this.merges}
        .ids=${this.ids}
        .order=${this.#value("sort")}
        .current=${this.current}
        .picked=${new Set(this.#picked)}
        @token-current=${(event) => (this.current = event.detail)}
        @token-toggle=${(event) => this.#toggle(event.detail)}
        @token-order=${(event) => this.#set({ sort: event.detail })}
      ></gg-token-list>
      <aside aria-label=${strings.token.heading}>${this.#facts()} ${this.#logitBias()} ${this.#unreachable()}</aside>
    </div>`;
  }

  render() {
    if (!this.#vocab) return nothing;
    const panel = PANELS.includes(this.#value("panel")) ? this.#value("panel") : "list";
    const names = { list: t.list, charts: t.charts, map: strings.map.tab(this.app.model.info.type === "bpe") };
    return html`<h1 class="hidden">${t.heading}</h1>
      <div class="bar">
        <div class="segments" role="radiogroup" aria-label=${t.panels}>
          ${PANELS.map(
            (name) =>
              html`<label
                ><input type="radio" name="panel" value=${name} .checked=${live(panel === name)} @change=${() => this.#set({ panel: name })} /><span
                  >${names[name]}</span
                ></label
              >`,
          )}
        </div>
        ${panel === "map"
          ? nothing
          : html`<p class=${this.busy ? "found number status busy" : "found number status"} role="status">
              ${this.busy ? t.searching : t.found(this.ids.length, this.#vocab.size)}
            </p>`}
      </div>
      ${panel === "map" ? nothing : this.#filters(panel)}
      <p role="alert" class="error">${this.error}</p>
      ${this.#panel(panel)}`;
  }
}

customElements.define("gg-vocabulary-view", VocabularyView);
