// A list with any number of rows. Only the visible rows and a few rows near them are in the page.

import { Virtualizer, elementScroll, observeElementOffset, observeElementRect } from "@tanstack/virtual-core";
import { html } from "lit";
import { repeat } from "lit/directives/repeat.js";

/** A reactive controller. `scroller()` returns the element that scrolls, once it is in the page. */
export class Rows {
  #host;
  #settings;
  #virtualizer;
  #unmount;
  #all = false;
  #measured = new WeakSet();

  constructor(host, { count, estimate, scroller, overscan = 4, role = "none" }) {
    this.#host = host;
    this.#settings = { count, estimate, scroller, overscan };
    this.role = role;
    host.addController(this);
  }

  #options() {
    const { count, estimate, scroller, overscan } = this.#settings;
    return {
      count: count(),
      estimateSize: estimate,
      getScrollElement: scroller,
      overscan,
      observeElementRect,
      observeElementOffset,
      scrollToFn: elementScroll,
      initialRect: { width: 600, height: 400 },
      onChange: () => this.#host.requestUpdate(),
    };
  }

  hostConnected() {
    this.#measured = new WeakSet();
    this.#virtualizer = new Virtualizer(this.#options());
    this.#unmount = this.#virtualizer._didMount();
    addEventListener("beforeprint", this.#print);
    addEventListener("afterprint", this.#printed);
    this.#host.requestUpdate(); // the rows' heights may have changed while they weren't in the page
  }

  hostUpdate() {
    this.#virtualizer.setOptions(this.#options());
  }

  hostUpdated() {
    this.#virtualizer._willUpdate();
    this.#virtualizer.measureElement(null); // forgets rows that have left the page
    const rows = this.#settings.scroller()?.querySelectorAll(":scope > .rows > .row") ?? [];
    for (const row of rows) {
      if (this.#measured.has(row)) continue;
      this.#measured.add(row);
      this.#virtualizer.measureElement(row);
    }
  }

  hostDisconnected() {
    this.#unmount?.();
    removeEventListener("beforeprint", this.#print);
    removeEventListener("afterprint", this.#printed);
  }

  // A printed page doesn't scroll, so draw all rows, unless there are too many for a browser.
  #print = () => this.#printing(true);
  #printed = () => this.#printing(false);
  #printing(on) {
    this.#all = on && this.#settings.count() <= 2000;
    this.#host.requestUpdate();
    this.#host.performUpdate?.();
  }

  /** Discards all measured row heights. */
  forget() {
    this.#measured = new WeakSet();
    this.#virtualizer?.measure();
  }

  scrollTo(row, align = "center") {
    this.#virtualizer.scrollToIndex(row, { align });
  }

  /** Whether the row is in the page. */
  has(row) {
    return this.#all || this.#virtualizer.getVirtualItems().some((item) => item.index === row);
  }

  render(row) {
    if (this.#all) {
      const rows = Array.from({ length: this.#settings.count() }, (_, i) => i);
      return rows.map((i) => html`<div class="row static" role=${this.role}>${row(i)}</div>`);
    }
    const items = this.#virtualizer.getVirtualItems();
    return html`<div class="rows" role="none" .style=${`height: ${this.#virtualizer.getTotalSize()}px`}
      >${repeat(
        items,
        (item) => item.key,
        (item) =>
          html`<div
            class="row"
            role=${this.role}
            data-index=${item.index}
            .style=${`transform: translateY(${item.start}px)`}
            >${row(item.index)}</div
          >`,
      )}
    </div>`;
  }
}
