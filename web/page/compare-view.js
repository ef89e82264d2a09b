// The Compare view: the tokens of one text in two to four models.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { Latest, View } from "./view.js";
import { messageOf } from "./models.js";
import { UNKNOWN } from "./vocabulary-table.js";
import "./editor.js";
import "./tokens.js";
import { count, percent, ratio, strings } from "./strings.js";

const t = strings.compare;

const MOST = 4;
const utf8 = new TextEncoder();

/** Indexes a list of spans: `endAt` has, for each start, the end of the first non-empty span there;
 * `others` has the few further spans with the same start. */
function spansOf({ starts, ends }, length) {
  const endAt = new Int32Array(length + 1).fill(-1);
  const others = new Set();
  for (let i = 0; i < starts.length; i += 1) {
    const end = endAt[starts[i]];
    if (end < 0 || end === starts[i]) endAt[starts[i]] = ends[i];
    else if (end !== ends[i]) others.add(`${starts[i]}-${ends[i]}`);
  }
  return { endAt, others };
}

/**
 * Compares lists of spans ({ starts, ends }) in a text of this length with the list at index `base`.
 * Returns, for each list, a flag for each token: 1 if the base has no token with the same span or,
 * for the base's tokens, if another list has none. The flag of added tokens, whose spans are empty,
 * is 0.
 */
export function differing(lists, length, base) {
  const all = lists.map((list) => spansOf(list, length));
  return lists.map(({ starts, ends }, list) => {
    const flags = new Uint8Array(starts.length);
    for (const { endAt, others } of list === base ? all : [all[base]]) {
      for (let i = 0; i < starts.length; i += 1) {
        if (starts[i] === ends[i] || endAt[starts[i]] === ends[i]) continue;
        if (others.size === 0 || !others.has(`${starts[i]}-${ends[i]}`)) flags[i] = 1;
      }
    }
    return flags;
  });
}

/** Returns the number of unknown tokens, which stand for text that the vocabulary can't represent. */
const unknownIn = ({ info, vocab }, ids) => ids.reduce((n, id) => n + (id === info.special.unk || vocab.types[id] === UNKNOWN), 0);

class CompareView extends View {
  static properties = { results: { state: true }, excluded: { state: true }, at: { state: true }, base: { state: true } };

  #latest = new Latest((error) => {
    this.results = [];
    this.app.say(messageOf(error));
  });
  #asked = "";

  constructor() {
    super();
    this.results = [];
    this.excluded = new Set(); // ids of models that the user deselected
    this.at = -1; // a position in the text, or -1
    this.base = undefined; // the id of the model that the user chose as base
  }

  /** The model that the others are compared with. */
  get #base() {
    return this.#models.find(({ id }) => id === this.base) ?? this.#models[0];
  }

  /** The models to compare. */
  get #models() {
    return this.app.models.filter(({ id }) => !this.excluded.has(id)).slice(0, MOST);
  }

  willUpdate() {
    const models = this.#models;
    const { text } = this.app.values;
    const { options } = this.app;
    const base = this.#base;
    const asked = JSON.stringify([models.map(({ id }) => id), base?.id, text, options]);
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#latest.request(() => this.#compare(models, base, text, options));
  }

  /** Whether the results shown are for the current text. */
  get settled() {
    return !this.#latest.busy;
  }

  async #compare(models, base, text, options) {
    const bytes = utf8.encode(text).length;
    const results = await Promise.all(
      models.map(async (model) => {
        try {
          const { ids, starts, ends } = await model.tok.spans(text, { ...options, unit: "utf16" });
          return { model, ids, starts, ends, bytes, unknown: unknownIn(model, ids) };
        } catch (error) {
          return { model, error: messageOf(error) };
        }
      }),
    );
    const good = results.filter(({ error }) => error === undefined);
    const at = Math.max(0, good.findIndex(({ model }) => model === base));
    differing(good, text.length, at).forEach((flags, i) => Object.assign(good[i], { differs: flags, isBase: i === at }));
    this.at = -1;
    this.results = results;
  }

  #toggle(model, on) {
    const excluded = new Set(this.excluded);
    if (on) excluded.delete(model.id);
    else excluded.add(model.id);
    this.excluded = excluded;
  }

  #choice() {
    const used = new Set(this.#models);
    return html`<fieldset class="bar choice">
      <legend>${t.choose}</legend>
      ${this.app.models.map(
        (model) =>
          html`<label class="check"
            ><input
              type="checkbox"
              .checked=${live(used.has(model))}
              ?disabled=${!used.has(model) && used.size >= MOST}
              @change=${(event) => this.#toggle(model, event.target.checked)}
            /><span class="wrap">${model.name}</span></label
          >`,
      )}
      ${this.app.models.length > MOST ? html`<span class="hint">${t.most(MOST)}</span>` : nothing}
      <button @click=${() => this.app.set({ view: "models" })}>${strings.openModels}</button>
    </fieldset>`;
  }

  #summary() {
    const good = this.results.filter(({ error }) => error === undefined);
    if (!good.length || !this.app.values.text) return nothing;
    const fewest = Math.min(...good.filter(({ unknown }) => !unknown).map(({ ids }) => ids.length));
    const base = good.find(({ isBase }) => isBase);
    const alike = good.length > 1 && good.every(({ differs }) => !differs.includes(1));
    return html`<div class="scroll" tabindex="0" role="region" aria-label=${t.summary}>
        <table class="summary">
          <thead>
            <tr>
              <th>${t.table.base}</th>
              <th>${t.table.model}</th>
              <th class="number">${t.table.tokens}</th>
              <th class="number">${t.table.more}</th>
              <th class="number optional">${t.table.perToken}</th>
              <th class="number">${t.table.differ}</th>
            </tr>
          </thead>
          <tbody>
            ${good.map(
              ({ model, ids, differs, bytes, unknown, isBase }) =>
                html`<tr>
                  <td>
                    <input type="radio" name="base" aria-label=${t.baseOf(model.name)} .checked=${live(model === this.#base)} @change=${() => (this.base = model.id)} />
                  </td>
                  <th scope="row" class="wrap">${model.name}</th>
                  <td class="number">
                    ${!unknown && ids.length === fewest ? html`<strong>${count(ids.length)}</strong>` : count(ids.length)}
                    ${unknown ? html`<div class="warning">${t.unknown(unknown)}</div>` : nothing}
                  </td>
                  <td class="number">${isBase || !base.ids.length ? "–" : percent(ids.length / base.ids.length - 1)}</td>
                  <td class="number optional">${ids.length ? ratio(bytes / ids.length) : "–"}</td>
                  <td class="number">${isBase ? "–" : count(differs.reduce((sum, one) => sum + one, 0))}</td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
      ${good.length < 2 ? nothing : html`<p class="hint">${alike ? t.same : t.lead(base.model.name)}</p>`}
      ${good.some(({ unknown }) => unknown) ? html`<p class="note">${t.unknownHint}</p>` : nothing}`;
  }

  /** Returns the index of the token that contains the position, or -1. */
  #tokenAt({ starts, ends }) {
    return this.at < 0 ? -1 : starts.findIndex((start, i) => start <= this.at && this.at < ends[i]);
  }

  #column(result) {
    const { model } = result;
    return html`<section class="panel" aria-label=${t.tokensOf(model.name)}>
      <h2 class="wrap">${model.name}</h2>
      ${result.error === undefined
        ? html`<gg-tokens
            .vocab=${model.vocab}
            .ids=${result.ids}
            .label=${t.tokensOf(model.name)}
            .current=${this.#tokenAt(result)}
            .classOf=${(i) => (result.differs[i] ? "differs" : "")}
            @token-current=${(event) => (this.at = result.starts[event.detail])}
          ></gg-tokens>`
        : html`<p role="alert" class="error">${t.failed(model.name, result.error)}</p>`}
    </section>`;
  }

  render() {
    const { text } = this.app.values;
    return html`<h1 class="hidden">${t.heading}</h1>
      <div class="compare-view">
        <div class="compare-input">
          <section class="panel">
            <gg-editor
              .text=${text}
              label=${strings.text.textLabel}
              placeholder=${strings.text.textPlaceholder}
              @text-input=${(event) => this.app.set({ text: event.detail })}
            ></gg-editor>
            <div class="bar">
              ${this.option("addSpecial")} ${this.option("parseSpecial")}
              ${this.option("continuation")}
            </div>
          </section>
          <section class="panel">
            ${this.#choice()} ${this.app.models.length < 2 ? html`<p class="note">${t.few}</p>` : nothing} ${this.#summary()}
            ${text ? nothing : html`<p class="bar hint">${t.empty} <button @click=${() => this.app.set({ text: t.sample })}>${strings.text.trySample}</button></p>`}
          </section>
        </div>
        <div class="compared">${this.results.map((result) => this.#column(result))}</div>
      </div>`;
  }
}

customElements.define("gg-compare-view", CompareView);
