// The File view: metadata, flags, special tokens and the doctor's findings.

import { html, nothing } from "lit";
import { declare } from "./state.js";
import { View } from "./view.js";
import { messageOf } from "./models.js";
import { Parts, first, shortened } from "./parts.js";
import { tokenChip } from "./tokens.js";
import { count, size, strings } from "./strings.js";

const t = strings.file;

declare({ "file.filter": "" });

const FLAGS = ["addBos", "addEos", "addSep", "addSpacePrefix", "ignoreMerges", "cleanSpaces", "removeExtraWhitespaces", "escapeWhitespaces", "lowercase", "stripAccents"];
const WORDPIECE = new Set(["lowercase", "stripAccents"]); // flags that only WordPiece reads
const MOST_CHARACTERS = 240;
const MOST_WHOLE = 100_000; // characters that "Show more" shows
const MOST_KEYS = 200; // in one part of the table
const MOST_ITEMS = 50; // in lists that are short unless the file is hostile

class FileView extends View {
  static properties = {
    entries: { state: true },
    whole: { state: true },
    error: { state: true },
    findings: { state: true },
    doctor: { state: true },
  };

  #model;
  #parts = new Parts(this, MOST_KEYS);

  constructor() {
    super();
    this.entries = [];
    this.whole = new Set();
    this.error = "";
    this.doctor = "";
  }

  willUpdate() {
    const { model } = this.app;
    if (!model || model === this.#model) return;
    this.#model = model;
    this.entries = [];
    this.whole = new Set();
    this.findings = undefined;
    this.doctor = "";
    this.error = "";
    this.#read(model);
  }

  async #read(model) {
    try {
      const entries = await model.tok.metadata();
      if (model === this.#model) this.entries = entries;
    } catch (error) {
      if (model === this.#model) this.error = messageOf(error);
    }
  }

  // ---- summary ----

  #summary() {
    const { name, info } = this.app.model;
    const added = [info.addBos && "BOS", info.addSep && "SEP", info.addEos && "EOS"].filter(Boolean);
    const rows = [
      [t.name, shortened(info.name ?? name, MOST_CHARACTERS)],
      [t.type, info.type],
      [t.pre, info.pre ?? "–"],
      [t.tokens, count(info.tokens)],
      [t.context, info.contextLength ? count(info.contextLength) : "–"],
      [t.added, added.join(", ") || t.nothing],
      [t.read, size(info.bytesRead ?? 0)],
      [t.flags, FLAGS.filter((flag) => info[flag] && (info.type === "wpm" || !WORDPIECE.has(flag))).map(words).join(", ") || t.nothing],
    ];
    return html`<section class="panel card" aria-labelledby="file-summary">
      <h2 id="file-summary">${t.summary}</h2>
      <dl class="facts">${rows.map(([key, value]) => html`<dt>${key}</dt><dd><bdi>${value}</bdi></dd>`)}</dl>
      ${first(info.warnings ?? [], MOST_ITEMS, (warning) => html`<p class="note">${warning}</p>`)}
    </section>`;
  }

  #special() {
    const { info, vocab } = this.app.model;
    const roles = Object.entries(info.special).filter(([, id]) => id !== null && id !== undefined);
    const others = (info.eog ?? []).filter((id) => !roles.some(([, other]) => other === id));
    const eog = new Set(info.eog ?? []);
    const row = (role, id) =>
      html`<tr>
        <th scope="row">${role}</th>
        <td class="number">${id}</td>
        <td class="code">${vocab.has(id) ? tokenChip(vocab, id) : "–"}</td>
        <td>${eog.has(id) ? "✓" : ""}</td>
      </tr>`;
    return html`<section class="panel card" aria-labelledby="file-special">
      <h2 id="file-special">${t.special}</h2>
      <div class="scroll" tabindex="0" role="group" aria-label=${t.special}>
        <table>
          <thead>
            <tr>
              <th scope="col">${t.role}</th>
              <th scope="col" class="number">${t.id}</th>
              <th scope="col">${t.token}</th>
              <th scope="col">${t.eog}</th>
            </tr>
          </thead>
          <tbody>
            ${roles.map(([role, id]) => row(role.toUpperCase().replaceAll("_", " "), id))} ${others.slice(0, MOST_ITEMS).map((id) => row("", id))}
          </tbody>
        </table>
      </div>
    </section>`;
  }

  // ---- doctor ----

  async #runDoctor() {
    const { app } = this;
    const model = app.model;
    this.doctor = t.doctorRunning;
    try {
      const response = await fetch(new URL("doctor", new URL(app.server, document.baseURI)), {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ model: model.offered.name }),
      });
      const body = await response.json();
      if (!response.ok) throw new Error(body.error?.message ?? response.statusText);
      if (model !== this.#model) return;
      this.findings = body.findings;
      this.doctor = "";
    } catch (error) {
      if (model === this.#model) this.doctor = t.doctorFailed(error.message);
    }
  }

  #doctorCard() {
    const { model, server } = this.app;
    const local = server !== undefined && model.offered !== undefined;
    return html`<section class="panel card" aria-labelledby="file-doctor">
      <h2 id="file-doctor">${t.doctor}</h2>
      <p class="hint">${t.doctorHint}</p>
      ${!local
        ? html`<p>${t.doctorStatic}</p>
            <pre class="json" tabindex="0" role="group" aria-label=${t.doctor}>${t.doctorLocal(model.source instanceof File ? shellWord(model.source.name) : "MODEL.gguf")}</pre>`
        : this.findings === undefined
          ? html`<p class="bar"><button @click=${() => this.#runDoctor()}>${t.doctorRun}</button></p>`
          : html`<p role="status">${t.findings(this.findings.length)}</p>
              <ul class="findings">
                ${first(
                  this.findings,
                  MOST_ITEMS,
                  (finding) =>
                    html`<li class=${finding.severity}>
                      <strong>${finding.title}</strong>
                      <bdi>${finding.detail}</bdi>
                      <span class="hint">${finding.means} ${finding.advice}</span>
                    </li>`,
                )}
              </ul>`}
      ${this.doctor ? html`<p role="status">${this.doctor}</p>` : nothing}
    </section>`;
  }

  // ---- metadata ----

  #text(entry) {
    const { value, length, type } = entry;
    if (type === "f32") return String(Number(value.toPrecision(7)));
    if (!Array.isArray(value)) return String(value);
    const items = value.map((item) => (typeof item === "string" ? JSON.stringify(item) : String(item)));
    return `[${items.join(", ")}${length > value.length ? ", …" : ""}]`;
  }

  #value(entry) {
    const text = this.#text(entry);
    const whole = this.whole.has(entry.key);
    const show = () => (this.whole = new Set([...this.whole, entry.key]));
    return html`<bdi class="value code">${shortened(text, whole ? MOST_WHOLE : MOST_CHARACTERS)}</bdi>
      ${whole || text.length <= MOST_CHARACTERS ? nothing : html`<button class="more" @click=${show} aria-label="${t.more}: ${entry.key}">${t.more}</button>`}`;
  }

  #json() {
    const plain = (value) => (typeof value === "bigint" ? String(value) : value);
    return JSON.stringify(this.entries, (_, value) => plain(value), 1);
  }

  #metadata() {
    const filter = this.app.values["file.filter"];
    const wanted = filter.toLowerCase();
    const shown = this.entries.filter(({ key }) => key.toLowerCase().includes(wanted));
    return html`<section class="panel metadata" aria-labelledby="file-metadata">
      <div class="bar">
        <h2 id="file-metadata">${t.metadata}</h2>
        <input
          type="search"
          aria-label=${t.filter}
          placeholder=${t.filter}
          .value=${filter}
          @input=${(event) => this.app.set({ "file.filter": event.target.value })}
        />
        <span class="space"></span>
        <button @click=${() => this.copy(this.#json(), "JSON")}>${t.copyJson}</button>
      </div>
      <table>
        <thead>
          <tr>
            <th scope="col">${t.key}</th>
            <th scope="col">${t.valueType}</th>
            <th scope="col">${t.value}</th>
          </tr>
        </thead>
        <tbody>
          ${this.#parts.map(
            shown,
            (entry) =>
              html`<tr>
                <th scope="row" class="code"><bdi>${shortened(entry.key, MOST_CHARACTERS)}</bdi></th>
                <td class="type">${entry.type === "array" ? `${entry.elementType} × ${count(entry.length)}` : entry.type}</td>
                <td>${this.#value(entry)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
      ${this.#parts.bar(shown.length)}
    </section>`;
  }

  render() {
    if (!this.app.model) return nothing;
    return html`<h1 class="hidden">${t.heading}</h1>
      <p role="alert" class="error">${this.error}</p>
      <div class="cards">${this.#summary()} ${this.#special()} ${this.#doctorCard()}</div>
      ${this.#metadata()}`;
  }
}

const words = (name) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

/** Quotes a file's name for a shell, if necessary. */
const shellWord = (name) => (/^[\w.+-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`);

customElements.define("gg-file-view", FileView);
