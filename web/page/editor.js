// A text area for texts of any length. With a megabyte of text, browsers take tenths of a second
// for each key, so the area shows only a part of a long text. A part ends at a line's end if one is
// near.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { points } from "./points.js";
import { Element } from "./view.js";
import { strings } from "./strings.js";

const t = strings.text;

const LONG = 50_000; // UTF-16 units; longer texts are shown in parts
const PART = 20_000;
const LOOK = 4_000; // UTF-16 units in which to search for a line's end

/**
 * Properties:
 *   text         the whole text
 *   label        the accessible name
 *   placeholder  what an empty area shows
 *   rows         the height of the area, in lines
 *   code         whether the text is code
 *   caret        the position of the caret in the whole text
 * Event "text-input" (detail: the new text) after each edit by the user.
 */
export class Editor extends Element {
  static properties = {
    text: { attribute: false },
    label: {},
    placeholder: {},
    rows: { type: Number },
    code: { type: Boolean },
    from: { state: true }, // the position where the shown part begins
    to: { state: true }, // the position where the shown part ends
  };

  #known; // the text for which `from` and `to` were set

  constructor() {
    super();
    this.text = "";
    this.from = 0;
    this.to = 0;
  }

  get #area() {
    return this.querySelector("textarea");
  }

  willUpdate() {
    if (this.text !== this.#known) this.#open(0);
  }

  /** Returns a position where a part can end: `at`, or the next line's end if it is near. */
  #cut(at) {
    if (at <= 0) return 0;
    if (at >= this.text.length) return this.text.length;
    const end = this.text.slice(at, at + LOOK).indexOf("\n");
    if (end >= 0) return at + end + 1;
    const unit = this.text.charCodeAt(at);
    return unit >= 0xdc00 && unit < 0xe000 ? at + 1 : at;
  }

  /** Shows the part that begins near `at`. */
  #open(at) {
    this.#known = this.text;
    const long = this.text.length > LONG;
    this.from = long ? this.#cut(Math.min(at, this.text.length - PART)) : 0;
    this.to = long ? Math.max(this.#cut(this.from + PART), this.from + 1) : this.text.length;
    if (long && this.text.length - this.to < PART / 4) this.to = this.text.length;
  }

  #input = (event) => {
    const area = event.target;
    const before = this.text.slice(0, this.from);
    this.#known = this.text = before + area.value + this.text.slice(this.to);
    this.to = this.from + area.value.length;
    if (area.value.length > LONG) this.#openAround(this.from + area.selectionStart);
    this.dispatchEvent(new CustomEvent("text-input", { detail: this.text }));
  };

  /** Inserts long pasted text, because browsers would need about a second for each megabyte. */
  #beforeInput = (event) => {
    if (!(event.data?.length > LONG)) return;
    event.preventDefault();
    const area = event.target;
    const inserted = event.data.replace(/\r\n?/g, "\n");
    const start = this.#inText(area.selectionStart);
    this.text = this.text.slice(0, start) + inserted + this.text.slice(this.#inText(area.selectionEnd));
    this.#openAround(start + inserted.length);
    this.dispatchEvent(new CustomEvent("text-input", { detail: this.text }));
  };

  /** Shows the part around a position, and puts the caret there. */
  #openAround(position) {
    this.#open(Math.max(0, position - PART / 2));
    this.updateComplete.then(() => {
      const at = this.#inArea(position);
      this.#area.setSelectionRange(at, at);
    });
  }

  /** Converts a position in the text to one in the area, whose value has LF for each CRLF. */
  #inArea(position) {
    return this.text.slice(this.from, position).replaceAll("\r\n", "\n").length;
  }

  get focused() {
    return document.activeElement === this.#area;
  }

  /** Converts a position in the area to one in the text. */
  #inText(at) {
    const part = this.text.slice(this.from, this.to);
    for (let found = part.indexOf("\r\n"); found >= 0 && found < at; found = part.indexOf("\r\n", found + 2)) at += 1;
    return this.from + at;
  }

  get caret() {
    return this.#inText(this.#area.selectionStart);
  }

  async select(start, end, focus) {
    if (start < this.from || end > this.to) {
      this.#open(Math.max(0, start - PART / 4));
      await this.updateComplete;
    }
    const area = this.#area;
    if (focus) area.focus();
    area.setSelectionRange(this.#inArea(start), this.#inArea(end));
  }

  #position() {
    const from = points(this.text.slice(0, this.from));
    const to = from + points(this.text.slice(this.from, this.to));
    return t.long(from + 1, to, to + points(this.text.slice(this.to)));
  }

  render() {
    const part = this.text.slice(this.from, this.to);
    const whole = this.from === 0 && this.to === this.text.length;
    return html`<textarea
        class=${this.code ? "editor code" : "editor"}
        rows=${this.rows ?? nothing}
        aria-label=${this.label}
        placeholder=${this.placeholder ?? nothing}
        spellcheck="false"
        autocomplete="off"
        autocapitalize="off"
        .value=${live(part.includes("\r") ? part.replace(/\r\n?/g, "\n") : part)}
        @input=${this.#input}
        @beforeinput=${this.#beforeInput}
      ></textarea>
      ${whole
        ? nothing
        : html`<div class="bar parts-bar">
            <span class="hint">${this.#position()}</span>
            <span class="space"></span>
            <button ?disabled=${this.from === 0} @click=${() => this.#open(this.from - PART)}>${t.previous}</button>
            <button ?disabled=${this.to === this.text.length} @click=${() => this.#open(this.to)}>${t.next}</button>
          </div>`}
      ${this.text.includes("\r") ? html`<p class="hint">${t.returns}</p>` : nothing}`;
  }
}

customElements.define("gg-editor", Editor);
