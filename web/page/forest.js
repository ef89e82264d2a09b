// The forest of tokens: each token's parent is another token that its text begins with.
//
// With merges, the parent is the left part of the token's first merge; without merges, it is the
// longest token that the text begins with.

/**
 * The forest of a vocabulary:
 *   parents      the parent of each id, or -1
 *   descendants  the number of tokens that grow from each token
 */
export class Forest {
  #starts; // the index in #children of the first child of each id; the last entry is the end
  #children;

  /** `merges`: a MergeTable. */
  constructor(vocab, merges) {
    this.size = vocab.size;
    this.merges = merges;
    this.parents = new Int32Array(this.size).fill(-1);
    if (merges.size) this.#useMerges(vocab);
    else setLongestPrefixes(vocab, this.parents);
    this.descendants = this.#countDescendants();
    this.#index();
  }

  #useMerges(vocab) {
    const { left } = this.merges;
    for (let id = 0; id < this.size; id += 1) {
      // A parent is shorter than its children, so there is no cycle.
      if (left[id] >= 0 && vocab.length(left[id]) < vocab.length(id)) this.parents[id] = left[id];
    }
  }

  #countDescendants() {
    const { size, parents } = this;
    const waiting = new Int32Array(size); // children that aren't counted yet
    for (let id = 0; id < size; id += 1) if (parents[id] >= 0) waiting[parents[id]] += 1;
    const descendants = new Int32Array(size);
    for (let leaf = 0; leaf < size; leaf += 1) {
      if (waiting[leaf]) continue;
      for (let id = leaf; parents[id] >= 0; id = parents[id]) {
        waiting[id] = -1; // counted
        descendants[parents[id]] += descendants[id] + 1;
        if ((waiting[parents[id]] -= 1)) break;
      }
    }
    return descendants;
  }

  #index() {
    const { size, parents, descendants } = this;
    const starts = new Int32Array(size + 2);
    // Slot 0 is for the roots, slot id + 1 for the children of id.
    for (let id = 0; id < size; id += 1) starts[parents[id] + 2] += 1;
    for (let i = 1; i < starts.length; i += 1) starts[i] += starts[i - 1];
    // Numbers sort much faster without a comparison function, so each key combines both criteria:
    // most descendants first, then the smaller id.
    const order = new Float64Array(size);
    for (let id = 0; id < size; id += 1) order[id] = (size - descendants[id]) * size + id;
    order.sort();
    const ends = starts.slice();
    const children = new Int32Array(size);
    for (let i = 0; i < size; i += 1) {
      const id = order[i] % size;
      children[ends[parents[id] + 1]++] = id;
    }
    this.#starts = starts;
    this.#children = children;
  }

  /** Returns the ids of a token's children, or of the roots for -1, by the number of descendants. */
  childrenOf(id) {
    return this.#children.subarray(this.#starts[id + 1], this.#starts[id + 2]);
  }

  /** Returns the ids from a root to the token, at most the last `most` of them. */
  pathTo(id, most = Infinity) {
    const path = [];
    for (; id >= 0 && path.length < most; id = this.parents[id]) path.unshift(id);
    return path;
  }

  /** Returns the ids of the two tokens that the token's first merge joins, or undefined. */
  partsOf(id) {
    const { rank, left, right } = this.merges;
    return rank[id] < 0 ? undefined : [left[id], right[id]];
  }
}

/** Sets each token's parent to its longest proper prefix among the tokens. In sorted order, a stack
 * of prefixes finds it; looking up every prefix would take time quadratic in the token's length. */
function setLongestPrefixes(vocab, parents) {
  const { data, offsets } = vocab;
  const sorted = [];
  for (let id = 0; id < vocab.size; id += 1) if (vocab.length(id) && !vocab.isSpecial(id)) sorted.push(id);
  sorted.sort((a, b) => {
    const n = Math.min(vocab.length(a), vocab.length(b));
    const p = offsets[a];
    const q = offsets[b];
    for (let i = 0; i < n; i += 1) if (data[p + i] !== data[q + i]) return data[p + i] - data[q + i];
    return vocab.length(a) - vocab.length(b) || a - b;
  });
  const begins = (a, b) => {
    if (vocab.length(a) >= vocab.length(b)) return false;
    for (let i = 0; i < vocab.length(a); i += 1) if (data[offsets[a] + i] !== data[offsets[b] + i]) return false;
    return true;
  };
  const open = [];
  for (const id of sorted) {
    while (open.length && !begins(open.at(-1), id)) open.pop();
    if (open.length) parents[id] = open.at(-1);
    open.push(id);
  }
}
