// The policy of transformers' apply_chat_template, which hardly changes messages.
import { TemplateError } from "../errors.js";
import { isObject, kindOf, own, owned, plain, refuse, role } from "./values.js";

const NO_ENDS = ["", "", "", ""];
// The keys under which a message can have its reasoning. Templates read the first two.
const REASONING = ["reasoning_content", "thinking", "reasoning"];
const FIELDS = [
  "tool_choice",
  "parallel_tool_calls",
  "response_format",
  "reasoning_format",
  "reasoning_effort",
  "enable_thinking",
  "documents",
];

export class Transformers {
  constructor(source, file, compile) {
    this.source = source;
    this.template = compile(source, "transformers");
    this.texts = Object.fromEntries(
      Object.entries(file.texts).map(([name, text]) => [name, own(text)]),
    );
    this.ends = file.ends;
  }

  /** Returns the prompt for a request at a local time. `forIds`: without the BOS and EOS that
   * encoding adds. `marks`: for each message, the set of fields that count as the template's
   * own. */
  render(body, now, { forIds, marks }) {
    const generation = Boolean(body.add_generation_prompt);
    const given = body.continue_final_message;
    const final = given === true ? "content" : given || "";
    if (final && generation) {
      throw refuse(
        "continue_final_message can't be combined with a generation prompt: " +
          "set add_generation_prompt to false",
      );
    }
    const what = final ? "continue_final_message: " : "";
    if (!Array.isArray(body.messages)) {
      throw refuse(`messages must be an array, not ${kindOf(body.messages)}`);
    }
    if (!body.messages.length) {
      throw refuse(`${what}there are no messages, but at least one is needed`);
    }
    const messages = body.messages.map((given, i) => message(given, i, marks?.[i]));
    const ending = final ? tagged(messages, this.source, final) : "";
    const variables = {
      ...this.texts,
      tools: null,
      add_generation_prompt: generation,
      documents: null,
      ...this.#given(body),
      messages,
    };
    if (body.tools != null && !("tools" in (body.chat_template_kwargs ?? {}))) {
      variables.tools = tools(body.tools);
    }
    const ends = forIds ? this.ends : NO_ENDS;
    const prompt = this.template.render(variables, now, final ? NO_ENDS : ends);
    return final ? continued(prompt, ending, ends) : prompt;
  }

  #given(body) {
    const kwargs = body.chat_template_kwargs ?? {};
    if (!isObject(kwargs)) {
      throw refuse(`chat_template_kwargs must be an object, not ${kindOf(kwargs)}`);
    }
    const fields = FIELDS.filter((name) => body[name] != null).map((name) => [name, body[name]]);
    const given = plain({ ...kwargs, ...Object.fromEntries(fields) }, "chat_template_kwargs");
    for (const [name, text] of Object.entries(this.texts)) {
      // A caller who passes the token's own text, for example as bos_token, means the token.
      if (given[name] === text.text) given[name] = text;
    }
    return given;
  }
}

function tools(given) {
  if (!Array.isArray(given)) throw refuse(`tools must be an array, not ${kindOf(given)}`);
  given.forEach((tool, i) => {
    if (!isObject(tool)) throw refuse(`tools[${i}] must be an object, not ${kindOf(tool)}`);
  });
  return plain(given, "tools");
}

function message(given, index, marks) {
  const where = `messages[${index}]`;
  if (!isObject(given)) throw refuse(`${where} must be an object, not ${kindOf(given)}`);
  const entries = Object.entries(plain(given, where)).filter(([, value]) => value !== null);
  let found = Object.fromEntries(
    entries.map(([key, value]) => [key, key !== "role" && marks?.has(key) ? owned(value) : value]),
  );
  const name = REASONING.find((name) => name in found);
  if (name) found = { thinking: found[name], ...found, reasoning_content: found[name] };
  if (typeof found.role === "string") found.role = role(found.role, marks);
  return found;
}

// ---- continuing the last message ----

// The marker that transformers writes after the continued message. The prompt is cut at its last
// occurrence, in case a template writes the message twice.
const TAG = "CONTINUE_FINAL_MESSAGE_TAG ";

/** Appends the tag to a field's text in the last message. Returns the text without the tag. */
function tagged(messages, source, field) {
  const last = messages.at(-1);
  const what = "continue_final_message:";
  const fields = REASONING.includes(field)
    ? REASONING.filter((name) => name in last && last[name] === last[field])
    : [field];
  if (!(field in last)) throw refuse(`${what} the last message has no '${field}'`);
  if (!fields.some((name) => source.includes(name))) {
    throw refuse(`${what} the template doesn't use '${field}'`);
  }
  let value = last[field];
  let changed;
  if (typeof value === "string") {
    changed = value + TAG;
  } else if (Array.isArray(value)) {
    const at = value.findLastIndex((block) => isObject(block) && "text" in block);
    const text = value[at]?.text;
    if (typeof text !== "string") throw refuse(`${what} the last message has no text`);
    changed = value.with(at, { ...value[at], text: text + TAG });
    value = text;
  } else {
    throw refuse(`${what} '${field}' is ${kindOf(value)}, not text`);
  }
  const more = Object.fromEntries(fields.map((name) => [name, changed]));
  messages[messages.length - 1] = { ...last, ...more };
  return value;
}

/** Returns the prompt up to the last tag, without BOS and EOS. */
function continued(prompt, ending, [bos, eos]) {
  const { text } = prompt;
  let at = text.lastIndexOf(TAG.trim());
  if (at < 0 || !text.includes(ending.trim())) {
    const what = "the template drops the end of the last message";
    throw new TemplateError("template", `continue_final_message: ${what}`, { line: 0 });
  }
  // If the tag's trailing space is missing, the template trims the message, so trim it here, too.
  if (!text.startsWith(TAG, at)) at = text.slice(0, at).trimEnd().length;
  return prompt.cut(at).withoutEnds(bos, eos);
}
