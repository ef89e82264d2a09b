// The layout of the map: a rectangle for each token's subtree, which contains the token's own tile
// and the rectangles of its children. The tiles of all tokens fill the unit square.

// A token's own tile is larger the more tokens grow from it, so that its label can be read before
// theirs. A token without descendants has area 1.
const areaOf = (descendants) => (descendants ? 1 + GROWTH * descendants ** POWER : 1); // a power takes time
const GROWTH = 0.55;
const POWER = 0.76;

const SPACE = 0x20;
export const AFTER_SPACE = 256;

const MANY = 60; // children; more are grouped by their next character

const SMALLEST_REGION = 0.0004; // of the whole area
const LARGE = 0.08; // of the whole area: regions of larger scripts are letters

const PARTS = "Parts of characters";

/**
 * Returns the map for a viewport with this ratio of width to height. Tokens are numbered in
 * preorder: a token's subtree has the numbers from its own to next[number] - 1.
 *   ids, numbers  the id of each number, and the number of each id
 *   next          the number after the subtree
 *   depths        the number of ancestors
 *   outer, inner  the rectangles of the subtree and of the token's own tile: x0, y0, x1, y1 of
 *                 number n are at 4 n; all from 0 to 1
 *   total         the sum of all areas; the smallest tile has area 1
 *   regions       groups of many tokens with one parent, from large to small: { x0, y0, x1, y1, parent
 *                 (an id or -1), script (an index), letter (a byte or undefined) }
 */
export function layOut(forest, vocab, aspect) {
  const { size, parents, descendants } = forest;
  const { scripts } = vocab;
  const map = {
    aspect,
    ids: new Int32Array(size),
    numbers: new Int32Array(size),
    next: new Int32Array(size),
    depths: new Uint16Array(size),
    outer: new Float32Array(4 * size),
    inner: new Float32Array(4 * size),
    total: 0,
    regions: [],
  };
  const { outer, inner } = map;
  number(forest, map);
  const areas = new Float64Array(size); // of subtrees, by number
  const groups = new Uint8Array(size); // the script of each subtree, by number
  for (let n = size - 1; n >= 0; n -= 1) {
    const id = map.ids[n];
    areas[n] += areaOf(descendants[id]);
    if (parents[id] >= 0) areas[map.numbers[parents[id]]] += areas[n];
    // A part of a character is in the script of the largest subtree that completes it.
    const isPart = scripts.names[scripts.of[id]] === PARTS && descendants[id];
    groups[n] = isPart ? groups[n + 1] : scripts.of[id];
  }
  const work = { forest, vocab, map, areas, groups };
  for (let n = 0; n < size; n = map.next[n]) map.total += areas[n];
  layOutChildren(work, -1, { x0: 0, y0: 0, x1: aspect, y1: 1 });
  for (let n = 0; n < size; n += 1) {
    const i = 4 * n;
    const [x0, y0, x1, y1] = [outer[i], outer[i + 1], outer[i + 2], outer[i + 3]];
    if (map.next[n] > n + 1) layOutChildren(work, n, { x0, y0, x1, y1 });
    else put(inner, n, x0, y0, x1, y1);
  }
  for (const rectangles of [outer, inner]) for (let i = 0; i < rectangles.length; i += 2) rectangles[i] /= aspect;
  for (const region of map.regions) {
    region.x0 /= aspect;
    region.x1 /= aspect;
  }
  return map;
}

/** Numbers the tokens in preorder. */
function number(forest, map) {
  let n = 0;
  const waiting = [...forest.childrenOf(-1)].reverse();
  while (waiting.length) {
    const id = waiting.pop();
    map.ids[n] = id;
    map.numbers[id] = n;
    map.next[n] = n + 1 + forest.descendants[id];
    const parent = forest.parents[id];
    map.depths[n] = parent < 0 ? 0 : Math.min(0xffff, map.depths[map.numbers[parent]] + 1);
    n += 1;
    const children = forest.childrenOf(id);
    for (let i = children.length - 1; i >= 0; i -= 1) waiting.push(children[i]);
  }
}

/** Returns the first byte of the token after its parent's text, or -1. After a root's space, it is the
 * next byte plus AFTER_SPACE. */
export function nextByte(forest, vocab, id) {
  const parent = forest.parents[id];
  const at = vocab.offsets[id] + (parent < 0 ? 0 : vocab.length(parent));
  const end = vocab.offsets[id + 1];
  if (parent < 0 && vocab.data[at] === SPACE && at + 1 < end) return vocab.data[at + 1] + AFTER_SPACE;
  return at < end ? vocab.data[at] : -1;
}

/** Lays out the children of token number n (or the roots, if n is -1) in a box: few children of one
 * script directly, others in groups by script, of which large ones are grouped by the next byte. The
 * parent's own tile joins the largest group. */
function layOutChildren(work, n, box) {
  const { forest, vocab, map, areas, groups: scripts } = work;
  const items = [];
  for (let child = n + 1, end = n < 0 ? map.ids.length : map.next[n]; child < end; child = map.next[child]) items.push(child);
  if (!items.length) return;
  const id = n < 0 ? -1 : map.ids[n];
  const own = id < 0 ? 0 : areaOf(forest.descendants[id]);
  const layer = {
    valueOf: (item) => (item === OWN ? own : areas[item]),
    orderOf: (item) => (item === OWN ? -1 : map.ids[item]),
    put: (item, x0, y0, x1, y1) => (item === OWN ? put(map.inner, n, x0, y0, x1, y1) : put(map.outer, item, x0, y0, x1, y1)),
  };
  const script = scripts[items[0]];
  if (items.length <= MANY && items.every((item) => scripts[item] === script)) {
    if (id >= 0) items.push(OWN);
    squarify(items, layer, box);
    return;
  }
  const groups = grouped(items, (item) => scripts[item], layer);
  for (const group of groups) if (group.items.length > MANY) group.letters = grouped(group.items, (item) => nextByte(forest, vocab, map.ids[item]), layer);
  if (id >= 0) {
    const [largest] = groups;
    largest.value += own;
    if (largest.letters) largest.letters.push({ value: own, order: -1, items: [OWN] });
    else largest.items.push(OWN);
  }
  squarify(groups, GROUPS, box);
  for (const group of groups) {
    if (!group.letters) squarify(group.items, layer, group);
    else {
      squarify(group.letters, GROUPS, group);
      for (const letter of group.letters) squarify(letter.items, layer, letter);
    }
  }
  if (items.length > MANY) addRegions(work, id, groups);
}

const OWN = -1; // the parent's own tile among the numbers of its children

const GROUPS = {
  valueOf: ({ value }) => value,
  orderOf: ({ order }) => order,
  put: (group, x0, y0, x1, y1) => Object.assign(group, { x0, y0, x1, y1 }),
};

/** Notes the groups that are worth a name: parts of large scripts, and small scripts. */
function addRegions({ map, groups: scripts }, parent, groups) {
  const inside = parent < 0 ? -1 : scripts[map.numbers[parent]];
  const add = ({ value, x0, y0, x1, y1 }, script, letter) => value > SMALLEST_REGION * map.total && map.regions.push({ x0, y0, x1, y1, parent, script, letter });
  for (const group of groups) {
    const letters = (group.letters ?? []).filter(({ items }) => items[0] !== OWN);
    if (group.value > LARGE * map.total && letters.length > 1) for (const letter of letters) add(letter, group.key, letter.key);
    else if (group.key !== inside) add(group, group.key);
  }
}

/** Returns groups of items with the same key, the largest first. */
function grouped(items, keyOf, { valueOf }) {
  const groups = new Map();
  for (const item of items) {
    const key = keyOf(item);
    let group = groups.get(key);
    if (group === undefined) groups.set(key, (group = { value: 0, order: key, key, items: [], letters: undefined, x0: 0, y0: 0, x1: 0, y1: 0 }));
    group.items.push(item);
    group.value += valueOf(item);
  }
  return [...groups.values()].sort((a, b) => b.value - a.value || a.order - b.order);
}

/** Fills a box with items by area, in rows whose tiles have aspect ratios near GOLDEN (Bruls, Huizing,
 * van Wijk: Squarified Treemaps, 2000). Sorts the items, and calls `put` for each. */
function squarify(items, { valueOf, orderOf, put }, { x0, y0, x1, y1 }) {
  const compare = (a, b) => valueOf(b) - valueOf(a) || orderOf(a) - orderOf(b);
  let isSorted = true;
  for (let i = 1; i < items.length && isSorted; i += 1) isSorted = compare(items[i - 1], items[i]) < 0;
  if (!isSorted) items.sort(compare);
  let rest = 0;
  for (const item of items) rest += valueOf(item);
  for (let first = 0, end; first < items.length; first = end) {
    const [width, height] = [x1 - x0, y1 - y0];
    const scale = Math.max(width / height, height / width) / (rest * GOLDEN);
    const largest = valueOf(items[first]);
    let sum = largest;
    // The row's worst aspect ratio, relative to GOLDEN. Tiles join the row until it would get worse.
    let worst = Math.max(1 / (sum * scale), sum * scale);
    for (end = first + 1; end < items.length; end += 1) {
      const value = valueOf(items[end]);
      const square = (sum + value) ** 2 * scale;
      const ratio = Math.max(largest / square, square / value);
      if (ratio > worst) break;
      worst = ratio;
      sum += value;
    }
    const part = sum / rest;
    rest -= sum;
    if (width < height) {
      const bottom = end === items.length ? y1 : y0 + height * part;
      for (let left = x0, i = first; i < end; i += 1) {
        const right = left + (valueOf(items[i]) / sum) * width;
        put(items[i], left, y0, right, bottom);
        left = right;
      }
      y0 = bottom;
    } else {
      const right = end === items.length ? x1 : x0 + width * part;
      for (let top = y0, i = first; i < end; i += 1) {
        const bottom = top + (valueOf(items[i]) / sum) * height;
        put(items[i], x0, top, right, bottom);
        top = bottom;
      }
      x0 = right;
    }
  }
}

const GOLDEN = (1 + Math.sqrt(5)) / 2; // the ratio that tiles should have

function put(rectangles, n, x0, y0, x1, y1) {
  const i = 4 * n;
  rectangles[i] = x0;
  rectangles[i + 1] = y0;
  rectangles[i + 2] = x1;
  rectangles[i + 3] = y1;
}
