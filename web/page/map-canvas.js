// The map on the screen: layers of pixels that follow a camera, and the gestures that move it.
//
// While the camera moves, the browser moves and scales the layers that are already drawn, and the
// view to come is drawn meanwhile, a few milliseconds in each frame. So a frame's time depends
// neither on the number of tokens nor on that of pixels.

import { TilePainter, drawLabels, drawRegions, nameWidth, placeLabels, placeRegions, scaleOf } from "./map-paint.js";
import { AFTER_SPACE } from "./map-layout.js";
import { fit, flight, zoomAt } from "./map-camera.js";

const BUDGET = 4; // milliseconds of drawing in a frame
const MOST_LABELS = 420;
const LABELS_AT_ONCE = 40;
const MOST_PIXELS = 6_000_000; // of a layer
const BACKDROP = 500_000; // pixels of the layer with the whole map
const LONGEST_LABEL = 26; // characters
const MARK = 7; // pixels; tokens that the text uses are at least this large
const MOST_MARKS = 3000;

const SPOKEN = { space: "·", tab: "→", newline: "↵", return: "␍", more: "…" };

/** Returns a token's text as a label. */
export function labelOf(vocab, id) {
  const text = vocab.parts(id).slice(0, LONGEST_LABEL).map(({ kind, text }) => SPOKEN[kind] ?? text).join("");
  const characters = [...text];
  return characters.length > LONGEST_LABEL ? `${characters.slice(0, LONGEST_LABEL).join("")}…` : text || "∅";
}

/** Returns a function from a region of the map to its name: a script, or what its tokens begin with. */
export function regionNames(vocab) {
  const { names } = vocab.scripts;
  return ({ parent, script, letter }) => {
    const byte = letter % AFTER_SPACE;
    if (!(byte > 0x20 && byte < 0x7f)) return names[script];
    const before = parent >= 0 ? labelOf(vocab, parent) : letter > byte ? SPOKEN.space : "";
    return before + String.fromCharCode(byte);
  };
}

/** Measures labels: returns a function from a number to { text, width }, the width at 1 pixel. */
export function labelMeasure(context, map, vocab, font) {
  const known = new Map();
  return (n) => {
    let found = known.get(n);
    if (found === undefined) {
      const text = labelOf(vocab, map.ids[n]);
      context.font = `500 20px ${font}`;
      found = { text, width: Math.max(0.3, context.measureText(text).width / 20) };
      if (known.size > 20_000) known.clear();
      known.set(n, found);
    }
    return found;
  };
}

/** Draws small tiles of `marks`, a list of numbers, large enough to be seen. */
export function drawMarks(context, map, colours, camera, { marks, width, height }) {
  const view = scaleOf(camera, width, height);
  for (const n of marks) {
    const i = 4 * n;
    const x0 = map.inner[i] * view.sx - view.dx;
    const y0 = map.inner[i + 1] * view.sy - view.dy;
    const w = map.inner[i + 2] * view.sx - view.dx - x0;
    const h = map.inner[i + 3] * view.sy - view.dy - y0;
    if (w >= MARK && h >= MARK) continue;
    context.fillStyle = colours.css[colours.of[n]];
    context.fillRect(x0 + (w - MARK) / 2, y0 + (h - MARK) / 2, MARK, MARK);
  }
}

const same = (a, b) => a && b && a.x === b.x && a.y === b.y && a.zoom === b.zoom;
const now = () => performance.now();

export class MapCanvas {
  camera = { x: 0, y: 0, zoom: 1 };
  target = this.camera; // where the camera goes
  #flight;
  #layers; // the layer that is shown, and the one that is drawn next
  #backdrop;
  #work; // the layer that is being drawn
  #frame = 0;
  #measure;

  /** `moved` is called while the camera moves, and `settled` once it has stopped. */
  constructor(container, { moved, settled }) {
    this.container = container;
    this.moved = moved;
    this.settled = settled;
    this.#backdrop = this.#layer();
    this.#layers = [this.#layer(), this.#layer()];
  }

  #layer() {
    const canvas = document.createElement("canvas");
    canvas.ariaHidden = "true";
    this.container.insertBefore(canvas, this.container.querySelector(".map-outline"));
    return { canvas, context: canvas.getContext("2d", { alpha: false, willReadFrequently: true }), camera: undefined };
  }

  /** Whether it moves, or draws what the camera sees. */
  get busy() {
    return this.#frame !== 0;
  }

  get width() {
    return this.container.clientWidth;
  }

  get height() {
    return this.container.clientHeight;
  }

  /** The greatest zoom: the smallest tile is about a quarter of the viewport wide. */
  get mostZoom() {
    return this.map ? Math.max(1, 0.28 * Math.sqrt(this.map.total)) : 1;
  }

  /** Shows a map, and draws it at once. */
  show(map, colours, { vocab, isDimmed, marks = [] }) {
    if (map !== this.map) this.#measure = undefined;
    Object.assign(this, { map, colours, vocab, isDimmed, marks: marks.slice(0, MOST_MARKS) });
    this.redraw();
  }

  /** Draws everything at once, for example after a change of size. */
  redraw() {
    const { width, height } = this;
    if (!this.map || !width || !height) return;
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.ratio = Math.min(devicePixelRatio || 1, Math.sqrt(MOST_PIXELS / (width * height)));
    this.font = getComputedStyle(this.container).fontFamily;
    this.#measure ??= labelMeasure(this.#layers[0].context, this.map, this.vocab, this.font);
    this.#drawBackdrop();
    this.#work = undefined;
    this.#begin(this.target);
    this.#draw(Infinity);
    this.#schedule();
  }

  #drawBackdrop() {
    const layer = this.#backdrop;
    const scale = Math.min(1, Math.sqrt(BACKDROP / (this.width * this.height)));
    const [width, height] = [Math.ceil(this.width * scale), Math.ceil(this.height * scale)];
    const image = new ImageData(width, height);
    const pixels = new Int32Array(image.data.buffer);
    layer.camera = { x: 0, y: 0, zoom: 1 };
    new TilePainter(this.map, this.colours, layer.camera, { pixels, width, height, detail: 4, isDimmed: this.isDimmed }).step();
    Object.assign(layer.canvas, { width, height });
    layer.context.putImageData(image, 0, 0);
  }

  // ---- layers ----

  #begin(camera) {
    const width = Math.round(this.width * this.ratio);
    const height = Math.round(this.height * this.ratio);
    if (this.image?.width !== width || this.image.height !== height) this.image = new ImageData(width, height);
    const pixels = new Int32Array(this.image.data.buffer);
    const { map, colours, ratio, isDimmed } = this;
    const painter = new TilePainter(map, colours, camera, { pixels, width, height, ratio, isDimmed });
    this.#work = { camera, painter, labels: undefined };
  }

  /** Goes on drawing until the deadline; shows the layer once it is finished. */
  #draw(deadline) {
    const { camera, painter } = this.#work;
    const layer = this.#layers[1];
    const { canvas, context } = layer;
    if (!this.#work.labels) {
      if (!painter.step(deadline)) return;
      if (canvas.width !== painter.width || canvas.height !== painter.height) Object.assign(canvas, { width: painter.width, height: painter.height });
      context.putImageData(this.image, 0, 0);
      context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      const { width, height } = this;
      const names = placeRegions(this.map, camera, { width, height, nameOf: regionNames(this.vocab), widthOf: nameWidth(context, this.font) });
      drawRegions(context, names, { ...this.colours, font: this.font });
      drawMarks(context, this.map, this.colours, camera, { marks: this.marks, width, height });
      this.#work.labels = placeLabels(this.map, camera, { numbers: painter.labels, names, width, height, most: MOST_LABELS, measure: this.#measure });
      if (now() >= deadline) return;
    }
    while (this.#work.labels.length) {
      drawLabels(context, this.#work.labels.splice(0, LABELS_AT_ONCE), this.colours, this.font);
      if (now() >= deadline) return;
    }
    layer.camera = camera;
    this.#layers.reverse();
    this.#layers[1].canvas.style.visibility = "hidden";
    this.#work = undefined;
    this.#place();
  }

  /** Moves the layers to where the camera sees them. */
  #place() {
    const { x, y, zoom } = this.camera;
    const [front] = this.#layers;
    const covers = front.camera && same(front.camera, this.camera);
    for (const layer of [this.#backdrop, front]) {
      if (!layer.camera) continue;
      const { style } = layer.canvas;
      const scale = zoom / layer.camera.zoom;
      style.visibility = layer === this.#backdrop && covers ? "hidden" : "visible";
      style.transform = `translate(${(layer.camera.x - x) * this.width * zoom}px, ${(layer.camera.y - y) * this.height * zoom}px) scale(${scale})`;
    }
  }

  // ---- motion ----

  #schedule() {
    this.#frame ||= requestAnimationFrame(this.#step);
  }

  #step = () => {
    const start = now();
    this.#frame = 0;
    const moving = !same(this.camera, this.target);
    if (moving) {
      this.#advance(start);
      this.#place();
      this.moved();
    }
    if (!this.#work && !same(this.#layers[0].camera, this.target)) this.#begin(this.target);
    if (this.#work) this.#draw(start + BUDGET);
    if (this.#work || moving || !same(this.#layers[0].camera, this.target)) this.#schedule();
    else this.settled();
  };

  #advance(time) {
    if (this.#flight) {
      const { at, duration, start } = this.#flight;
      const part = Math.min(1, (time - start) / duration);
      this.camera = part === 1 ? this.target : at(part);
      if (part === 1) this.#flight = undefined;
      return;
    }
    const { camera, target } = this;
    const near = Math.abs(Math.log(target.zoom / camera.zoom)) < 0.002 && Math.abs(target.x - camera.x) * target.zoom < 0.0004 && Math.abs(target.y - camera.y) * target.zoom < 0.0004;
    if (near) {
      this.camera = target;
      return;
    }
    // The window's corners approach those of the target, so that the point under the pointer stays.
    const side = 1 / camera.zoom + (1 / target.zoom - 1 / camera.zoom) * 0.35;
    this.camera = { x: camera.x + (target.x - camera.x) * 0.35, y: camera.y + (target.y - camera.y) * 0.35, zoom: 1 / side };
  }

  /** Moves the camera to a target: in a flight, eased (as the wheel does), or at once. Returns false
   * if it is already there. */
  go(target, how) {
    if (same(target, this.target) && same(this.camera, this.target)) return false;
    this.target = target;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (calm || how === "now") {
      this.#flight = undefined;
      this.camera = target;
      this.#place();
    } else if (how === "fly") {
      this.#flight = { ...flight(this.camera, target), start: now() };
    } else {
      this.#flight = undefined;
    }
    this.#schedule();
    return true;
  }

  /** Shows a token's whole subtree, or, with `room`, also what is around it; see {@link go}. */
  goToToken(n, { how = "fly", room = 1.04 } = {}) {
    return this.go(n < 0 ? { x: 0, y: 0, zoom: 1 } : fit(this.map.outer, 4 * n, this.mostZoom, room), how);
  }

  zoomBy(factor, point = { x: 0.5, y: 0.5 }, how = "ease") {
    this.go(zoomAt(this.target, factor, point, this.mostZoom), how);
  }

  /** Moves the map by a part of the viewport. */
  panBy(dx, dy) {
    const { x, y, zoom } = this.target;
    this.go(zoomAt({ x: x - dx / zoom, y: y - dy / zoom, zoom }, 1, { x: 0, y: 0 }, this.mostZoom), "now");
  }
}
