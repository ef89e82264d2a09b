// The Chat view: messages, the template, and the prompt that the template renders.

import { html, nothing } from "lit";
import { live } from "lit/directives/live.js";
import { declare } from "./state.js";
import { Latest, View } from "./view.js";
import { messageOf } from "./models.js";
import { Parts, parseJson, shortened } from "./parts.js";
import { HUES, partsOf } from "./vocabulary-table.js";
import { hueAt, partsTemplate } from "./tokens.js";
import "./editor.js";
import { count, strings } from "./strings.js";

const t = strings.chat;

declare({
  "chat.messages": JSON.stringify(t.sample),
  "chat.tools": "",
  "chat.variables": "",
  "chat.like": "llama.cpp",
  "chat.generation": true,
  "chat.thinking": "default",
  "chat.name": "default", // the name of one of the file's templates
  "chat.template": "", // an edited template; "" while unedited
  "chat.show": "origins",
});

const NOTHING = { text: "", ids: [], origins: [], messages: [], uncountedParts: 0 };
const MOST_TEMPLATE = 500_000; // UTF-16 units; the area for the template shows it in one part
const MOST_MESSAGES = 30; // in one part of the list
const MOST_NAMES = 200; // of templates that can be selected
const MOST_ROLE = 60; // UTF-16 units of a role that are shown
const utf8 = new TextEncoder();

class ChatView extends View {
  static properties = {
    templates: { state: true },
    result: { state: true },
    error: { state: true },
    busy: { state: true },
    current: { state: true },
    lacking: { state: true }, // whether the file has no template
  };

  #latest = new Latest((error) => this.#failed(error));
  #key;
  #model;
  #loading; // promise of the model's templates; undefined if they must be loaded
  #messageParts = new Parts(this, MOST_MESSAGES);
  #promptParts = new Parts(this, 1);

  constructor() {
    super();
    this.templates = {};
    this.result = NOTHING;
    this.current = -1;
  }

  #value(name) {
    return this.app.values[`chat.${name}`];
  }

  #set(changes) {
    this.app.set(Object.fromEntries(Object.entries(changes).map(([name, value]) => [`chat.${name}`, value])));
  }

  get #messages() {
    try {
      return this.#parsed("messages", t.messages);
    } catch {
      return []; // the prompt's place shows the error
    }
  }

  /** Returns the value of a setting that contains JSON: undefined if it is empty. */
  #parsed(name, what) {
    const text = this.#value(name).trim();
    const value = text ? parseJson(text, what) : undefined;
    if (name === "messages" && !Array.isArray(value)) throw new Error(t.notList(what));
    return value;
  }

  #change(messages) {
    this.#set({ messages: JSON.stringify(messages) });
  }

  willUpdate() {
    const { model } = this.app;
    if (!model) return;
    if (model !== this.#model) {
      this.#model = model;
      this.templates = {};
      this.lacking = false;
      this.result = NOTHING;
      this.#key = undefined;
      this.#loading = undefined;
    }
    const names = ["messages", "tools", "variables", "like", "generation", "thinking", "name", "template", "show"];
    const key = JSON.stringify(names.map((name) => this.#value(name)));
    if (key === this.#key) return;
    this.#key = key;
    this.#latest.request(() => this.#render(model));
  }

  /** Returns the request as a chat endpoint would receive it. */
  #request() {
    const messages = this.#parsed("messages", t.messages);
    const tools = this.#parsed("tools", t.tools);
    const variables = this.#parsed("variables", t.kwargs) ?? {};
    if (!isObject(variables)) throw new Error(t.notObject(t.kwargs));
    const thinking = { on: true, off: false }[this.#value("thinking")];
    const kwargs = { ...variables, ...(thinking === undefined ? {} : { enable_thinking: thinking }) };
    return {
      messages,
      ...(tools === undefined ? {} : { tools }),
      add_generation_prompt: this.#value("generation"),
      ...(Object.keys(kwargs).length ? { chat_template_kwargs: kwargs } : {}),
    };
  }

  async #load(model) {
    this.#loading ??= model.tok.templates();
    try {
      return await this.#loading;
    } catch (error) {
      this.#loading = undefined;
      throw error;
    }
  }

  async #render(model) {
    this.busy = true;
    try {
      const templates = await this.#load(model);
      if (model !== this.#model) return;
      this.templates = templates;
      this.lacking = Object.keys(templates).length === 0;
      const request = this.#request();
      const name = this.#value("name");
      const template = this.#value("template") || (name === "default" ? undefined : named(templates, name));
      const options = { like: this.#value("like"), ...(template === undefined ? {} : { template }) };
      const { text, ids, uncountedParts } = await model.tok.encodeChat(request, options);
      const traced = this.#value("show") !== "tokens" ? await model.tok.chatOrigins(request, options) : NOTHING;
      if (model !== this.#model) return;
      this.error = undefined;
      this.result = { text, ids, uncountedParts, origins: traced.origins, messages: request.messages };
      if (this.current >= ids.length) this.current = -1;
    } finally {
      this.busy = false;
    }
  }

  #failed(error) {
    this.result = NOTHING;
    this.error = { message: error.code === "time" ? t.stopped : messageOf(error), line: error.line || undefined };
  }

  // ---- messages ----

  #message(message, i, all) {
    const change = (changed) => this.#change(all.map((other, k) => (k === i ? changed : other)));
    const swap = (k) => {
      const messages = [...all];
      [messages[i], messages[k]] = [messages[k], messages[i]];
      this.#change(messages);
    };
    const { role: selected, content } = message ?? {};
    const plain = isObject(message) && Object.keys(message).every((key) => key === "role" || key === "content") && typeof content === "string";
    const known = t.roles.includes(selected);
    return html`<li class="message">
      <div class="bar">
        <span class="number hint" aria-hidden="true">${i + 1}</span>
        <select aria-label=${t.role(i + 1)} @change=${(event) => change({ ...message, role: event.target.value })}>
          ${t.roles.map((role) => html`<option value=${role} ?selected=${role === selected}>${role}</option>`)}
          ${known ? nothing : html`<option selected>${roleText(selected)}</option>`}
        </select>
        <span class="space"></span>
        <button class="quiet icon" aria-label=${t.up(i + 1)} title=${t.up(i + 1)} ?disabled=${i === 0} @click=${() => swap(i - 1)}>↑</button>
        <button class="quiet icon" aria-label=${t.down(i + 1)} title=${t.down(i + 1)} ?disabled=${i === all.length - 1} @click=${() => swap(i + 1)}>↓</button>
        <button class="quiet icon" aria-label=${t.remove(i + 1)} title=${t.remove(i + 1)} @click=${() => this.#change(all.filter((_, k) => k !== i))}>×</button>
      </div>
      ${plain
        ? html`<gg-editor
            rows=${Math.min(8, Math.max(2, content.split("\n", 8).length))}
            label=${t.content(i + 1)}
            .text=${content}
            @text-input=${(event) => change({ ...message, content: event.detail })}
          ></gg-editor>`
        : html`<textarea
            class="code"
            rows="4"
            aria-label=${t.json(i + 1)}
            .value=${JSON.stringify(message, null, 1)}
            @change=${(event) => {
              try {
                change(parseJson(event.target.value, t.json(i + 1)));
              } catch (error) {
                this.error = { message: error.message };
              }
            }}
          ></textarea>`}
    </li>`;
  }

  #messagesPanel() {
    const messages = this.#messages;
    const role = messages.at(-1)?.role === "user" ? "assistant" : "user";
    const add = () => {
      this.#messageParts.show(messages.length);
      this.#change([...messages, { role, content: "" }]);
    };
    return html`<section class="panel" aria-labelledby="chat-messages">
      <h2 id="chat-messages">${t.messages}</h2>
      <ol class="messages">
        ${this.#messageParts.map(messages, (message, i) => this.#message(message, i, messages))}
      </ol>
      ${this.#messageParts.bar(messages.length)}
      <p class="bar"><button @click=${add}>${t.add}</button></p>
    </section>`;
  }

  // ---- options ----

  #select(name, label, options) {
    return html`<label class="field"
      ><span>${label}</span>
      <select @change=${(event) => this.#set({ [name]: event.target.value })}>
        ${Object.entries(options).map(([value, text]) => html`<option value=${value} ?selected=${this.#value(name) === value}>${text}</option>`)}
      </select></label
    >`;
  }

  #json(name, label, more = nothing) {
    return html`<details ?open=${Boolean(this.#value(name))}>
      <summary>${label}</summary>
      <gg-editor
        code
        rows="5"
        label=${label}
        .text=${this.#value(name)}
        @text-input=${(event) => this.#set({ [name]: event.detail })}
      ></gg-editor>
      ${more}
    </details>`;
  }

  #options() {
    return html`<section class="panel" aria-labelledby="chat-options">
      <h2 id="chat-options" class="hidden">${t.options}</h2>
      <div class="filters">
        ${this.#select("like", t.like, t.likes)} ${this.#select("thinking", t.thinking, t.thinkings)}
        <label class="check"
          ><input
            type="checkbox"
            .checked=${live(this.#value("generation"))}
            @change=${(event) => this.#set({ generation: event.target.checked })}
          />
          ${t.generation}</label
        >
      </div>
      ${this.#json(
        "tools",
        t.tools,
        html`<button @click=${() => this.#set({ tools: JSON.stringify(JSON.parse(t.sampleTools), null, 1) })}>${t.useSample}</button>`,
      )}
      ${this.#json("variables", t.kwargs)}
    </section>`;
  }

  // ---- the template ----

  #template() {
    const names = Object.keys(this.templates);
    const name = this.#value("name");
    const edited = this.#value("template");
    const own = named(this.templates, name) ?? "";
    const cut = !edited && own.length > MOST_TEMPLATE;
    const text = cut ? own.slice(0, MOST_TEMPLATE) : edited || own;
    const shownNames = names.slice(0, MOST_NAMES);
    if (Object.hasOwn(this.templates, name) && !shownNames.includes(name)) shownNames.push(name);
    const line = this.error?.line;
    return html`<details class="template" ?open=${Boolean(edited || line)}>
      <summary>${t.template} <span class="hint">${edited ? t.templateOf.edited : names.length ? t.templateOf.file : t.templateOf.none}</span></summary>
      <div class="bar">
        ${names.length > 1 ? this.#select("name", t.template, Object.fromEntries(shownNames.map((each) => [each, shortened(each, 100)]))) : nothing}
        ${edited ? html`<button @click=${() => this.#set({ template: "" })}>${t.restore}</button>` : nothing}
      </div>
      ${cut ? html`<p class="hint">${t.cutTemplate(MOST_TEMPLATE, own.length)}</p>` : nothing}
      <div class="numbered">
        <pre aria-hidden="true">${lineNumbers(text, line)}</pre>
        <textarea
          class="code"
          rows="14"
          maxlength=${MOST_TEMPLATE}
          wrap="off"
          aria-label=${t.template}
          spellcheck="false"
          ?readonly=${cut}
          .value=${live(text)}
          @scroll=${(event) => (event.target.previousElementSibling.scrollTop = event.target.scrollTop)}
          @input=${(event) => {
            const { value } = event.target;
            if (value.length >= MOST_TEMPLATE) this.app.say(t.longTemplate(MOST_TEMPLATE));
            this.#set({ template: value === own ? "" : value });
          }}
        ></textarea>
      </div>
    </details>`;
  }

  // ---- the prompt ----

  #origins() {
    const { text, origins, messages } = this.result;
    const pages = (this.result.pages ??= pagesOf(text, origins));
    const piece = ({ start, end, from, message, field }) => {
      const part = wholeText(text.slice(start, end));
      if (from !== "message") return html`<span class="origin ${from}" title=${t.origins[from]}>${part}</span>`;
      const label = t.from(message + 1, roleText(messages[message].role), field);
      return html`<span class="origin message h${message % HUES}" title=${label} data-from=${field === "role" ? nothing : label}>${part}</span>`;
    };
    return html`<p class="legend hint">
        <span class="origin template">${t.origins.template}</span> <span class="origin message h0">${t.origins.message}</span>
        <span class="origin unknown">${t.origins.unknown}</span> ${t.originHint}
      </p>
      <pre class="prompt frame" dir="ltr" tabindex="0" role="group" aria-label=${t.prompt}>${this.#promptParts.map(pages, (page) => page.map(piece))}</pre>
      ${this.#promptParts.bar(pages.length)}`;
  }

  #prompt() {
    const { result, current } = this;
    const { model } = this.app;
    const { contextLength } = model.info;
    const show = this.#value("show") === "tokens" ? "tokens" : "origins";
    const id = result.ids[current];
    return html`<section class="panel output" aria-labelledby="chat-prompt">
      <div class="bar">
        <h2 id="chat-prompt">${t.prompt}</h2>
        <div class="segments" role="radiogroup" aria-label=${t.shown}>
          ${Object.entries(t.views).map(
            ([value, label]) =>
              html`<label
                ><input type="radio" name="chat-show" value=${value} .checked=${live(show === value)} @change=${() => this.#set({ show: value })} /><span
                  >${label}</span
                ></label
              >`,
          )}
        </div>
        <span class="space"></span>
        <button ?disabled=${!result.text} @click=${() => this.copy(result.text, t.prompt)}>${t.copyPrompt}</button>
        <button ?disabled=${!result.ids.length} @click=${() => this.copy(Array.from(result.ids).join(", "), "Ids")}>${strings.text.copyIds}</button>
      </div>
      <p class="stats" role="status">
        ${result.ids.length
          ? html`<span><b class="number">${count(result.ids.length)}</b> ${t.tokens(result.ids.length)}</span>
              ${contextLength ? html`<span class="hint">${t.context(result.ids.length, contextLength)}</span>` : nothing}
              ${result.uncountedParts ? html`<span class="hint">${t.uncounted(result.uncountedParts)}</span>` : nothing}`
          : this.busy
            ? t.rendering
            : nothing}
      </p>
      ${this.lacking && !this.#value("template") ? html`<p class="note">${t.noTemplate}</p>` : nothing}
      <p role="alert" class="error">${this.error ? t.error(this.error.message, this.error.line) : ""}</p>
      ${show === "origins"
        ? this.#origins()
        : html`<gg-tokens
              class="frame"
              .vocab=${model.vocab}
              .ids=${result.ids}
              .current=${current}
              @token-current=${(event) => (this.current = event.detail)}
            ></gg-tokens>
            <gg-token .vocab=${model.vocab} .token=${id === undefined ? undefined : { id, hue: hueAt(model.vocab, result.ids, current), index: current, total: result.ids.length }}></gg-token>`}
    </section>`;
  }

  render() {
    if (!this.app.model) return nothing;
    return html`<h1 class="hidden">${t.heading}</h1>
      <div class="chat-view">
        <div class="panel">${this.#messagesPanel()} ${this.#options()} ${this.#template()}</div>
        ${this.#prompt()}
      </div>`;
  }
}

const named = (templates, name) => (Object.hasOwn(templates, name) ? templates[name] : undefined);
const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

const PAGE_UNITS = 20_000; // UTF-16 units of the prompt in one page
const PAGE_PIECES = 500; // origins in one page

const roleText = (role) => shortened(typeof role === "string" ? role : (JSON.stringify(role) ?? ""), MOST_ROLE);

/** Divides the origins of a prompt's text into pages of bounded length. */
function pagesOf(text, origins) {
  const pages = [[]];
  let units = 0;
  for (const origin of origins) {
    for (let start = origin.start; start < origin.end; ) {
      if (units >= PAGE_UNITS || pages.at(-1).length >= PAGE_PIECES) {
        pages.push([]);
        units = 0;
      }
      let end = Math.min(origin.end, start + PAGE_UNITS - units);
      if (end < origin.end && text.codePointAt(end - 1) > 0xffff) end += 1;
      pages.at(-1).push({ ...origin, start, end });
      units += end - start;
      start = end;
    }
  }
  return pages;
}

/** Renders a text with visible white space, without shortening its lines. */
function wholeText(text) {
  return text
    .split(/(?<=\n)/)
    .map((line) => partsTemplate(partsOf(utf8.encode(line), Infinity)));
}

function lineNumbers(text, wrong) {
  const lines = Array.from({ length: Math.min(text.split("\n").length, 20_000) }, (_, i) => `${i + 1}\n`);
  if (!wrong) return lines.join("");
  return html`${lines.slice(0, wrong - 1).join("")}<span class="wrong">${lines[wrong - 1] ?? nothing}</span>${lines.slice(wrong).join("")}`;
}

customElements.define("gg-chat-view", ChatView);
