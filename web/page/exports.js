// Tokens as files.

import { save } from "./save.js";
import { strings } from "./strings.js";

/** Returns the facts about a token; the names are those of the columns. */
function row(vocab, merges, id) {
  const merge = merges && { rank: at(merges.rank, id), left: at(merges.left, id), right: at(merges.right, id) };
  return {
    id,
    text: vocab.text(id),
    bytes: vocab.hex(id),
    type: strings.token.types[vocab.types[id]],
    script: vocab.scripts.names[vocab.scripts.of[id]],
    ...(vocab.hasScores ? { score: vocab.scores[id] } : {}),
    ...merge,
  };
}

const at = (list, id) => (list[id] < 0 ? null : list[id]);

/** Returns rows as CSV. Texts are written as JSON, in quotes, so that no program reads one as a
 * formula. */
function csv(rows) {
  const quoted = (value) => `"${value.replaceAll('"', '""')}"`;
  const cell = (value, name) => (name === "text" ? quoted(JSON.stringify(value)) : typeof value === "string" ? quoted(value) : (value ?? ""));
  const names = Object.keys(rows[0] ?? {});
  return [names.join(","), ...rows.map((each) => names.map((name) => cell(each[name], name)).join(","))].join("\r\n");
}

/** Saves tokens as a file; `format` is "csv" or "json". */
export function saveTokens(model, merges, ids, format) {
  const rows = ids.map((id) => row(model.vocab, merges, id));
  const content = format === "csv" ? csv(rows) : `[\n${rows.map((each) => JSON.stringify(each)).join(",\n")}\n]\n`;
  save(new Blob([content]), `${model.name}-tokens.${format}`);
}
