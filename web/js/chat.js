// Prompts and ids of chat requests. The module has all rules; this code writes requests for it, and
// reads its answers.
import { writeJson } from "./json.js";
import { checkChoice, kindOf, readOptions, refuse } from "./options.js";

const RENDER = { like: "llama.cpp", template: null, now: null, mediaMarker: null };
const ENCODE = { ...RENDER, trusted: false, userDefined: "parse" };
const LIKE = ["llama.cpp", "transformers"];
const USER_DEFINED = ["parse", "plain"];
const FROM = ["template", "message", "unknown"]; // by ggtok_origin_kind
const MOST_CHATS = 8; // compiled templates to keep; compiling one takes milliseconds
// The struct chat_setup in web/wasm/exports.c: twelve words. Its texts follow it.
const SETUP = 48;
const [TRUSTED, PLAIN_USER_DEFINED, LIKE_TRANSFORMERS] = [1, 2, 4];
const encoder = new TextEncoder();
const zoneNames = new Intl.DateTimeFormat("en-US", { timeZoneName: "short" });

/** The chats of a tokenizer. */
export class Chats {
  #engine;
  #handle;
  #chats = new Map(); // addresses of compiled chats; the least recently used one is the first

  constructor(engine, handle) {
    this.#engine = engine;
    this.#handle = handle;
  }

  /** Returns the text of a request's prompt, and its origins. */
  render(request, options) {
    const given = readOptions(options, RENDER);
    return this.#run(request, given, (...call) => this.#rendered(...call));
  }

  encode(request, options) {
    const given = readOptions(options, ENCODE);
    return this.#run(request, given, (...call) => {
      const { text, origins, nMedia } = this.#rendered(...call);
      this.#engine.try("chat_encode", this.#handle, ...call);
      const { data, n } = this.#engine.report;
      const ids = this.#engine.int32(data, n);
      return { text, own: ownRanges(origins), ids, uncountedParts: nMedia };
    });
  }

  count(request, options) {
    const given = readOptions(options, ENCODE);
    return this.#run(request, given, (...call) => {
      this.#engine.try("chat_count", this.#handle, ...call);
      const { n, number } = this.#engine.report;
      return { count: n, uncountedParts: number };
    });
  }

  #rendered(...call) {
    const engine = this.#engine;
    const prompt = engine.try("chat_render", ...call);
    try {
      const { data, n, number } = engine.report;
      const text = engine.string(data, n);
      return { text, origins: this.#origins(prompt), nMedia: number };
    } finally {
      if (!engine.broken) engine.call("prompt_free", prompt);
    }
  }

  #origins(prompt) {
    const engine = this.#engine;
    engine.try("prompt_origins", prompt);
    const { data, n } = engine.report;
    const words = new Uint32Array(engine.memory.buffer, data, 6 * n);
    const fields = new Map(); // names of fields by their address
    const origins = [];
    for (let i = 0; i < words.length; i += 6) {
      const [start, end, kind, message, at, size] = words.subarray(i, i + 6);
      const origin = { start, end, from: FROM[kind] };
      if (origin.from === "message") {
        if (!fields.has(at)) fields.set(at, engine.string(at, size));
        Object.assign(origin, { message, field: fields.get(at) });
      }
      origins.push(origin);
    }
    engine.free(data);
    return origins;
  }

  /** Calls use(chat, address, n, setup), whose last three arguments are the request's JSON and its
   * chat_setup in the module's memory. */
  #run(request, options, use) {
    if (typeof request !== "string" && (typeof request !== "object" || request === null)) {
      throw refuse(`a request must be an object or JSON text, not ${kindOf(request)}`);
    }
    const json = typeof request === "string" ? request : writeJson(request);
    const setup = setupOf(options);
    const engine = this.#engine;
    return engine.withRoom(setup.length, (setupAt) => {
      setup.writeTo(new Uint8Array(engine.memory.buffer), setupAt);
      const chat = this.#chat(options, setupAt);
      return engine.withText(json, (at, n) => use(chat, at, n, setupAt));
    });
  }

  /** Returns the compiled chat for these options. */
  #chat({ like, template }, setupAt) {
    const key = template === null ? like : `${like} ${template}`;
    const chat = this.#chats.get(key) ?? this.#engine.try("chat_new", this.#handle, setupAt);
    this.#chats.delete(key);
    this.#chats.set(key, chat);
    const [[oldest, unused]] = this.#chats;
    if (this.#chats.size > MOST_CHATS) {
      this.#chats.delete(oldest);
      this.#engine.call("chat_free", unused);
    }
    return chat;
  }

  free() {
    for (const chat of this.#chats.values()) {
      if (!this.#engine.broken) this.#engine.call("chat_free", chat);
    }
    this.#chats.clear();
  }
}

/** Returns the ranges of a prompt that the template wrote. */
export function ownRanges(origins) {
  return origins.filter(({ from }) => from === "template").map(({ start, end }) => [start, end]);
}

// ---- options ----

/** Checks options, and returns the size of their chat_setup and a function that writes it. */
function setupOf({ like, template, now, mediaMarker, trusted = false, userDefined = "parse" }) {
  checkChoice("like", like, LIKE);
  checkChoice("userDefined", userDefined, USER_DEFINED);
  if (template !== null && typeof template !== "string") {
    throw refuse(`template must be a string, not ${kindOf(template)}`);
  }
  if (mediaMarker !== null && typeof mediaMarker !== "string") {
    throw refuse(`mediaMarker must be a string, not ${kindOf(mediaMarker)}`);
  }
  if (mediaMarker === "" || mediaMarker?.includes("\0")) {
    throw refuse("mediaMarker must not be empty, or contain a NUL character");
  }
  const time = now ?? new Date();
  if (!(time instanceof Date) || Number.isNaN(time.getTime())) throw refuse("now must be a Date");
  const zone = encoder.encode(`${zoneName(time)}\0`);
  const marker = mediaMarker === null ? null : encoder.encode(`${mediaMarker}\0`);
  const source = template === null ? null : encoder.encode(template);
  const words = [
    time.getFullYear(), time.getMonth() + 1, time.getDate(),
    time.getHours(), time.getMinutes(), time.getSeconds(), -60 * time.getTimezoneOffset(),
    (trusted ? TRUSTED : 0) |
      (userDefined === "plain" ? PLAIN_USER_DEFINED : 0) |
      (like === "transformers" ? LIKE_TRANSFORMERS : 0),
  ]; // prettier-ignore
  const texts = [zone, marker, source];
  const length = texts.reduce((sum, bytes) => sum + (bytes?.length ?? 0), SETUP);
  return {
    length,
    writeTo(memory, at) {
      let end = at + SETUP;
      for (const bytes of texts) {
        words.push(bytes ? end : 0);
        if (bytes) memory.set(bytes, end);
        end += bytes?.length ?? 0;
      }
      new Int32Array(memory.buffer, at, SETUP / 4).set([...words, source?.length ?? 0]);
    },
  };
}

/** Returns the abbreviation of the local time zone; "" if it has none but an offset. */
function zoneName(time) {
  const { value } = zoneNames.formatToParts(time).find(({ type }) => type === "timeZoneName");
  return /^[A-Z]+$/.test(value) ? value : "";
}
