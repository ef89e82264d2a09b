// The base of every view, and helpers that views share.

import { html, LitElement } from "lit";
import { live } from "lit/directives/live.js";
import { strings } from "./strings.js";

/** An element that renders into the page itself, so that style.css applies and labels reach it. */
export class Element extends LitElement {
  createRenderRoot() {
    return this;
  }
}

/**
 * A view: an element with the property `app` (see state.js). It rerenders whenever the state
 * changes. While its tab is hidden, it isn't in the page.
 */
export class View extends Element {
  static properties = { app: { attribute: false } };

  #changed = () => this.requestUpdate();

  connectedCallback() {
    super.connectedCallback();
    this.app.addEventListener("change", this.#changed);
    this.requestUpdate();
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this.app.removeEventListener("change", this.#changed);
  }

  /** Renders a check box for an encoding option. */
  option(name) {
    return html`<label class="check" title=${strings.text[`${name}Hint`]}>
      <input type="checkbox" .checked=${live(this.app.values[name])} @change=${(event) => this.app.set({ [name]: event.target.checked })} />
      ${strings.text[name]}
    </label>`;
  }

  /** Copies text and says so. */
  async copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      this.app.say(strings.copied(what));
    } catch {
      this.app.say(strings.copyFailed);
    }
  }
}

/** Waits until the browser has drawn the page, or, if the page is hidden, for a moment. */
export const painted = () => new Promise((resolve) => {
  requestAnimationFrame(() => setTimeout(resolve));
  setTimeout(resolve, 100);
});

/**
 * Runs requests one after the other. Of the requests made while another one runs, only the last is
 * kept. `run` is async; if it throws, `failed` is called with the error.
 */
export class Latest {
  #running = false;
  #next;

  constructor(failed) {
    this.failed = failed;
  }

  get busy() {
    return this.#running;
  }

  async request(run) {
    this.#next = run;
    if (this.#running) return;
    this.#running = true;
    try {
      while (this.#next) {
        const now = this.#next;
        this.#next = undefined;
        try {
          await now();
        } catch (error) {
          this.failed(error);
        }
      }
    } finally {
      this.#running = false;
    }
  }
}
