// Special rules of llama-server for families of templates; the same table is in
// ggtok/chat/handlers.py.
//
// A family is recognized by texts that its template's source contains (`present`) or lacks
// (`absent`). The first matching row is used. `opening` is the pair of texts written before the
// reasoning of a continued answer, and between reasoning and content.
import { separated } from "./messages.js";
import { isText, joined, json, own, refuse, textOf } from "./values.js";

const DEFAULTS = {
  absent: [],
  // Whether the template supports reasoning: then enable_thinking defaults to true, and a continued
  // answer's reasoning is written.
  reasons: true,
  alwaysContent: false, // write the content even if the answer continues in its reasoning
  afterPrompt: false, // write the opening after the template's own generation prompt
  messages: null, // function that changes the messages
  finish: null, // function that changes a prompt that has no generation prompt
  // [end, text]: `text` is appended to a prompt that ends with `end`, if the request asks for a
  // generation prompt or continues an answer.
  turn: ["", ""],
  schemaVariable: "", // template variable for the schema in response_format
  reads: [], // template variables that the handler reads; must be strings
};

export function check(handler, variables) {
  for (const name of handler.reads) {
    if (Object.hasOwn(variables, name) && !isText(variables[name])) {
      throw refuse(`${name} must be a string for this template`);
    }
  }
}

/** Returns a continued answer as pieces [text, isOwn]; isOwn: whether the text is the template's
 * own. */
export function pieces(handler, answer) {
  const { opening } = handler;
  const [before, between] = typeof opening === "function" ? opening(answer) : opening;
  const found = [...answer.prompt.turn(...handler.turn), [before, true]];
  if (handler.reasons) found.push(answer.message.piece("reasoning_content", answer.message.reasoning));
  if (answer.inContent || handler.alwaysContent) {
    found.push([between, true], ...answer.message.pieces());
  }
  return found;
}

// ---- messages ----

/** Copies the reasoning to the field `thinking`, which the template reads. */
function thinking(messages) {
  return messages.map((m) =>
    "reasoning_content" in m ? { ...m, thinking: m.reasoning_content } : m,
  );
}

/** Adds `thinking`, and drops the content of messages that have both reasoning and calls. */
function harmony(messages) {
  return thinking(messages).map((message) => {
    if (!("thinking" in message) || !message.tool_calls?.length) return message;
    const { content, ...rest } = message;
    return rest;
  });
}

/** For Ministral: puts reasoning and content of system and assistant messages into one list of
 * parts. */
function blocks(messages) {
  return messages.map((message) => {
    if (!["system", "assistant"].includes(textOf(message.role))) return message;
    const { reasoning_content: thought, ...rest } = message;
    const content = [];
    if (thought !== undefined) content.push({ type: own("thinking"), thinking: thought });
    if (isText(message.content)) content.push({ type: own("text"), text: message.content });
    else if (Array.isArray(message.content)) content.push(...message.content);
    return { ...rest, content };
  });
}

function alwaysReasoning(messages) {
  return messages.map((m) =>
    textOf(m.role) === "assistant" && !("reasoning_content" in m)
      ? { ...m, reasoning_content: "" }
      : m,
  );
}

/** For TranslateGemma: makes a user's content one part that names the languages. */
function translated(messages, variables) {
  const source_lang_code = variables.source_lang_code ?? "en-GB";
  const target_lang_code = variables.target_lang_code ?? "en-GB";
  return messages.map((message) => {
    if (textOf(message.role) !== "user") return message;
    let text = message.content;
    if (Array.isArray(text)) text = joined(separated(text.map((part) => part.text), "\n"));
    const part = { type: own("text"), text, source_lang_code, target_lang_code };
    return { ...message, content: [part] };
  });
}

/** For DeepSeek V4: sorts the tool results between two answers into the order of the calls. */
function inOrderOfCalls(messages) {
  const changed = [...messages];
  let order = new Map();
  for (let i = 0; i < changed.length; ) {
    const { role, tool_calls: calls } = changed[i];
    if (textOf(role) === "assistant" && calls?.length) {
      order = new Map(calls.flatMap(({ id }, k) => (id ? [[textOf(id), k]] : [])));
    }
    if (!["user", "tool"].includes(textOf(role))) {
      i++;
      continue;
    }
    const where = [];
    for (; i < changed.length && ["user", "tool"].includes(textOf(changed[i].role)); i++) {
      if (textOf(changed[i].role) === "tool") where.push(i);
    }
    if (!order.size) continue;
    const place = (result) => order.get(textOf(result.tool_call_id) ?? "") ?? 0;
    const results = where.map((k) => changed[k]).sort((a, b) => place(a) - place(b));
    where.forEach((k, n) => (changed[k] = results[n]));
  }
  return changed;
}

/** For older Gemma 4 templates: merges calls, their results and the answer that follows. */
function withResponses(messages) {
  const changed = [];
  for (let i = 0; i < messages.length; ) {
    const message = messages[i++];
    const calls = message.tool_calls;
    if (textOf(message.role) !== "assistant" || !calls?.length) {
      changed.push(message);
      continue;
    }
    const merged = { role: message.role, tool_calls: calls };
    const responses = [];
    for (; i < messages.length && textOf(messages[i].role) === "tool"; i++) {
      responses.push(response(messages[i], calls, responses.length));
    }
    if (responses.length) merged.tool_responses = responses;
    const answer = messages[i];
    if (answer && textOf(answer.role) === "assistant") {
      if (hasContent(answer) && !answer.tool_calls?.length) {
        merged.content = answer.content;
        i++;
      }
    }
    if ("reasoning_content" in message) merged.reasoning_content = message.reasoning_content;
    changed.push(merged);
  }
  return changed;
}

function hasContent({ content }) {
  return Boolean(isText(content) ? textOf(content) : content?.length);
}

function response(result, calls, index) {
  let { content } = result;
  if (isText(content)) {
    try {
      content = json(textOf(content), "the tool's answer");
    } catch {
      // content that isn't JSON stays text
    }
  }
  const name = index < calls.length ? calls[index].function.name : "";
  return { name: name || (result.tool_call_id ?? ""), response: content };
}

// ---- prompts ----

function endForReturn(prompt) {
  return prompt.withLast("<|return|>", "<|end|>");
}

// ---- openings ----

function k2Horizon({ variables, thinking, source }) {
  const effort = Object.hasOwn(variables, "reasoning_effort") ? variables.reasoning_effort : "high";
  let tag = { medium: "ifm|think_fast", low: "ifm|think_faster" }[textOf(effort)] ?? "ifm|think";
  if (!thinking && source.includes("enable_thinking")) tag = "ifm|think";
  return [`<|ifm|im_start|>assistant\n<${tag}>\n`, `</${tag}>`];
}

function deepseekV4({ message }) {
  return message.reasoning ? [`${DEEPSEEK}<think>`, "</think>"] : [`${DEEPSEEK}</think>`, ""];
}

const DEEPSEEK = "<\uff5cAssistant\uff5c>";
const GEMMA = ["<|channel>thought\n", "<channel|>"];
const GEMMA_TURN = ["<turn|>\n", "<|turn>model\n"];
const IM_ASSISTANT = "<|im_start|>assistant\n";
const GPT_OSS = [
  "<|start|>assistant<|channel|>analysis<|message|>",
  "<|end|><|start|>assistant<|channel|>final<|message|>",
];

const HANDLERS = [
  {
    // Ministral, Magistral
    present: ["[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"],
    absent: ["[CALL_ID]"],
    opening: ["[THINK]", "[/THINK]"],
    messages: blocks,
  },
  {
    // LLM-jp in harmony's format
    present: ["chat_format=llm-jp-harmony-v1"],
    opening: GPT_OSS,
    messages: harmony,
    finish: endForReturn,
  },
  {
    // gpt-oss
    present: ["<|channel|>"],
    opening: GPT_OSS,
    messages: harmony,
    finish: endForReturn,
  },
  {
    // Muse Glimmer
    present: ["<atem:function_calls>", "<|eom|>"],
    opening: [
      "<|start|>assistant to=self<|message|>",
      "<|eom|><|start|>assistant to=user<|message|>",
    ],
  },
  {
    // Functionary 3.2
    present: [">>>all", ">>>${recipient}"],
    opening: ["<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\n", ""],
    reasons: false,
    alwaysContent: true,
  },
  {
    // Kimi K2 Thinking
    present: ["<|tool_calls_section_begin|>", "<|tool_call_begin|>"],
    opening: ["<|im_assistant|>assistant<|im_middle|><think>", "</think>"],
  },
  {
    // Kimi K3
    present: ["<|open|>", "<|close|>", "<|end_of_msg|>"],
    opening: [
      '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>',
      "<|close|>think<|sep|><|open|>response<|sep|>",
    ],
  },
  {
    // K2 Horizon
    present: ["<|ifm|im_start|>", "<ifm|tool_calls>"],
    opening: k2Horizon,
    messages: alwaysReasoning,
    reads: ["reasoning_effort", "tool_call_format"],
  },
  {
    // Ling 3.0
    present: ["<role>ASSISTANT</role>", "<arg_key>"],
    opening: ["<role>ASSISTANT</role>\n<think>", "</think>"],
  },
  {
    // Cohere2 MoE
    present: ["<|START_TEXT|>", "<|START_ACTION|>"],
    opening: [
      "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>",
      "<|END_THINKING|><|START_TEXT|>",
    ],
  },
  {
    // LFM2
    present: ["<|tool_list_start|>", "<|tool_list_end|>"],
    opening: [`${IM_ASSISTANT}<think>`, "</think>"],
    messages: thinking,
  },
  {
    // LFM2.5
    present: ["List of tools: ["],
    absent: ["<|tool_list_start|>"],
    opening: [`${IM_ASSISTANT}<think>`, "</think>"],
    messages: thinking,
  },
  {
    // GigaChat 3
    present: ["<|role_sep|>", "<|message_sep|>"],
    absent: ["<|function_call|>"],
    opening: ["assistant<|role_sep|>\n", ""],
    reasons: false,
    alwaysContent: true,
  },
  {
    // MiniMax M3
    present: ["]<]minimax[>[", "<tool_call>", "<invoke name="],
    opening: ["<mm:think>", "</mm:think>"],
    afterPrompt: true,
  },
  {
    // DeepSeek V3.2; its block of calls has a different name than in V4
    present: ["dsml_token", "DSML", "function_calls"],
    opening: [`${DEEPSEEK}<think>`, "</think>"],
  },
  {
    // DeepSeek V4
    present: ["dsml_token", "DSML", "tool_calls"],
    opening: deepseekV4,
    messages: inOrderOfCalls,
    schemaVariable: "response_format",
  },
  // Gemma 4, then its older template versions
  {
    present: ["'<|tool_call>call:'", "{#- OpenAI Chat Completions:"],
    opening: GEMMA,
    turn: GEMMA_TURN,
  },
  {
    present: ["'<|tool_call>call:'"],
    opening: GEMMA,
    messages: withResponses,
    turn: GEMMA_TURN,
  },
  {
    // MiniCPM5
    present: ["Tool usage guidelines:", '<function name="', '<param name="'],
    opening: [`${IM_ASSISTANT}<think>\n`, "\n</think>\n\n"],
  },
  {
    // TranslateGemma
    present: ["[source_lang_code]", "[target_lang_code]"],
    opening: ["<start_of_turn>model\n", ""],
    reasons: false,
    alwaysContent: true,
    messages: translated,
    reads: ["source_lang_code", "target_lang_code"],
  },
  // Qwen3-Coder, Qwen3.5, Nemotron Nano 3, StepFun 3.5: first with thinking, then without
  {
    present: ["<tool_call>", "<function=", "<parameter=", "<think>"],
    absent: ["'<tool_call><function=' ~ tool_call.name ~ '>'"],
    opening: [`${IM_ASSISTANT}<think>\n`, "\n</think>\n\n"],
  },
  {
    present: ["<tool_call>", "<function=", "<parameter="],
    absent: ["'<tool_call><function=' ~ tool_call.name ~ '>'", "<think>"],
    opening: [IM_ASSISTANT, ""],
    reasons: false,
  },
].map((row) => ({ ...DEFAULTS, ...row }));

export function find(source) {
  return HANDLERS.find(({ present, absent }) => fits(source, present, absent));
}

export function fits(source, present, absent) {
  return present.every((text) => source.includes(text)) && !absent.some((text) => source.includes(text));
}
