// The Models view: opens a file, an address or an offered model, and lists the open models.

import { html, nothing } from "lit";
import { View } from "./view.js";
import { messageOf, networkReason, open, openOffered } from "./models.js";
import { Parts, shortened } from "./parts.js";
import { count, size, strings } from "./strings.js";

const t = strings.models;
const MOST_OFFERED = 200; // models in one part of the list
const MOST_NAME = 200; // UTF-16 units of a name from an address

class ModelsView extends View {
  static properties = { busy: { state: true }, error: { state: true }, url: { state: true } };

  #parts = new Parts(this, MOST_OFFERED);

  constructor() {
    super();
    this.busy = "";
    this.error = "";
    this.url = "";
  }

  async #open(name, load, { url, ...how } = {}) {
    this.error = "";
    this.busy = name;
    const began = performance.now();
    try {
      const model = await load();
      this.app.add(model, how);
      this.app.say(t.ready(model.name, model.info.tokens, performance.now() - began));
      return true;
    } catch (error) {
      this.error = t.failed(name, error.code === "network" && url ? await networkReason(url) : messageOf(error));
      return false;
    } finally {
      this.busy = "";
    }
  }

  openFile(file) {
    return this.#open(file.name, () => open(file, { name: file.name.replace(/\.gguf$/i, "") }));
  }

  openUrl(address) {
    let url;
    try {
      url = new URL(address);
    } catch {
      url = undefined;
    }
    if (url === undefined || !/^https?:$/.test(url.protocol)) {
      this.error = t.badUrl;
      return false;
    }
    const name = shortened(decoded(url.pathname.split("/").pop() || url.host).replace(/\.gguf$/i, ""), MOST_NAME);
    return this.#open(name, () => open(url, { name, link: url.href }), { url });
  }

  openOffered(offered, how) {
    return this.#open(offered.name, () => openOffered(offered), how);
  }

  async #then(opened) {
    if (await opened) this.app.set({ view: this.app.values.view === "models" ? "text" : this.app.values.view });
  }

  #submit = (event) => {
    event.preventDefault();
    this.#then(this.openUrl(this.querySelector("#model-url").value.trim()));
  };

  #choose = (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) this.#then(this.openFile(file));
  };

  /** Asks for what opening a linked model needs: the user's consent to contact a server, or the
   * file. */
  #linked() {
    const { model } = this.app.values;
    if (!model || this.app.models.some(({ link }) => link === model) || this.busy) return nothing;
    if (!/^https?:/.test(model)) return html`<p class="note">${t.linked(shortened(model, MOST_NAME))}</p>`;
    return html`<p class="note">
      ${t.linkedUrl(shortened(model, 2000))}
      <button class="primary" @click=${() => this.#then(this.openUrl(model))}>${t.open}</button>
    </p>`;
  }

  #offered() {
    const { offered, models } = this.app;
    const left = offered.filter((entry) => !models.some((model) => model.offered === entry));
    if (!left.length) return nothing;
    return html`<section>
      <h2>${t.started}</h2>
      <ul class="choices">
        ${this.#parts.map(
          left,
          (entry) =>
            html`<li><button ?disabled=${Boolean(this.busy)} @click=${() => this.#then(this.openOffered(entry))}><bdi>${entry.name}</bdi></button></li>`,
        )}
      </ul>
      ${this.#parts.bar(left.length)}
    </section>`;
  }

  #opened() {
    const { models, model } = this.app;
    if (!models.length) return nothing;
    return html`<section>
      <h2>${t.opened}</h2>
      <div class="scroll" tabindex="0" role="group" aria-label=${t.opened}>
        <table>
          <thead>
            <tr>
              <th scope="col">${t.table.name}</th>
              <th scope="col">${t.table.type}</th>
              <th scope="col" class="optional">${t.table.pre}</th>
              <th scope="col" class="number">${t.table.tokens}</th>
              <th scope="col" class="number optional">${t.table.read}</th>
              <th scope="col"><span class="hidden">${t.table.actions}</span></th>
            </tr>
          </thead>
          <tbody>
            ${models.map(
              (each, i) =>
                html`<tr>
                  <th scope="row"><bdi>${each.name}</bdi></th>
                  <td>${each.info.type}</td>
                  <td class="optional">${each.info.pre ?? "–"}</td>
                  <td class="number">${count(each.info.tokens)}</td>
                  <td class="number optional">${size(each.info.bytesRead ?? 0)}</td>
                  <td class="actions">
                    ${each === model
                      ? html`<span class="hint">${t.inUse}</span>`
                      : html`<button @click=${() => this.app.use(i)} aria-label=${t.use(each.name)}>${t.useShort}</button>`}
                    <button @click=${() => this.app.remove(i)} aria-label=${t.remove(each.name)}>${strings.close}</button>
                  </td>
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
    </section>`;
  }

  render() {
    const first = this.app.models.length === 0;
    return html`<div class="models narrow">
      ${first
        ? html`<header class="hero">
            <h1>${t.heading}</h1>
            <p>${t.lead}</p>
          </header>`
        : html`<h1 class="hidden">${strings.tab.models}</h1>`}
      ${this.#linked()}
      <div class="drop">
        <label class="button primary" for="model-file">${t.choose}</label>
        <input id="model-file" class="hidden" type="file" accept=".gguf" @change=${this.#choose} ?disabled=${Boolean(this.busy)} />
        <p class="or">${t.drop}</p>
        <p class="hint">${t.dropHint}<br />${t.private}</p>
      </div>
      <p role="status" class=${this.busy ? "status busy" : "status"}>${this.busy ? t.reading(this.busy) : ""}</p>
      <p role="alert" class="error">${this.error}</p>
      ${this.#offered()}
      <form class="url" @submit=${this.#submit}>
        <label for="model-url">${t.url}</label>
        <div class="line">
          <input id="model-url" type="url" inputmode="url" placeholder=${t.urlPlaceholder} aria-describedby="url-hint" />
          <button ?disabled=${Boolean(this.busy)}>${t.open}</button>
        </div>
        <p class="hint" id="url-hint">${t.urlHint}</p>
      </form>
      ${this.#opened()}
    </div>`;
  }
}

/** Decodes the percent-encoding of a part of an address, if it is valid. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

customElements.define("gg-models-view", ModelsView);
