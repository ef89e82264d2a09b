// Draws the part of the map that a camera shows: tiles as pixels, and labels.
//
// A camera is { x, y, zoom }: the window from (x, y) with side 1 / zoom of the unit square.

const TILE = 5; // pixels; smaller tiles have no edge
const BRANCH = 22; // pixels; smaller subtrees have no border
const LABEL = { width: 16, height: 11 }; // pixels; smaller tiles have no label
export const REGION = { width: 34, height: 26, alpha: 0.42, rim: 0.12 }; // smaller regions (in pixels) have no name
const LEGIBLE = 220; // square pixels of the smallest tile: from here on, regions have no names
const SMALLEST_TEXT = 9; // pixels
const LARGEST_TEXT = 72;
const BATCH = 400; // tiles between looks at the clock

/** Returns the factors and offsets from the unit square to pixels. */
export function scaleOf({ x, y, zoom }, width, height) {
  const sx = width * zoom;
  const sy = height * zoom;
  return { sx, sy, dx: x * sx, dy: y * sy };
}

const half = (pixel) => ((pixel >>> 1) & 0x7f7f7f) | 0xff000000;

/**
 * Draws tiles into `pixels`, an Int32Array of width * height, in steps of limited time. Subtrees with
 * an area of less than `detail` pixels are drawn as one tile, so the time depends on the number of
 * pixels rather than tokens. `ratio` is the number of pixels in a CSS pixel. `isDimmed(n)`, if
 * given, says which tiles are drawn in grey.
 */
export class TilePainter {
  labels = []; // the numbers of the tiles that have room for a label
  #branches = [];
  #next = 0;

  constructor(map, colours, camera, { pixels, width, height, detail = 2, ratio = 1, isDimmed }) {
    Object.assign(this, { map, colours, pixels, width, height, detail, ratio, isDimmed });
    this.view = scaleOf(camera, width, height);
  }

  /** Draws until `deadline`, a time of performance.now(). Returns whether everything is drawn. */
  step(deadline = Infinity) {
    const { map, view, width, height, detail } = this;
    const { outer, inner, next } = map;
    const { sx, sy, dx, dy } = view;
    const branch = BRANCH * this.ratio;
    const size = next.length;
    let n = this.#next;
    for (let batch = 0; n < size; ) {
      const i = 4 * n;
      const x0 = outer[i] * sx - dx;
      const x1 = outer[i + 2] * sx - dx;
      const y0 = outer[i + 1] * sy - dy;
      const y1 = outer[i + 3] * sy - dy;
      if (x1 <= 0 || y1 <= 0 || x0 >= width || y0 >= height) {
        n = next[n];
        continue;
      }
      if (next[n] === n + 1 || (x1 - x0) * (y1 - y0) < detail) {
        this.#tile(n, x0, y0, x1, y1);
        n = next[n];
      } else {
        this.#tile(n, inner[i] * sx - dx, inner[i + 1] * sy - dy, inner[i + 2] * sx - dx, inner[i + 3] * sy - dy);
        if (x1 - x0 > branch && y1 - y0 > branch) this.#branches.push(n);
        n += 1;
      }
      if ((batch += 1) === BATCH) {
        batch = 0;
        if (performance.now() >= deadline) break;
      }
    }
    this.#next = n;
    if (n < size) return false;
    for (const branch of this.#branches) this.#border(branch);
    return true;
  }

  #tile(n, left, top, right, bottom) {
    const { width, height, ratio, pixels } = this;
    const x0 = left > 0 ? Math.round(left) | 0 : 0;
    const y0 = top > 0 ? Math.round(top) | 0 : 0;
    const x1 = right < width ? Math.round(right) | 0 : width;
    const y1 = bottom < height ? Math.round(bottom) | 0 : height;
    if (x0 >= x1 || y0 >= y1) return;
    const swatch = this.colours.of[n];
    let fill = this.colours.fills[swatch];
    const w = right - left;
    const h = bottom - top;
    if (w < TILE * ratio || h < TILE * ratio) {
      if (this.isDimmed !== undefined && this.isDimmed(n)) fill = this.colours.dim;
      for (let row = y0 * width; row < y1 * width; row += width) for (let i = row + x0; i < row + x1; i += 1) pixels[i] = fill;
      return;
    }
    let edge = this.colours.edges[swatch];
    if (this.isDimmed !== undefined && this.isDimmed(n)) {
      fill = this.colours.dim;
      edge = this.colours.dim;
    }
    const lastX = right <= width ? x1 - 1 : x1;
    const lastY = bottom <= height ? y1 - 1 : y1;
    for (let row = y0 * width; row < lastY * width; row += width) {
      if (lastX - x0 > 24) pixels.fill(fill, row + x0, row + lastX);
      else for (let i = row + x0; i < row + lastX; i += 1) pixels[i] = fill;
      if (lastX < x1) pixels[row + lastX] = edge;
    }
    if (lastY < y1) for (let i = lastY * width + x0, end = lastY * width + x1; i < end; i += 1) pixels[i] = edge;
    if (w >= LABEL.width * ratio && h >= LABEL.height * ratio) this.labels.push(n);
  }

  /** Darkens the right and the bottom border of a subtree. Larger subtrees have thicker borders. */
  #border(n) {
    const { view, ratio, map } = this;
    const i = 4 * n;
    const left = Math.round(map.outer[i] * view.sx - view.dx);
    const top = Math.round(map.outer[i + 1] * view.sy - view.dy);
    const right = Math.round(map.outer[i + 2] * view.sx - view.dx);
    const bottom = Math.round(map.outer[i + 3] * view.sy - view.dy);
    const thick = Math.max(1, Math.round(ratio * Math.min(2.4, Math.min(right - left, bottom - top) / (110 * ratio))));
    this.#darken(left, bottom - thick, right, bottom);
    this.#darken(right - thick, top, right, bottom - thick);
  }

  #darken(x0, y0, x1, y1) {
    const { width, height, pixels } = this;
    for (let y = Math.max(0, y0); y < Math.min(height, y1); y += 1)
      for (let i = y * width + Math.max(0, x0); i < y * width + Math.min(width, x1); i += 1)
        pixels[i] = (half(pixels[i]) + ((pixels[i] >>> 3) & 0x1f1f1f)) | 0xff000000;
  }
}

/**
 * Places labels on the tiles with these numbers: returns up to `most` { n, text, x, y, size, w, h },
 * the largest ones that don't overlap the `names` of regions. `measure(n)` returns { text, width }:
 * the label, and its width at 1 pixel.
 */
export function placeLabels(map, camera, { numbers, names, width, height, most, measure }) {
  const view = scaleOf(camera, width, height);
  const { inner } = map;
  const placed = [];
  for (const n of numbers) {
    const i = 4 * n;
    const left = Math.max(0, inner[i] * view.sx - view.dx);
    const top = Math.max(0, inner[i + 1] * view.sy - view.dy);
    const w = Math.min(width, inner[i + 2] * view.sx - view.dx) - left;
    const h = Math.min(height, inner[i + 3] * view.sy - view.dy) - top;
    if (w < LABEL.width || h < LABEL.height) continue;
    const { text, width: unit } = measure(n);
    const size = Math.floor(Math.min((w - Math.min(24, 0.16 * w)) / unit, 0.72 * h, LARGEST_TEXT));
    const label = { n, text, x: left + w / 2, y: top + h / 2, size, w, h, reach: (unit * size) / 2 };
    if (size >= SMALLEST_TEXT && !names.some((name) => overlap(name, label))) placed.push(label);
  }
  placed.sort((a, b) => b.size - a.size);
  return placed.slice(0, most);
}

const overlap = (a, b) => Math.abs(a.x - b.x) < a.reach + b.reach && Math.abs(a.y - b.y) < (a.size + b.size) / 2;

/**
 * Places the names of regions that are neither small nor as large as the viewport: returns a list of
 * { text, x, y, size, reach }. Names don't overlap; the largest have precedence. `nameOf(region)`
 * returns a text, whose width at 1 pixel `widthOf(text)` returns.
 */
export function placeRegions(map, camera, { width, height, nameOf, widthOf }) {
  const view = scaleOf(camera, width, height);
  if ((view.sx * view.sy) / map.total > LEGIBLE) return []; // the tiles have labels
  const all = [];
  for (const region of map.regions) {
    const w = (region.x1 - region.x0) * view.sx;
    const h = (region.y1 - region.y0) * view.sy;
    if (w < REGION.width || h < REGION.height || w > 0.75 * width || h > 0.9 * height) continue;
    const x = ((region.x0 + region.x1) / 2) * view.sx - view.dx;
    const y = ((region.y0 + region.y1) / 2) * view.sy - view.dy;
    if (x + w / 2 < 0 || y + h / 2 < 0 || x - w / 2 > width || y - h / 2 > height) continue;
    const text = nameOf(region);
    const unit = widthOf(text);
    const size = Math.floor(Math.min((0.62 * w) / unit, 0.4 * h, LARGEST_TEXT));
    if (size >= SMALLEST_TEXT + 2) all.push({ text, x, y, size, reach: (unit * size) / 2 });
  }
  const placed = [];
  for (const name of all.sort((a, b) => b.size - a.size)) {
    if (!placed.some((other) => overlap(name, other))) placed.push(name);
  }
  return placed;
}

/** Returns a function from a text to its width at 1 pixel, as the name of a region. */
export function nameWidth(context, font) {
  return (text) => {
    context.font = `600 20px ${font}`;
    return context.measureText(text).width / 20;
  };
}

/** Draws placed names of regions, with a soft rim in the opposite colour. */
export function drawRegions(context, names, { font, ink, rim }) {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = ink;
  context.strokeStyle = rim;
  context.lineJoin = "round";
  for (const { text, x, y, size } of names) {
    context.font = `600 ${size}px ${font}`;
    context.lineWidth = size / 7;
    context.globalAlpha = REGION.rim;
    context.strokeText(text, x, y);
    context.globalAlpha = REGION.alpha;
    context.fillText(text, x, y);
  }
  context.globalAlpha = 1;
}

/** Draws labels into a 2D context. */
export function drawLabels(context, labels, colours, font) {
  context.textAlign = "center";
  context.textBaseline = "middle";
  let size = 0;
  for (const label of labels) {
    if (label.size !== size) {
      size = label.size;
      context.font = `500 ${size}px ${font}`;
    }
    context.fillStyle = colours.inks[colours.of[label.n]];
    context.fillText(label.text, label.x, label.y + 0.04 * size);
  }
}

/**
 * Returns the number of the token at a point of the viewport: the smallest subtree there whose sides
 * are at least `smallest` pixels, or the token whose own tile is there; -1 if there is none.
 */
export function hit(map, camera, { x, y, width, height, smallest }) {
  const view = scaleOf(camera, width, height);
  const at = { x: (x + view.dx) / view.sx, y: (y + view.dy) / view.sy };
  const { outer, inner, next } = map;
  const within = (rectangles, i) => at.x >= rectangles[i] && at.y >= rectangles[i + 1] && at.x < rectangles[i + 2] && at.y < rectangles[i + 3];
  let found = -1;
  for (let n = 0, end = map.ids.length; n < end; ) {
    const i = 4 * n;
    if (!within(outer, i)) {
      n = next[n];
      continue;
    }
    if (found >= 0 && ((outer[i + 2] - outer[i]) * view.sx < smallest || (outer[i + 3] - outer[i + 1]) * view.sy < smallest)) break;
    found = n;
    if (within(inner, i)) break;
    end = next[n];
    n += 1;
  }
  return found;
}
