// Curves of messages in and out.
import {element, svg} from './dom.js';
import {rate} from './text.js';

// Returns the commands of a path through the values; a gap where a value is missing.
function line(values, width, height, most) {
  const step = width / Math.max(1, values.length - 1);
  let commands = '';
  let isDown = false;
  values.forEach((value, i) => {
    if (Number.isNaN(value)) {
      isDown = false;
      return;
    }
    commands += `${isDown ? 'L' : 'M'}${(i * step).toFixed(1)} ${(1 + height - (value / most) * height).toFixed(1)}`;
    isDown = true;
  });
  return commands;
}

function most(...lists) {
  return Math.max(1e-9, ...lists.map((list) => Math.max(0, ...list.filter((value) => !Number.isNaN(value)))));
}

// A small curve of a row. It is decoration: the numbers are beside it.
export class Sparkline {
  constructor() {
    this.in = svg('path', {class: 'in'});
    this.out = svg('path', {class: 'out'});
    this.node = svg('svg', {class: 'sparkline', viewBox: '0 0 96 24', preserveAspectRatio: 'none', 'aria-hidden': 'true'}, this.in, this.out);
  }
  show(history) {
    const incoming = history.fine.newest(60, 0);
    const outgoing = history.fine.newest(60, 1);
    const top = most(incoming, outgoing);
    this.in.setAttribute('d', line(incoming, 96, 22, top));
    this.out.setAttribute('d', line(outgoing, 96, 22, top));
  }
}

// Returns a round number that is at least `value`: the top of a chart.
function roundTop(value) {
  const unit = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 5, 10].map((step) => step * unit).find((step) => step >= value) || 10 * unit;
}

// The chart of a topic, with its scale.
export class Chart {
  constructor() {
    this.in = svg('path', {class: 'in'});
    this.out = svg('path', {class: 'out'});
    this.top = element('span', {class: 'scale'});
    this.begin = element('span');
    const grid = [1, 61, 121].map((y) => svg('path', {class: 'grid', d: `M0 ${y}H600`}));
    this.picture = svg('svg', {viewBox: '0 0 600 122', preserveAspectRatio: 'none', role: 'img'}, grid, this.in, this.out);
    this.node = element('figure', {class: 'chart'}, this.top, this.picture,
      element('div', {class: 'axis'}, this.begin, element('span', {}, 'now')));
  }
  // `values`: two lists, oldest first; `span`: the time that they cover, as a text.
  show(incoming, outgoing, span) {
    const top = roundTop(most(incoming, outgoing));
    this.in.setAttribute('d', line(incoming, 600, 120, top));
    this.out.setAttribute('d', line(outgoing, 600, 120, top));
    this.top.textContent = `${rate(top)} msg/s`;
    this.begin.textContent = span;
    const now = (list) => rate(list[list.length - 1]);
    this.picture.setAttribute('aria-label', `Messages a second: ${now(incoming)} in, ${now(outgoing)} out; the chart's top is ${rate(top)}`);
  }
}
