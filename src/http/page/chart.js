// Curves of messages in and out.
import {element, svg} from './dom.js';
import {count, rate} from './text.js';

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
    const incoming = history.fine.newest(60, 'in');
    const outgoing = history.fine.newest(60, 'out');
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

// The curves that a chart can show: two sides of a topic's samples, and the way to write their numbers.
export const CURVES = {
  rates: {title: 'Messages a second', sides: ['in', 'out'], names: ['in', 'out'], text: rate, unit: ' msg/s'},
  waiting: {title: 'Messages that wait', sides: ['pending', 'lag'], names: ['pending', 'lag'], text: count, unit: ''},
};

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
  // `curves`: one of CURVES; `span`: the time that the lists cover, as a text.
  show(curves, first, second, span) {
    const top = roundTop(most(first, second));
    this.in.setAttribute('d', line(first, 600, 120, top));
    this.out.setAttribute('d', line(second, 600, 120, top));
    this.top.textContent = curves.text(top) + curves.unit;
    this.begin.textContent = span;
    const now = (list) => curves.text(list[list.length - 1]);
    this.picture.setAttribute('aria-label', `${curves.title}: ${now(first)} ${curves.names[0]}, ${now(second)} ${curves.names[1]}; ` +
      `the chart's top is ${curves.text(top)}`);
  }
}
