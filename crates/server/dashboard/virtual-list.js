// A list of any length that draws only the rows on the screen.

import { Component, createRef, h } from "./preact.js";
import { Heights, anchorAt, isAtEnd, scrollTopOf, visible } from "./virtual.js";

/**
 * `items` with `keyOf(item)` and `row(item, index)`; `estimate` is the height of a row that was not measured. With
 * `follow`, the list stays at its end while it is there. `onTop` is called near the beginning. `show(key)` scrolls to a
 * row. What a person reads stays where it is when rows above it come or grow.
 */
export class VirtualList extends Component {
  root = createRef();
  window = createRef();
  heights = new Heights(this.props.estimate);
  keys = [];
  anchor = null;
  isAtEnd = this.props.follow === true;
  wanted = null;
  frame = null;
  state = { top: 0, height: 800 };

  componentDidMount() {
    // In the next frame: a change of sizes within the turn of the observer is an error of the page.
    this.observer = new ResizeObserver(() => {
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.resized());
    });
    this.observer.observe(this.root.current);
    this.observer.observe(this.window.current);
    this.settle();
  }

  componentDidUpdate() {
    this.settle();
  }

  componentWillUnmount() {
    this.observer.disconnect();
    cancelAnimationFrame(this.frame);
  }

  /** Scrolls to the row with a key, now or once it is there. */
  show(key) {
    this.wanted = key;
    this.settle();
  }

  resized() {
    const height = this.root.current?.clientHeight ?? 0;
    if (Math.abs(height - this.state.height) > 1) this.setState({ height });
    else this.settle();
  }

  /** Measures the rows that are drawn, and keeps the place of the person. */
  settle() {
    const root = this.root.current;
    if (root === null) return;
    const anchor = this.anchor ?? anchorAt(this.heights, this.keys, root.scrollTop);
    let changed = false;
    for (const row of this.window.current.children) {
      changed = this.heights.measure(Number(row.dataset.index), row.getBoundingClientRect().height) || changed;
    }
    const top = this.placeAfter(anchor);
    this.anchor = null;
    if (changed) this.forceUpdate(() => this.scrollTo(top));
    else this.scrollTo(top);
  }

  placeAfter(anchor) {
    if (this.wanted !== null) {
      const index = this.heights.indexOf(this.wanted);
      if (index >= 0) {
        this.wanted = null;
        this.isAtEnd = false;
        return this.isShown(index) ? null : this.heights.top(index);
      }
    }
    if (this.isAtEnd && this.props.follow) return this.heights.total;
    return scrollTopOf(this.heights, anchor);
  }

  isShown(index) {
    const { scrollTop, clientHeight } = this.root.current;
    return this.heights.top(index) >= scrollTop && this.heights.top(index + 1) <= scrollTop + clientHeight;
  }

  scrollTo(top) {
    const root = this.root.current;
    if (root !== null && top !== null && Math.abs(root.scrollTop - top) > 1) root.scrollTop = top;
  }

  scrolled = () => {
    // The browser reports a scroll one frame later, when the list may be gone.
    if (this.root.current === null) return;
    const { scrollTop: top, clientHeight: height, scrollHeight } = this.root.current;
    this.isAtEnd = this.props.follow === true && isAtEnd(top, height, scrollHeight);
    if (top < 600) this.props.onTop?.();
    this.setState({ top, height });
  };

  render({ items, keyOf, row, label, kind = "list" }, { top, height }) {
    const keys = items.map(keyOf);
    const isChanged = keys.length !== this.keys.length || keys[0] !== this.keys[0];
    if (isChanged && this.root.current) this.anchor = anchorAt(this.heights, this.keys, this.root.current.scrollTop, keys);
    this.heights.setKeys(keys);
    this.keys = keys;
    const { from, to, above, below } = visible(this.heights, top, height);
    const rows = [];
    for (let index = from; index < to; index += 1) {
      const place = { "data-index": index, "aria-posinset": index + 1, "aria-setsize": keys.length };
      rows.push(h("div", { key: keys[index], class: "virtual-row", role: "listitem", ...place }, row(items[index], index)));
    }
    return h("div", { class: `virtual ${kind}`, ref: this.root, onScroll: this.scrolled, tabIndex: 0, role: "region", "aria-label": label },
      h("div", { style: { height: `${above}px` } }),
      h("div", { ref: this.window, role: "list" }, rows),
      h("div", { style: { height: `${below}px` } }));
  }
}
