// The layout of the map: a rectangle for each token's subtree, which contains the token's own tile
// and the rectangles of its children. The tiles of all tokens fill the unit square.

import { treemapSquarify } from "d3-hierarchy";

// A token's own tile is larger the more tokens grow from it, so that its label can be read before
// theirs. A token without descendants has area 1.
const areaOf = (descendants) => 1 + GROWTH * descendants ** POWER;
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
    regions: [],
  };
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
  const roots = Array.from(forest.childrenOf(-1), (id) => childOf(work, id));
  map.total = work.total = roots.reduce((sum, { value }) => sum + value, 0);
  layOutGroups(work, -1, roots, { x0: 0, y0: 0, x1: aspect, y1: 1 });
  for (const root of roots) put(map.outer, map.numbers[root.id], root);
  for (let n = 0; n < size; n += 1) layOutChildren(work, n);
  for (const rectangles of [map.outer, map.inner]) for (let i = 0; i < rectangles.length; i += 2) rectangles[i] /= aspect;
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

const byArea = (a, b) => b.value - a.value || a.order - b.order;

function childOf({ forest, vocab, map, areas, groups }, id) {
  const n = map.numbers[id];
  return { value: areas[n], order: id, id, script: groups[n], letter: nextByte(forest, vocab, id) };
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

/** Lays out children in a rectangle by area: in groups by script, and these by the next character if
 * they are large. Children have { value, order, script, letter }. `own`, if any, is the tile of their
 * parent, which joins the largest group. */
function layOutGroups(work, parent, children, box, own) {
  if (!children.length) return;
  const { script } = children[0];
  if (children.length <= MANY && children.every((child) => child.script === script)) {
    if (own) children.push(own);
    squarify(children, box);
    return;
  }
  const groups = grouped(children, "script");
  for (const group of groups) if (group.children.length > MANY) group.children = grouped(group.children, "letter");
  const [largest] = groups;
  if (own) {
    largest.children.push(own);
    largest.value += own.value;
  }
  squarify(groups, box);
  if (children.length > MANY) addRegions(work, parent, groups);
}

/** Notes the groups that are worth a name: parts of large scripts, and small scripts. */
function addRegions({ map, groups: scripts, total }, parent, groups) {
  const inside = parent < 0 ? -1 : scripts[map.numbers[parent]];
  const add = ({ value, x0, y0, x1, y1 }, script, letter) => value > SMALLEST_REGION * total && map.regions.push({ x0, y0, x1, y1, parent, script, letter });
  for (const group of groups) {
    const letters = group.children.filter(({ children }) => children);
    if (group.value > LARGE * total && letters.length > 1) for (const letter of letters) add(letter, group.key, letter.key);
    else if (group.key !== inside) add(group, group.key);
  }
}

/** Returns groups of children with the same value of a property, the largest first. */
function grouped(children, property) {
  const groups = new Map();
  for (const child of children) {
    const key = child[property];
    let group = groups.get(key);
    if (group === undefined) groups.set(key, (group = { value: 0, order: key, key, children: [] }));
    group.children.push(child);
    group.value += child.value;
  }
  return [...groups.values()].sort(byArea);
}

/** Sets x0, y0, x1 and y1 of nested groups, so that they fill the box. */
function squarify(children, { x0, y0, x1, y1 }) {
  children.sort(byArea);
  treemapSquarify({ value: children.reduce((sum, { value }) => sum + value, 0), children }, x0, y0, x1, y1);
  for (const child of children) if (child.children) squarify(child.children, child);
}

function layOutChildren(work, n) {
  const { forest, map } = work;
  const { outer, inner, numbers } = map;
  const id = map.ids[n];
  const i = 4 * n;
  if (forest.descendants[id] === 0) {
    for (let k = i; k < i + 4; k += 1) inner[k] = outer[k];
    return;
  }
  const own = { value: areaOf(forest.descendants[id]), order: -1 };
  const children = [];
  for (const child of forest.childrenOf(id)) children.push(childOf(work, child));
  layOutGroups(work, id, children, { x0: outer[i], y0: outer[i + 1], x1: outer[i + 2], y1: outer[i + 3] }, own);
  put(inner, n, own);
  for (const child of children) if (child !== own) put(outer, numbers[child.id], child);
}

function put(rectangles, n, { x0, y0, x1, y1 }) {
  rectangles[4 * n] = x0;
  rectangles[4 * n + 1] = y0;
  rectangles[4 * n + 2] = x1;
  rectangles[4 * n + 3] = y1;
}
