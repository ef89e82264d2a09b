// The llama-server policy: how it normalizes a request and prepares messages. ggtok/chat/llama.py
// is the same in Python.
import { TemplateError } from "../errors.js";
import * as capabilities from "./caps.js";
import * as handlers from "./handlers.js";
import { Message, mergeSystem, read, readTools, write } from "./messages.js";
import * as reasoning from "./reasoning.js";
import { isObject, kindOf, own, plain, refuse, role, textOf, wellFormed } from "./values.js";

const TOOL_CHOICES = ["auto", "none", "required"];
const REASONING_FORMATS = ["none", "auto", "deepseek", "deepseek-legacy"];
const A_DAY = { year: 2000, month: 1, day: 1, hour: 0, minute: 0, second: 0 };
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

// The server renders each request with and without a generation prompt, and fails if either
// rendering fails. Templates that only test add_generation_prompt, or set its default, can't fail
// because of it.
const HARMLESS = new RegExp(
  "if not add_generation_prompt is defined|set add_generation_prompt = [^%]*" +
    "|(?:if|and) add_generation_prompt(?=\\s*-?%|\\s+and)",
  "g",
);
// Checks in templates that reject messages which the templates could render. Like the server, if a
// template's source contains the first text, patched() replaces the second text by NEVER.
const PATCHES = [
  [
    "<|channel|>",
    '{%- if "<|channel|>analysis<|message|>" in message.content or ' +
      '"<|channel|>final<|message|>" in message.content %}',
  ],
  [
    "[TOOL_CALLS]",
    "{%- if (message['content'] is none or message['content'] == '' or " +
      "message['content']|length == 0) and (message['tool_calls'] is not defined or " +
      "message['tool_calls'] is none or message['tool_calls']|length == 0) %}",
  ],
];
const NEVER = "{%- if false %}";
/** The template for files that have none. */
export const CHATML = `\
{%- for message in messages -%}
  {{- '<|im_start|>' + message.role + '
' + message.content + '<|im_end|>
' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant
' -}}
{%- endif -%}`;
// Identifies a family of templates whose message contents are trimmed: its models repeat themselves
// after stray white space.
const TRIMMED = "You have access to the following functions in JSONSchema format";

export function patched(source) {
  for (const [sign, check] of PATCHES) {
    if (source.includes(sign)) source = source.replaceAll(check, NEVER);
  }
  return source;
}

/** Returns the source with line breaks as llama.cpp's template lexer normalizes them. Families of
 * templates are recognized by texts in this form. */
function asLexed(source) {
  const ends = source.endsWith("\n");
  const lines = source.replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  return ends ? lines.slice(0, -1) : lines;
}

function datesOf({ year, month, day }) {
  const name = MONTHS[month - 1];
  const two = String(day).padStart(2, "0");
  return { datetime: `${name} ${two} ${year}`, date_string: `${two} ${name} ${year}` };
}

export class LlamaServer {
  /** `compile` creates a template from a source; `thinks` overrides the value of enable_thinking
   * for requests that don't set it. */
  constructor(source, file, compile, thinks) {
    this.ends = file.ends;
    this.texts = { bos_token: own(file.texts.bos_token), eos_token: own(file.texts.eos_token) };
    this.template = compile(source, "llama");
    this.source = asLexed(source);
    this.caps = capabilities.find(this.template);
    this.handler = handlers.find(this.source);
    this.tags = { start: "", end: "", unreadable: "" };
    if (this.handler) {
      this.thinks = this.handler.reasons;
    } else {
      const render = (...args) => this.#probe(...args);
      this.tags = reasoning.find(render, this.source, this.caps.toolCalls);
      this.thinks = this.tags.found;
    }
    // Only gpt-oss's template supports the role `developer`; for other templates, it becomes
    // `system`.
    this.renamesDevelopers = !this.source.includes("<|channel|>");
    this.trims = this.source.includes(TRIMMED);
    this.rendersBoth = this.source.replace(HARMLESS, "").includes("add_generation_prompt");
    this.#checkStart();
    if (thinks !== undefined) this.thinks = thinks;
  }

  /** Returns the prompt for a chat request's body at a local time. `marker` replaces message parts
   * that aren't text. `marks`: for each message, the set of fields that count as the template's
   * own. */
  render(body, now, { marker, marks }) {
    if (!("messages" in body)) throw refuse("messages are missing");
    if (!Array.isArray(body.messages)) {
      throw refuse(`messages must be an array, not ${kindOf(body.messages)}`);
    }
    const tools = readTools(body.tools);
    const request = this.#read(body, tools.length > 0);
    const variables = { ...request.variables };
    if (tools.length && !("tools" in request.given)) variables.tools = tools;
    for (const [name, date] of Object.entries(datesOf(now))) {
      if (this.template.variables.has(name) && !(name in request.given)) variables[name] = date;
    }
    try {
      const every = body.messages.map((message, i) => read(message, i, marker, marks?.[i]));
      return this.#prompt(request, every, variables, now);
    } catch (error) {
      if (body.messages.length || !(error instanceof TemplateError)) throw error;
      const what = "there are no messages, but this chat template needs some";
      throw new TemplateError("template", `${what}: ${error.message}`, { line: error.line });
    }
  }

  #prompt(request, every, variables, now) {
    let continues = request.continues;
    if (!continues && every.at(-1)?.role === "assistant") {
      if (every.at(-2)?.role === "assistant") {
        throw refuse("messages: the last two are both from the assistant");
      }
      continues = "auto";
    }
    const written = this.#prepared(request, every, continues);
    if (!("messages" in request.given)) variables.messages = written;
    const render = (generation, ends) => {
      const more = generation ? { add_generation_prompt: true } : {};
      return this.template.render({ ...variables, ...more }, now, ends);
    };
    const generation = request.generation && !continues;
    const { handler } = this;
    const [bos, eos] = this.ends;
    const turn = handler && generation ? handler.turn : ["", ""];
    const ends = [bos, eos, ...turn];
    const prompt = render(generation, ends);
    const last = every.at(-1);
    const appends = Boolean(continues && last && !last.isEmpty);
    const both = appends && (!handler || handler.afterPrompt);
    const other = this.rendersBoth || both ? render(!generation, ends) : null;
    const finish = handler && !generation ? handler.finish : null;
    const finished = finish ? finish(prompt) : prompt;
    return appends ? this.#continued(request, last, continues, finished, both ? other : null) : finished;
  }

  // ---- requests ----

  /** Reads a body's fields, except messages and tools. */
  #read(body, hasTools) {
    const schema = schemaOf(body);
    const choice = typeof body.tool_choice === "string" ? body.tool_choice : "auto";
    oneOf(choice, TOOL_CHOICES, "tool_choice");
    checkGrammar(body, hasTools && choice !== "none");
    const given = body.add_generation_prompt;
    const generation = typeof given === "boolean" ? given : true;
    const continues = continuation(body.continue_final_message);
    if (continues && generation) {
      throw refuse(
        "continue_final_message can't be combined with a generation prompt: " +
          "set add_generation_prompt to false",
      );
    }
    if (body.reasoning_format !== undefined) {
      oneOf(body.reasoning_format, REASONING_FORMATS, "reasoning_format");
    }
    const variables = variablesOf(body);
    let thinking = thinkingOf(variables);
    const effort = typeof body.reasoning_effort === "string" ? body.reasoning_effort : "";
    if (effort === "none") {
      thinking = false;
      delete variables.reasoning_effort;
    } else if (effort) {
      variables.reasoning_effort = wellFormed(effort, "reasoning_effort");
    }
    thinking ??= this.thinks;
    return {
      given: variables,
      variables: this.#variables(variables, thinking, schema),
      generation,
      continues,
      thinking,
    };
  }

  /** Returns the template's variables except messages, tools, dates and add_generation_prompt. */
  #variables(given, thinking, schema = null) {
    const variables = { ...this.texts, enable_thinking: thinking, ...given };
    if (this.handler) {
      handlers.check(this.handler, given);
      if (this.handler.schemaVariable && isObject(schema)) {
        variables[this.handler.schemaVariable] = schema;
      }
    }
    return { ...spread(variables), ...variables };
  }

  // ---- conversations ----

  /** Returns the messages for the template, except a last message to continue. */
  #prepared(request, every, continues) {
    const last = every.at(-1);
    if (continues && last?.role === "assistant" && last.calls.length) {
      throw refuse("messages: the last one calls tools, so it can't be continued");
    }
    const read = this.trims ? every.map((message) => message.trimmed()) : every;
    const written = read.map((message, i) => this.#written(message, i));
    const merged = mergeSystem(continues ? written.slice(0, -1) : written, this.caps);
    if (!this.handler?.messages || "messages" in request.given) return merged;
    return this.handler.messages(merged, request.given);
  }

  #written(message, index) {
    const written = write(message, this.caps, index);
    const renamed = this.renamesDevelopers && textOf(written.role) === "developer";
    return renamed ? { ...written, role: role("system") } : written;
  }

  /** Returns the prompt followed by the message to continue. `withGeneration`: the prompt with the
   * template's own generation prompt, or null. */
  #continued(request, message, continues, prompt, withGeneration) {
    const inContent =
      continues === "content" ||
      (continues === "auto" &&
        !(message.reasoning && !message.content && !message.parts.length));
    let before = withGeneration ? withGeneration.after(prompt) : [];
    if (this.handler) {
      const { source } = this;
      const { given: variables, thinking } = request;
      const answer = { message, inContent, source, variables, thinking, prompt };
      return prompt.followedBy([...before, ...handlers.pieces(this.handler, answer)]);
    }
    const { start, end } = this.tags;
    if (start) {
      before = [...until(before, start), [start, true], message.piece("reasoning_content", message.reasoning)];
      if (inContent) before.push([end, true]);
    }
    return prompt.followedBy(inContent ? [...before, ...message.pieces()] : before);
  }

  // ---- at the start ----

  /** Throws if llama-server wouldn't start with this template: parses a test call, and renders one
   * question with and without a generation prompt. */
  #checkStart() {
    const what = "llama-server doesn't start with this chat template,";
    if (this.tags.unreadable) {
      const why = `because it parses the tool calls as JSON: ${this.tags.unreadable}`;
      throw new TemplateError("template", `${what} ${why}`, { line: 0 });
    }
    const request = this.#read({}, false);
    const variables = { ...this.#variables({}, true), ...datesOf(A_DAY) };
    const question = new Message("user", { content: "test" });
    variables.messages = this.#prepared(request, [question], "");
    try {
      for (const generation of [{ add_generation_prompt: true }, {}]) {
        this.template.render({ ...variables, ...generation }, A_DAY, ["", "", "", ""]);
      }
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      const why = `which fails for a single user message: ${error.message}`;
      throw new TemplateError("template", `${what} ${why}`, { line: error.line });
    }
  }

  /** Returns the text of a test rendering, or null if it fails. */
  #probe(messages, tools, generation, thinking) {
    const variables = {
      messages: messages.map((message) => this.#typed(message)),
      ...this.texts,
      enable_thinking: thinking,
    };
    if (tools) variables.tools = tools;
    if (generation) variables.add_generation_prompt = true;
    return this.template.probe(variables, []).text;
  }

  /** Returns a message for a test rendering, with its content in the form that the template
   * needs. */
  #typed(message) {
    const isTyped = this.caps.onlyTyped && typeof message.content === "string";
    return isTyped ? { ...message, content: [{ type: "text", text: message.content }] } : message;
  }
}

// ---- fields of a request's body ----

function oneOf(value, allowed, name) {
  if (allowed.includes(value)) return;
  throw refuse(`${name} must be one of ${allowed.join(", ")}`);
}

/** Returns the JSON schema for the answer, or null. */
function schemaOf(body) {
  const object = (value) => (isObject(value) ? value : {});
  let schema = plain(body.json_schema ?? null, "json_schema");
  const wanted = object(body.response_format);
  const kind = typeof wanted.type === "string" ? wanted.type : "";
  if (kind === "json_object") {
    if ("schema" in wanted || isEmpty(schema)) schema = object(wanted.schema);
  } else if (kind === "json_schema") {
    schema = object(object(wanted.json_schema).schema);
  } else if (kind !== "" && kind !== "text") {
    throw refuse("response_format: the type must be 'text', 'json_object' or 'json_schema'");
  }
  if (!isObject(schema)) return schema;
  const copy = plain(schema, "response_format");
  return Object.keys(copy).length ? copy : { type: "object" };
}

function isEmpty(value) {
  if (Array.isArray(value)) return !value.length;
  return isObject(value) ? !Object.keys(value).length : !value;
}

function checkGrammar(body, usesTools) {
  if (typeof body.grammar === "string" && body.grammar && body.json_schema != null) {
    throw refuse("json_schema and grammar can't be combined");
  }
  if (usesTools && "grammar" in body) throw refuse("tools and grammar can't be combined");
}

function continuation(value) {
  if (value == null || typeof value === "boolean") return value ? "auto" : "";
  if (value === "content" || value === "reasoning_content") return value;
  throw refuse(
    "continue_final_message must be true, false, 'content' or 'reasoning_content'",
  );
}

function variablesOf(body) {
  const given = body.chat_template_kwargs;
  if (given == null) return {};
  if (!isObject(given)) {
    throw refuse(`chat_template_kwargs must be an object, not ${kindOf(given)}`);
  }
  return plain(given, "chat_template_kwargs");
}

function thinkingOf({ enable_thinking: value }) {
  if (typeof value === "string") throw refuse("enable_thinking must be true or false, not a string");
  return typeof value === "boolean" ? value : null;
}

/** Returns the variables under which templates read the settings preserve_reasoning and
 * reasoning_effort. */
function spread(variables) {
  const found = {};
  const { preserve_reasoning: preserve, reasoning_effort: effort } = variables;
  if (typeof preserve === "boolean") {
    for (const [name, says] of Object.entries(capabilities.PRESERVING)) {
      found[name] = preserve === says;
    }
  }
  if (typeof effort === "string") {
    for (const name of capabilities.EFFORTS) found[name] = effort;
  }
  return found;
}

/** Returns the pieces before the first occurrence of a text, or all pieces if it doesn't occur. */
function until(pieces, text) {
  let at = pieces.map(([piece]) => piece).join("").indexOf(text);
  if (at < 0) return pieces;
  return pieces.map(([piece, isOwn]) => {
    const kept = piece.slice(0, at);
    at = Math.max(0, at - piece.length);
    return [kept, isOwn];
  });
}
