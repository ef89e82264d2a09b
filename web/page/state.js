// The state that all views share, and how the address stores it.
//
// `values` holds every setting under a flat name ("text", "vocabulary.query"). DEFAULTS declares
// each name with its default, whose type (string, number or boolean) is the setting's type. The
// address's fragment contains the settings that differ from the default. A view adds its settings
// with `declare({ "view.setting": default })` when its module loads.

import { strings } from "./strings.js";

const DEFAULTS = {
  view: "text",
  model: "",
  text: strings.text.sample,
  input: "text", // "text" or "ids"
  ids: "",
  addSpecial: true,
  parseSpecial: false,
  continuation: false,
};

// The most characters of a setting in a link; longer settings are omitted.
const LONGEST_IN_LINK = 4000;

// The most characters of a setting that a link may have. Views bound what they draw of it.
const LONGEST_FROM_LINK = 100_000;

export function declare(defaults) {
  Object.assign(DEFAULTS, defaults);
}

export class App extends EventTarget {
  /** The open models: {@link ./models.js Model}s, in order of opening. */
  models = [];
  /** Models that can be opened: entries of models.json. */
  offered = [];
  values = { ...DEFAULTS };
  #active = 0;
  #ticket = 0;
  #entry; // what the current entry of the browser's history shows: { view, model, places }
  #places = new Set(); // settings that Back and Forward change, besides the view and the model
  #isStep = false; // whether the settings have changed by a step since the last entry

  /** The selected model, or undefined. */
  get model() {
    return this.models[this.#active];
  }

  get active() {
    return this.#active;
  }

  /** The options for encode, spans and trace. */
  get options() {
    const { addSpecial, parseSpecial, continuation } = this.values;
    return { addSpecial, parseSpecial, continuation };
  }

  /** Changes settings and notifies every view. */
  set(changes) {
    if (changes.view !== undefined && changes.view !== this.values.view) this.#toAddress();
    let changed = false;
    for (const [name, value] of Object.entries(changes)) {
      if (this.values[name] !== value) {
        this.values[name] = value;
        changed = true;
      }
    }
    if (changed) this.changed();
  }

  /** Changes settings as a step of its own, which the browser's Back undoes. */
  go(changes) {
    for (const name of Object.keys(changes)) this.#places.add(name);
    this.#toAddress();
    this.set(changes);
    this.#isStep = true;
  }

  use(index) {
    if (this.models[index] !== this.model) this.#toAddress();
    this.#active = index;
    this.values.model = this.model?.link ?? "";
    this.changed();
  }

  /** Adds an open model, and selects it unless `background`. */
  add(model, { background = false } = {}) {
    this.models = [...this.models, model];
    if (background && this.models.length > 1) this.changed();
    else this.use(this.models.length - 1);
  }

  remove(index) {
    const [model] = this.models.splice(index, 1);
    this.models = [...this.models];
    model.close();
    this.use(Math.max(0, Math.min(this.#active - (index < this.#active ? 1 : 0), this.models.length - 1)));
  }

  changed() {
    this.dispatchEvent(new Event("change"));
    clearTimeout(this.#ticket);
    this.#ticket = setTimeout(() => this.#toAddress(), 400);
  }

  /** Shows a message to the user for some seconds. Screen readers read it out. */
  say(message) {
    this.dispatchEvent(new CustomEvent("say", { detail: message }));
  }

  // ---- the address ----

  /** Returns the fragment for the current state, and whether it contains every setting. */
  link(values = this.values) {
    const query = new URLSearchParams();
    let complete = true;
    for (const [name, value] of Object.entries(values)) {
      if (value === DEFAULTS[name] || name === "view") continue;
      const written = typeof value === "boolean" ? String(Number(value)) : String(value);
      if (written.length > LONGEST_IN_LINK) complete = false;
      else query.set(name, written);
    }
    const rest = query.size ? `?${query}` : "";
    return { fragment: `#${this.values.view}${rest}`, complete };
  }

  /** Writes the settings to the address. Another view or model, and a step, is a new entry of the
   * history. */
  #toAddress() {
    clearTimeout(this.#ticket);
    const places = Object.fromEntries(Array.from(this.#places, (name) => [name, this.values[name]]));
    const entry = { view: this.values.view, model: this.model?.id, places };
    const { fragment } = this.link();
    const isOther = this.#isStep || entry.view !== this.#entry?.view || entry.model !== this.#entry?.model;
    const isNew = this.#entry?.model !== undefined && isOther;
    this.#isStep = false;
    if (isNew) history.pushState(entry, "", fragment);
    else history.replaceState(entry, "", fragment);
    this.#entry = entry;
  }

  /** Shows what an entry of the history shows: its view, its model and the place in a view. All
   * other settings stay, so that no text is lost. A new address, which has no state, sets
   * everything. */
  fromHistory(state) {
    if (state === null) return this.fromAddress();
    this.#entry = state;
    this.#isStep = false;
    const index = this.models.findIndex(({ id }) => id === state.model);
    if (index >= 0) this.#active = index;
    this.values = { ...this.values, ...state.places, view: state.view, model: this.model?.link ?? "" };
    this.changed();
  }

  /** Reads the settings from the address's fragment. */
  fromAddress() {
    const [view, query = ""] = location.hash.slice(1).split(/\?(.*)/s);
    const given = new URLSearchParams(query);
    const values = { ...DEFAULTS, view: view || DEFAULTS.view };
    for (const [name, text] of given) {
      if (name === "view" || !Object.hasOwn(DEFAULTS, name)) continue;
      if (text.length > LONGEST_FROM_LINK) {
        this.say(strings.longLink(LONGEST_FROM_LINK));
        continue;
      }
      const kind = typeof DEFAULTS[name];
      if (kind === "boolean") values[name] = text === "1";
      else if (kind === "string") values[name] = text;
      else if (Number.isFinite(Number(text))) values[name] = Number(text);
    }
    const index = this.models.findIndex(({ link }) => link === values.model);
    if (index >= 0 && values.model) this.#active = index;
    this.values = values;
    if (this.#entry) this.#entry = { view: values.view, model: this.model?.id };
    this.changed();
  }
}
