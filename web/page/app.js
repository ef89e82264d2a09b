// The shell: header, tabs, the selected view and messages.

import { html, nothing } from "lit";
import { Element } from "./view.js";
import { App } from "./state.js";
import { offeredModels } from "./models.js";
import { views } from "./views.js";
import { strings } from "./strings.js";

const PROJECT = "https://github.com/ggtok/ggtok";
const THEMES = ["auto", "light", "dark"];
const MESSAGE_SECONDS = 6;
const MOST_OPENED = 4; // offered models that are opened without asking: those that can be compared

class Shell extends Element {
  static properties = { message: { state: true }, dragging: { state: true }, theme: { state: true } };

  app = new App();
  #elements = new Map();
  #clear = 0;

  constructor() {
    super();
    this.message = "";
    this.dragging = false;
    this.theme = "auto";
    const { models, server, writer } = offeredModels();
    this.app.offered = models;
    this.app.server = server;
    this.app.writer = writer; // the program that wrote this page with a vocabulary in it, if any
  }

  connectedCallback() {
    super.connectedCallback();
    this.#useTheme(stored() ?? "auto");
    this.app.addEventListener("change", () => this.requestUpdate());
    this.app.addEventListener("say", (event) => this.#say(event.detail));
    addEventListener("popstate", (event) => this.app.fromHistory(event.state));
    addEventListener("beforeprint", () => (document.documentElement.dataset.theme = "light"));
    addEventListener("afterprint", () => this.#useTheme(this.theme));
    addEventListener("dragover", this.#drag);
    addEventListener("dragleave", this.#leave);
    addEventListener("drop", this.#drop);
    this.app.fromAddress();
    this.#start();
  }

  /** Opens the offered model that the link names, or the first one if the link names no model; then
   * the others, if they are few. Several models are shown side by side, unless the link names a
   * view. */
  async #start() {
    const { offered, values } = this.app;
    const entry = offered.find(({ name }) => name === values.model) ?? (values.model ? undefined : offered[0]);
    if (!entry) return;
    const others = offered.length <= MOST_OPENED ? offered.filter((other) => other !== entry) : [];
    if (others.length && !location.hash) this.app.set({ view: "compare" });
    await this.#view("models").openOffered(entry);
    for (const other of others) await this.#view("models").openOffered(other, { background: true });
  }

  #say(message) {
    this.message = message;
    clearTimeout(this.#clear);
    this.#clear = setTimeout(() => (this.message = ""), 1000 * MESSAGE_SECONDS);
  }

  #useTheme(theme) {
    this.theme = THEMES.includes(theme) ? theme : "auto";
    if (this.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.theme;
  }

  #theme = (event) => {
    this.#useTheme(event.target.value);
    try {
      localStorage.setItem("ggtok-theme", this.theme);
    } catch {
      // Without storage, the theme lasts until the page is closed.
    }
  };

  // ---- files dropped anywhere on the page ----

  #drag = (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.dragging = true;
  };

  #leave = (event) => {
    if (event.relatedTarget === null) this.dragging = false;
  };

  #drop = async (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    this.dragging = false;
    const [file] = event.dataTransfer.files;
    if (!file) return this.#say(strings.models.noFile);
    if (!(await this.#view("models").openFile(file))) this.app.set({ view: "models" });
    else if (this.app.values.view === "models") this.app.set({ view: "text" });
  };

  // ---- views ----

  /** Returns the view's element, which is created on first use. */
  #view(name) {
    let element = this.#elements.get(name);
    if (element === undefined) {
      element = document.createElement(views.find((view) => view.name === name).tag);
      element.app = this.app;
      this.#elements.set(name, element);
    }
    return element;
  }

  /** The name of the view to show: the selected view, or "models" while the selected view needs a
   * model and no model is open. */
  get #shown() {
    const { values, model } = this.app;
    const view = views.find(({ name }) => name === values.view) ?? views.find(({ name }) => name === "text");
    return view.needsModel !== false && !model ? "models" : view.name;
  }

  #choose(name) {
    this.app.set({ view: name });
  }

  #keys = (event) => {
    const names = this.#tabs().map(({ name }) => name);
    const at = names.indexOf(this.#shown);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1 + names.length, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const name = names[to % names.length];
    this.#choose(name);
    this.updateComplete.then(() => this.querySelector(`#tab-${name}`)?.focus());
  };

  #tabs() {
    return views.filter(({ needsModel }) => needsModel === false || this.app.model);
  }

  /** Copies a link. It names the model, but contains neither its file nor a long text. */
  #link = async () => {
    const { model, values } = this.app;
    const { fragment, complete } = this.app.link({ ...values, model: model.link || model.name });
    const isLocal = location.protocol === "file:" || /^(localhost|127\.|\[::1\])/.test(location.hostname);
    try {
      await navigator.clipboard.writeText(new URL(fragment, location.href).href);
      const t = strings.linked;
      this.#say([
        t.copied,
        complete ? "" : t.withoutText,
        model.link ? "" : t.withoutModel(model.name),
        isLocal ? t.here : "",
      ].filter(Boolean).join(" "));
    } catch {
      this.#say(strings.copyFailed);
    }
  };

  updated() {
    const { model } = this.app;
    document.title = model ? `${model.name} · ${strings.tab[this.#shown]} · ${strings.title}` : strings.documentTitle;
    this.querySelector(`#tab-${this.#shown}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  render() {
    const { models, active } = this.app;
    const shown = this.#shown;
    return html`
      <a class="skip" href="#content" @click=${(event) => {
        event.preventDefault();
        this.querySelector("#content").focus();
      }}>${strings.skip}</a>
      <header class="top">
        <span class="mark" aria-hidden="true"><i></i><i></i><i></i></span>
        <span class="name">${strings.title}</span>
        ${models.length
          ? html`<span class="model">
              <select aria-label=${strings.model} @change=${(event) => this.app.use(Number(event.target.value))}>
                ${models.map((model, i) => html`<option value=${i} ?selected=${i === active}>${model.name}</option>`)}
              </select>
            </span>`
          : nothing}
        <span class="space"></span>
        ${models.length ? html`<button class="quiet" @click=${this.#link}>${strings.link}</button>` : nothing}
        <span class="theme">
          <span class="hint" aria-hidden="true">${strings.theme.label}</span>
          <select aria-label=${strings.theme.label} @change=${this.#theme}>
            ${THEMES.map((theme) => html`<option value=${theme} ?selected=${theme === this.theme}>${strings.theme[theme]}</option>`)}
          </select>
        </span>
      </header>
      ${models.length === 0
        ? nothing
        : html`<nav aria-label=${strings.tabs}><div class="tabs" role="tablist" aria-label=${strings.tabs} @keydown=${this.#keys}>
        ${this.#tabs().map(
          ({ name }) =>
            html`<button
              role="tab"
              id="tab-${name}"
              aria-controls="view"
              aria-selected=${name === shown ? "true" : "false"}
              tabindex=${name === shown ? 0 : -1}
              @click=${() => this.#choose(name)}
            >
              ${strings.tab[name]}
            </button>`,
        )}
      </div></nav>`}
      <main id="content" tabindex="-1" data-view=${shown}>
        <div class="view" id="view" role=${models.length ? "tabpanel" : nothing} aria-labelledby=${models.length ? `tab-${shown}` : nothing}>${this.#view(shown)}</div>
      </main>
      <footer>
        <a href=${PROJECT}>${strings.title} ${VERSION}</a>
        <span>${strings.reference}</span>
        ${this.app.writer ? html`<span>${strings.written(this.app.writer, this.app.offered.map(({ from, name }) => from ?? name))}</span>` : nothing}
      </footer>
      <div class="toast" role="status">${this.message ? html`<span>${this.message}</span>` : nothing}</div>
      ${this.dragging ? html`<div class="dropping" aria-hidden="true">${strings.models.dropNow}</div>` : nothing}
    `;
  }
}

function stored() {
  try {
    return localStorage.getItem("ggtok-theme");
  } catch {
    return null;
  }
}

customElements.define("gg-app", Shell);
