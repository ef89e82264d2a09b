// Turns chat requests into prompts: selects the template and the policy, and renders with the
// module.
import { TemplateError } from "../errors.js";
import { CHATML, LlamaServer, patched } from "./llama.js";
import { around, countParts, markerOf } from "./media.js";
import { originsOf } from "./origins.js";
import { Prompt } from "./prompt.js";
import { Transformers } from "./transformers.js";
import { isObject, kindOf, optionsOf, parse, refuse, Writer } from "./values.js";

const DIALECTS = ["llama", "transformers"];
const MAX_POLICIES = 8; // policies to cache; creating one takes milliseconds
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A compiled template. */
class Template {
  constructor(engine, source, dialect) {
    this.engine = engine;
    this.at = engine.withText(source, (at, n) =>
      engine.try("template_new", at, n, DIALECTS.indexOf(dialect)),
    );
    this.variables = new Set();
    for (let i = 0; engine.call("template_variable", this.at, i); i++) {
      this.variables.add(engine.string(engine.report.data, engine.report.n));
    }
  }

  /** Returns the prompt for these variables. `ends` is [bos, eos, end, more]: BOS and EOS to remove
   * from the prompt's ends, and `more` to append if the prompt ends with `end`. */
  render(variables, now, ends) {
    return this.#run(variables, now, ends, (env, error) => {
      if (error) throw error;
      const { data, n, more, nMore } = this.engine.report;
      const { buffer } = this.engine.memory;
      const flat = new Uint32Array(buffer, more, 2 * nMore);
      const ranges = [];
      for (let i = 0; i < flat.length; i += 2) ranges.push([flat[i], flat[i + 1]]);
      let text;
      try {
        text = decoder.decode(new Uint8Array(buffer, data, n));
      } catch {
        throw new TemplateError("template", "the template splits a character", { line: 0 });
      }
      return new Prompt(text, ranges);
    });
  }

  /** Renders a test conversation. Returns { text, notes }: the text, or null if rendering fails,
   * and for each path the bits that tell how the template used the value there. */
  probe(variables, paths) {
    const { engine } = this;
    return this.#run(variables, NO_TIME, null, (env, error) => {
      if (error && !(error instanceof TemplateError)) throw error;
      const text = error ? null : engine.string(engine.report.data, engine.report.n);
      const notes = paths.map((path) =>
        engine.withBytes(Writer.path(path), (at) => engine.call("notes", env, at, path.length)),
      );
      return { text, notes };
    });
  }

  #run(variables, now, ends, use) {
    const { engine } = this;
    const written = Writer.variables(variables);
    const time = Int32Array.of(now.year, now.month, now.day, now.hour, now.minute, now.second);
    const withEnds = (then) =>
      ends ? engine.withText(ends.map((text) => `${text}\0`).join(""), then) : then(0);
    return engine.withBytes(written, (at) =>
      engine.withNumbers(time, (timeAt) =>
        withEnds((endsAt) =>
          engine.withRoom(4, (slot) => {
            const ok = engine.call("render", this.at, at, timeAt, endsAt, slot);
            const env = new Uint32Array(engine.memory.buffer, slot, 1)[0];
            try {
              return use(env, ok ? undefined : engine.error());
            } finally {
              if (env && !engine.broken) engine.call("rendering_free", env);
            }
          }),
        ),
      ),
    );
  }

  free() {
    if (!this.engine.broken) this.engine.call("template_free", this.at);
  }
}

const NO_TIME = { year: 1970, month: 1, day: 1, hour: 0, minute: 0, second: 0 };

/** Renders a tokenizer's chat requests. */
export class Chat {
  #engine;
  #policies = new Map(); // policies by dialect and template, the least recently used first

  /** `file` has the chat templates by name (`templates`), the texts of special tokens (`texts`),
   * and BOS and EOS if encoding adds them (`ends`). */
  constructor(engine, file) {
    this.#engine = engine;
    this.file = file;
  }

  /** Returns the prompt for a request: an object, or JSON text. */
  render(request, options) {
    return this.#render(request, options, false).prompt;
  }

  /** Returns the texts of a request's prompt that are encoded separately, and how many image, audio
   * and video parts the request has. `isWhole`: the whole prompt is one text, because no markers
   * divide it. */
  renderForIds(request, options) {
    const { prompt, body, dialect, marker } = this.#render(request, options, true);
    const nParts = countParts(body.messages, dialect);
    // For transformers, the template itself decides what it writes for an image, audio or video
    // part.
    const isWhole = dialect === "transformers" || !nParts;
    return { texts: isWhole ? [prompt] : around(prompt, marker, nParts), isWhole, nParts };
  }

  /** Returns the text of a request's prompt, and the origins of its parts. */
  origins(request, options) {
    // All renderings must have the same time.
    const fixed = { ...optionsOf(options), now: options?.now ?? new Date() };
    const { body, dialect, prompt } = this.#render(request, fixed, false);
    const render = (marks) => this.#render(body, fixed, false, marks).prompt;
    return { text: prompt.text, origins: originsOf(prompt, body, dialect, render) };
  }

  #render(request, options, forIds, marks) {
    const {
      dialect = "llama",
      template = null,
      now = new Date(),
      mediaMarker = null,
    } = optionsOf(options);
    const body = typeof request === "string" ? parse(request) : request;
    if (!isObject(body)) throw refuse(`a request must be an object, not ${kindOf(body)}`);
    if (!DIALECTS.includes(dialect)) throw refuse(`dialect must be one of ${DIALECTS.join(", ")}`);
    if (template !== null && typeof template !== "string") {
      throw refuse("template must be a string");
    }
    const hasTools = dialect === "llama" ? Boolean(body.tools?.length) : body.tools != null;
    const marker = markerOf(mediaMarker);
    const policy = this.#policy(dialect, template, hasTools);
    const prompt = policy.render(body, localTime(now), { forIds, marker, marks });
    return { prompt, body, dialect, marker };
  }

  #policy(dialect, template, hasTools) {
    const selects = hasTools && template === null && "tool_use" in this.file.templates;
    const key = JSON.stringify([dialect, template, selects]);
    let cached = this.#policies.get(key);
    if (!cached) {
      const templates = [];
      const compile = (source, dialect) => {
        templates.push(new Template(this.#engine, source, dialect));
        return templates.at(-1);
      };
      try {
        const make = dialect === "llama" ? llamaServer : transformers;
        cached = { policy: make(this.file, template, selects, compile), templates };
      } catch (error) {
        for (const each of templates) each.free();
        throw error;
      }
    }
    this.#policies.delete(key);
    this.#policies.set(key, cached);
    for (const [oldest, { templates }] of this.#policies) {
      if (this.#policies.size <= MAX_POLICIES) break;
      for (const each of templates) each.free();
      this.#policies.delete(oldest);
    }
    return cached.policy;
  }

  free() {
    for (const { templates } of this.#policies.values()) {
      for (const each of templates) each.free();
    }
    this.#policies.clear();
  }
}

function llamaServer(file, wanted, selects, compile) {
  const { templates } = file;
  if (selects && templates.tool_use) {
    const standard = llamaServer(file, wanted, false, compile);
    try {
      return new LlamaServer(templates.tool_use, file, compile, standard.thinks);
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      return standard; // llama-server falls back to the default template, too
    }
  }
  let source = templates.default ?? "";
  if (wanted !== null) source = wanted === "chatml" ? wanted : named(file, wanted);
  if (source === "" || source === "chatml") {
    source = (wanted === null && templates.tool_use) || CHATML;
  }
  return new LlamaServer(patched(source), file, compile);
}

function transformers(file, wanted, selects, compile) {
  const { templates } = file;
  if (wanted !== null) return new Transformers(named(file, wanted), file, compile);
  const source = selects ? templates.tool_use : templates.default;
  if (source === undefined) {
    throw refuse(
      `the file has no default chat template (it has: ${names(file)}); pass one as template`,
    );
  }
  return new Transformers(source, file, compile);
}

/** Returns the template with this name, or `wanted` itself if it is a template. */
function named(file, wanted) {
  if (Object.hasOwn(file.templates, wanted)) return file.templates[wanted];
  if (wanted.includes("{") || wanted.includes("\n")) return wanted;
  throw refuse(
    `template: '${wanted}' is neither a template nor the name of one of the file's (${names(file)})`,
  );
}

function names({ templates }) {
  return Object.keys(templates).sort().join(", ") || "none";
}

function localTime(now) {
  if (!(now instanceof Date) || Number.isNaN(now.getTime())) throw refuse("now must be a Date");
  return {
    year: now.getFullYear(),
    month: now.getMonth() + 1,
    day: now.getDate(),
    hour: now.getHours(),
    minute: now.getMinutes(),
    second: now.getSeconds(),
  };
}
