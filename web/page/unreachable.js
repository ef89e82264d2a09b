// Finds the tokens that their own text doesn't encode to.

import { BYTE } from "./vocabulary-table.js";

const BATCH = 4096; // tokens in one message to the worker: a few hundredths of a second

/** Returns the ids of the tokens that a text could produce: those that represent text. */
function candidates({ vocab, info }) {
  // A WordPiece token that doesn't begin with the space of a word's start occurs only inside words.
  const inWords = (id) => info.type === "wpm" && vocab.bytes(id)[0] !== 0x20;
  const ids = [];
  for (let id = 0; id < vocab.size; id += 1)
    if (!vocab.isSpecial(id) && vocab.types[id] !== BYTE && vocab.length(id) && !inWords(id)) ids.push(id);
  return ids;
}

/** Yields { done, all, found } after each batch: the number of tokens checked, of those to check,
 * and the ids of unreachable ones. `from` is the last yielded value of a check to continue. */
export async function* unreachableTokens(model, from = { done: 0, found: [] }) {
  const ids = candidates(model);
  const options = await model.alone();
  const found = [...from.found];
  for (let at = from.done; at < ids.length; at += BATCH) {
    const batch = ids.slice(at, at + BATCH);
    const encoded = await model.tok.encodeBatch(batch.map((id) => model.vocab.bytes(id)), options);
    batch.forEach((id, i) => {
      const begin = encoded.offsets[i];
      if (encoded.offsets[i + 1] - begin !== 1 || encoded.ids[begin] !== id) found.push(id);
    });
    yield { done: at + batch.length, all: ids.length, found };
  }
}
