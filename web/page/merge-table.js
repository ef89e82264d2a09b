// The merges of a vocabulary, by the token that they make.

const tables = new WeakMap(); // promises of tables, by model

/** Returns a promise of the model's merges. */
export function mergesOf(model) {
  let table = tables.get(model);
  if (!table) {
    table = model.tok.merges().then((merges) => new MergeTable(model.vocab.size, merges));
    tables.set(model, table);
    table.catch(() => tables.delete(model));
  }
  return table;
}

/** The number of merges, and the rank and the parts of each token's first merge; -1 for a token that
 * no merge makes, and for a part that is no token. */
class MergeTable {
  /** `merges` is the result of the tokenizer's merges(). */
  constructor(size, merges) {
    this.size = merges.length / 3;
    this.rank = new Int32Array(size).fill(-1);
    this.left = new Int32Array(size).fill(-1);
    this.right = new Int32Array(size).fill(-1);
    for (let i = 0; i < merges.length; i += 3) {
      const made = merges[i + 2];
      if (made < 0 || this.rank[made] >= 0) continue;
      this.rank[made] = i / 3;
      this.left[made] = merges[i];
      this.right[made] = merges[i + 1];
    }
  }
}
