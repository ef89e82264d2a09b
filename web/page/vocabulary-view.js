// The Vocabulary view: search, filters, charts, the map, unreachable tokens and
// logit_bias.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { declare } from "./state.js";
import { Element, Latest, View } from "./view.js";
import { messageOf } from "./models.js";
import { Rows } from "./rows.js";
import { BYTE } from "./vocabulary-table.js";
import "./vocabulary-map.js";
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
const ROW = 34; // height of a row, in pixels

// ---- the list ----

/**
 * A list of tokens as rows. Properties: vocab, ids, current (an id), picked (a Set). Events:
 * "token-current" (detail: id), "token-toggle" (detail: id).
 */
class TokenList extends Element {
  static properties = {
    vocab: { attribute: false },
    ids: { attribute: false },
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

  #tell(name, id) {
    this.dispatchEvent(new CustomEvent(name, { detail: id, bubbles: true }));
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

  #row(i) {
    const { vocab } = this;
    const id = this.ids[i];
    const picked = this.picked.has(id);
    const type = strings.token.types[vocab.types[id]];
    const { names, of } = vocab.scripts;
    return html`<div
      class="token-row ${id === this.current ? "current" : ""}"
      role="option"
      id="vocabulary-${i}"
      data-row=${i}
      aria-selected=${picked ? "true" : "false"}
      aria-posinset=${i + 1}
      aria-setsize=${this.ids.length}
      aria-label="${id} ${vocab.spoken(id)} ${count(vocab.length(id))} ${type} ${names[of[id]]}"
    >
      <span class="pick" title=${t.pick(id)}></span>
      <span class="number">${id}</span>
      <span class="piece code">${tokenChip(vocab, id)}</span>
      <span class="number">${count(vocab.length(id))}</span>
      <span class="type">${type}</span>
      <span class="script">${names[of[id]]}</span>
    </div>`;
  }

  render() {
    if (!this.vocab) return nothing;
    const shown = this.ids.length > 0 && this.#rows.has(this.#at);
    const c = t.columns;
    return html`<div class="token-row head" aria-hidden="true">
        <span></span><span class="number">${c.id}</span><span>${c.text}</span><span class="number">${c.bytes}</span><span class="type">${c.type}</span
        ><span class="script">${c.script}</span>
      </div>
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
        ${this.ids.length ? this.#rows.render((i) => this.#row(i)) : nothing}
      </div>`;
  }
}

customElements.define("gg-token-list", TokenList);

// ---- the view ----

class VocabularyView extends View {
  static properties = {
    ids: { state: true },
    error: { state: true },
    current: { state: true },
    stored: { state: true },
    checked: { state: true },
    onlyUnreachable: { state: true },
    notOne: { state: true },
  };

  #latest = new Latest((error) => {
    this.error = messageOf(error);
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
      this.onlyUnreachable = false;
      this.#stop = true;
      this.#key = undefined;
    }
    const names = ["mode", "query", "case", "type", "script", "min", "max", "sort"];
    const key = JSON.stringify([...names.map((name) => this.#value(name)), this.onlyUnreachable]);
    if (key === this.#key) return;
    this.#key = key;
    this.#latest.request(() => this.#find(model));
  }

  async #find(model) {
    const { vocab } = model;
    const found = await search(vocab, this.#value("mode"), this.#value("query"), this.#value("case"));
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
    const orders = {
      short: (a, b) => vocab.length(a) - vocab.length(b) || a - b,
      long: (a, b) => vocab.length(b) - vocab.length(a) || a - b,
      score: (a, b) => vocab.scores[b] - vocab.scores[a] || a - b,
    };
    const order = orders[this.#value("sort")];
    if (order) ids.sort(order);
    if (model !== this.#model) return;
    this.error = "";
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
    const { tok, vocab, info } = this.app.model;
    const model = this.app.model;
    this.#stop = false;
    // A WordPiece token that doesn't begin with the space of a word's start occurs only inside
    // words.
    const inWords = (id) => info.type === "wpm" && vocab.bytes(id)[0] !== 0x20;
    const ids = [];
    for (let id = 0; id < vocab.size; id += 1)
      if (!vocab.isSpecial(id) && vocab.types[id] !== BYTE && vocab.length(id) && !inWords(id)) ids.push(id);
    const found = [];
    const BATCH = 500;
    this.checked = { done: 0, all: ids.length, found, running: true };
    try {
      const options = await model.alone();
      for (let i = 0; i < ids.length && !this.#stop; i += BATCH) {
        const batch = ids.slice(i, i + BATCH);
        const results = await Promise.all(batch.map((id) => tok.encode(vocab.bytes(id), options)));
        if (model !== this.#model) return;
        results.forEach((result, k) => {
          if (result.length !== 1 || result[0] !== batch[k]) found.push(batch[k]);
        });
        this.checked = { done: Math.min(i + BATCH, ids.length), all: ids.length, found, running: true };
      }
    } catch (error) {
      this.error = messageOf(error);
    }
    if (model === this.#model) this.checked = { ...this.checked, running: false };
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

  // ---- filters ----

  #select(name, label, options) {
    return html`<label class="field"
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

  #filters() {
    const vocab = this.#vocab;
    const mode = t.modes[this.#value("mode")] ? this.#value("mode") : "text";
    const types = [...new Set(vocab.types)].sort().map((type) => [String(type), strings.token.types[type]]);
    const scripts = [...vocab.scripts.names].sort().map((name) => [name, name]);
    const filtered = ["query", "type", "script", "min", "max"].some((name) => this.#value(name));
    return html`<search class="filters">
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
      ${this.#select("mode", t.mode, Object.entries(t.modes))}
      ${this.#select("type", t.type, [["", t.any], ...types])} ${this.#select("script", t.script, [["", t.any], ...scripts])}
      <div class="field" role="group" aria-label=${t.length}>
        <span aria-hidden="true">${t.length}</span>
        <span class="pair">${this.#number("min", t.min, t.length)}${this.#number("max", t.max, t.length)}</span>
      </div>
      ${this.#select("sort", t.sort, Object.entries(t.sorts))}
      <label class="check"
        ><input type="checkbox" .checked=${live(this.#value("case"))} @change=${(event) => this.#set({ case: event.target.checked })} />
        ${t.matchCase}</label
      >
      ${filtered ? html`<button @click=${() => this.#set({ query: "", type: "", script: "", min: 0, max: 0 })}>${t.reset}</button>` : nothing}
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
        .ids=${this.ids}
        .current=${this.current}
        .picked=${new Set(this.#picked)}
        @token-current=${(event) => (this.current = event.detail)}
        @token-toggle=${(event) => this.#toggle(event.detail)}
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
        ${panel === "map" ? nothing : html`<p class="found number" role="status">${t.found(this.ids.length, this.#vocab.size)}</p>`}
      </div>
      ${panel === "map" ? nothing : this.#filters()}
      <p role="alert" class="error">${this.error}</p>
      ${this.#panel(panel)}`;
  }
}

customElements.define("gg-vocabulary-view", VocabularyView);
