// Wheel, mouse and touch on the map.

const WHEEL = 0.0022; // zoom of a wheel's pixel, as a logarithm
const PINCH = 0.012; // the same for the wheel events of a pinch on a trackpad
const LINE = 20; // pixels of a wheel's line
const MOST_WHEEL = 240; // pixels of one event
const CLICK = 6; // pixels; longer ways are drags

/** Calls `moving()` when a gesture moves the map, `point(x, y)` (pixels in the container, or undefined when the pointer leaves it) as the mouse
 * moves, and `pick(x, y, pointerType)` for a click or tap. */
export class Gestures {
  #pointers = new Map(); // where each pressed pointer is
  #way = 0; // pixels since the first was pressed

  constructor(container, canvas, { moving, point, pick }) {
    Object.assign(this, { container, canvas, moving, point, pick });
    container.addEventListener("wheel", this.#wheel, { passive: false });
    container.addEventListener("pointerdown", this.#down);
    container.addEventListener("pointermove", this.#move);
    container.addEventListener("pointerup", this.#up);
    container.addEventListener("pointercancel", this.#cancel);
    container.addEventListener("pointerleave", () => this.point());
  }

  #at(event) {
    const { left, top } = this.container.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  }

  #share({ x, y }) {
    return { x: x / this.canvas.width, y: y / this.canvas.height };
  }

  #wheel = (event) => {
    const { canvas } = this;
    const pixels = event.deltaY * (event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? canvas.height : 1);
    if (pixels > 0 && canvas.target.zoom === 1 && !event.ctrlKey) return; // the page scrolls
    event.preventDefault();
    this.moving();
    const limited = Math.max(-MOST_WHEEL, Math.min(MOST_WHEEL, pixels));
    canvas.zoomBy(Math.exp(-limited * (event.ctrlKey ? PINCH : WHEEL)), this.#share(this.#at(event)));
  };

  #down = (event) => {
    if (event.button) return;
    if (!this.#pointers.size) this.#way = 0;
    this.#pointers.set(event.pointerId, this.#at(event));
    try {
      this.container.setPointerCapture(event.pointerId);
    } catch {
      // The pointer is already gone, for example a touch that became a scroll.
    }
  };

  #move = (event) => {
    const to = this.#at(event);
    const from = this.#pointers.get(event.pointerId);
    if (!from) {
      if (event.pointerType !== "touch") this.point(to.x, to.y);
      return;
    }
    this.#way += Math.hypot(to.x - from.x, to.y - from.y);
    const others = [...this.#pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
    if (others.length) this.#pinch(from, to, others[0]);
    else if (this.#way > CLICK) this.#drag(from, to);
    else return;
    this.#pointers.set(event.pointerId, to);
    this.moving();
    this.point();
  };

  #drag(from, to) {
    this.canvas.panBy((to.x - from.x) / this.canvas.width, (to.y - from.y) / this.canvas.height);
  }

  #pinch(from, to, other) {
    const before = Math.hypot(from.x - other.x, from.y - other.y);
    const after = Math.hypot(to.x - other.x, to.y - other.y);
    const middle = this.#share({ x: (to.x + other.x) / 2, y: (to.y + other.y) / 2 });
    this.canvas.panBy((to.x - from.x) / 2 / this.canvas.width, (to.y - from.y) / 2 / this.canvas.height);
    if (before > 1) this.canvas.zoomBy(after / before, middle, "now");
  }

  #up = (event) => {
    const { x, y } = this.#at(event);
    const known = this.#pointers.delete(event.pointerId);
    if (known && this.#way <= CLICK && !this.#pointers.size) this.pick(x, y, event.pointerType);
  };

  #cancel = (event) => {
    this.#pointers.delete(event.pointerId);
  };
}
