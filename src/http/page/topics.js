// The first screen: the broker's figures and all topics. Only the rows in sight are in the document.
import {path, ask} from './api.js';
import {Sparkline} from './chart.js';
import {button, element, field, note, setShown, setText} from './dom.js';
import {form} from './dialog.js';
import {reasonsOf} from './reasons.js';
import {age, bytes, count, rate, short} from './text.js';

const OVERSCAN = 6;  // rows beyond the edges, so that a scroll shows no gap

// The columns. `value`: sorts; `show`: the text of a cell; `label`: its name in the cards of narrow screens.
const COLUMNS = [
  {id: 'topic', name: 'Topic', value: (row) => row.name},
  {id: 'in', name: 'In/s', show: (row) => rate(row.in)},
  {id: 'out', name: 'Out/s', show: (row) => rate(row.out)},
  {id: 'spark', name: 'Trend', isFixed: true},
  {id: 'ready', name: 'Ready', title: 'messages that groups can receive now', show: (row) => count(row.ready)},
  {id: 'flight', name: 'In flight', title: 'delivered, not acknowledged', show: (row) => count(row.flight)},
  {id: 'retry', name: 'Retry', title: 'failed messages that wait for the next attempt', show: (row) => count(row.retry)},
  {id: 'dead', name: 'Dead', title: 'parked, or on the way to a dead-letter topic', show: (row) => count(row.dead)},
  {id: 'delayed', name: 'Delayed', title: 'messages that are not due yet', show: (row) => count(row.delayed)},
  {id: 'lag', name: 'Lag', title: 'of the slowest group: messages that no consumer has, and the age of its oldest pending message',
    show: (row) => row.lag > 0 || row.age > 0 ? `${short(row.lag)} · ${age(row.age)}` : '0'},
  {id: 'consumers', name: 'Consumers', show: (row) => count(row.consumers)},
  {id: 'bytes', name: 'Stored', title: 'bytes of the log on the disk, or in memory for topics without files',
    show: (row) => bytes(row.bytes)},
  {id: 'why', name: 'Why is nothing moving?', value: (row) => row.level * 1000 + row.reasons.length},
];

// Returns the row of a topic's statistics.
function rowOf(stats, samples, at) {
  const history = samples.of(stats.topic);
  const sum = (name) => stats.groups.reduce((total, group) => total + group[name], 0);
  const most = (list) => Math.max(0, ...list);
  const reasons = reasonsOf(stats, history, at);
  return {
    name: stats.topic, history, reasons,
    level: reasons.length === 0 ? -1 : reasons[0].level,
    in: history.inRate, out: history.outRate,
    ready: sum('ready'), flight: sum('in_flight'), retry: sum('retrying'), dead: sum('parked') + sum('dead_waiting'),
    delayed: stats.delayed ? stats.delayed.messages : 0,
    lag: most([...stats.groups, ...stats.subscribers].map((each) => each.lag)),
    age: most(stats.groups.filter((group) => group.pending > 0).map((group) => group.oldest_ms)),
    consumers: stats.subscribers_count, bytes: stats.log_bytes,
    isInMemory: stats.topic_type === 'queue' || stats.topic_type === 'direct',
  };
}

function compare(column, direction) {
  const value = column.value || ((row) => row[column.id]);
  return (one, other) => {
    const a = value(one);
    const b = value(other);
    const order = typeof a === 'string' ? (a < b ? -1 : a > b ? 1 : 0) : (Number.isNaN(a) ? -1 : a) - (Number.isNaN(b) ? -1 : b);
    return order === 0 ? (one.name < other.name ? -1 : 1) : direction * order;
  };
}

// One row of the document. It shows one topic, as long as it is in sight.
class Row {
  constructor(name) {
    this.link = element('a', {href: '#/topic/' + encodeURIComponent(name)});
    setShown(this.link, name);
    this.spark = new Sparkline();
    this.cells = {};
    this.node = element('div', {class: 'row', role: 'row'}, COLUMNS.map((column) => {
      const cell = element('div', {class: 'cell ' + column.id, role: 'cell', 'data-label': column.name});
      if (column.id === 'topic') cell.append(this.link);
      if (column.id === 'spark') cell.append(this.spark.node);
      this.cells[column.id] = cell;
      return cell;
    }));
  }
  show(row, index) {
    this.node.setAttribute('aria-rowindex', index + 2);
    for (const column of COLUMNS) {
      if (column.show) setText(this.cells[column.id], column.show(row));
    }
    for (const id of ['ready', 'flight', 'retry', 'delayed', 'lag', 'in', 'out', 'consumers']) {
      this.cells[id].classList.toggle('zero', !(row[id] > 0));
    }
    this.cells.dead.classList.toggle('zero', row.dead === 0);
    this.cells.dead.classList.toggle('alarm', row.dead > 0);
    this.cells.bytes.title = row.isInMemory ? 'in memory' : 'on the disk';
    this.spark.show(row.history);
    const why = row.reasons.length === 0 ? '' : row.reasons[0].text + (row.reasons.length > 1 ? ` (+${row.reasons.length - 1})` : '');
    setText(this.cells.why, why);
    this.cells.why.className = `cell why level${row.level}`;
    this.cells.why.title = row.reasons.map((reason) => reason.text).join('\n');
  }
}

export class TopicsView {
  constructor() {
    this.rows = [];
    this.made = new Map();
    this.sort = {id: 'topic', direction: 1};
    this.search = element('input', {type: 'search', placeholder: 'Search topics', 'aria-label': 'Search topics', spellcheck: 'false',
      oninput: () => this.arrange(true)});
    this.only = element('input', {type: 'checkbox', onchange: () => this.arrange(true)});
    this.select = element('select', {'aria-label': 'Sort by', class: 'narrow', onchange: () => this.sortBy(this.select.value)},
      COLUMNS.filter((column) => !column.isFixed).map((column) => element('option', {value: column.id}, 'Sort: ' + column.name)));
    this.shown = element('span', {class: 'shown', role: 'status'});
    this.heads = new Map();
    this.head = element('div', {class: 'row head', role: 'row'}, COLUMNS.map((column) => this.headOf(column)));
    this.above = element('div', {class: 'space', 'aria-hidden': 'true'});
    this.below = element('div', {class: 'space', 'aria-hidden': 'true'});
    this.body = element('div', {class: 'rows', role: 'rowgroup', onkeydown: (event) => this.onKey(event)});
    this.empty = element('p', {class: 'empty', hidden: true});
    this.table = element('div', {class: 'topics', role: 'table', 'aria-label': 'Topics'},
      element('div', {class: 'heads', role: 'rowgroup'}, this.head), this.above, this.body, this.below);
    this.tiles = element('section', {class: 'tiles', 'aria-label': 'The broker'});
    this.tileOf = new Map();
    this.node = element('div', {}, element('h1', {class: 'hidden'}, 'Topics'), this.tiles,
      element('div', {class: 'toolbar'}, this.search, element('label', {class: 'check'}, this.only, 'only with a reason'),
        this.select, this.shown, button('New topic', () => this.create(), 'main')),
      this.table, this.empty);
    this.onScroll = () => this.draw();
    addEventListener('scroll', this.onScroll, {passive: true});
    addEventListener('resize', this.onScroll, {passive: true});
  }

  close() {
    removeEventListener('scroll', this.onScroll);
    removeEventListener('resize', this.onScroll);
  }

  focusSearch() {
    this.search.focus();
  }

  headOf(column) {
    const head = element('div', {class: 'cell ' + column.id, role: 'columnheader', title: column.title || null},
      column.isFixed ? column.name : button(column.name, () => this.sortBy(column.id)));
    this.heads.set(column.id, head);
    return head;
  }

  sortBy(id) {
    const isSame = this.sort.id === id;
    // Numbers begin with the largest: that is the topic that one looks for.
    this.sort = {id, direction: isSame ? -this.sort.direction : id === 'topic' ? 1 : -1};
    this.select.value = id;
    this.arrange(true);
  }

  update(state) {
    this.isLoaded = state.isLoaded;
    this.rows = state.topics.map((stats) => rowOf(stats, state.samples, state.at));
    this.isPartial = state.isPartial;
    this.samples = state.samples;
    this.showTiles(state);
    this.arrange(false);
  }

  // Filters and sorts. While a row has the focus, the order stays: nothing moves away under the keyboard.
  arrange(isAsked) {
    const wanted = this.search.value.trim().toLowerCase();
    const found = this.rows.filter((row) => row.name.toLowerCase().includes(wanted) && (!this.only.checked || row.level > 0));
    const column = COLUMNS.find((each) => each.id === this.sort.id);
    found.sort(compare(column, this.sort.direction));
    if (!isAsked && this.body.contains(document.activeElement)) {
      const before = new Map(this.visible.map((row, i) => [row.name, i]));
      const place = (row) => before.has(row.name) ? before.get(row.name) : before.size;
      found.sort((one, other) => place(one) - place(other));
    }
    this.visible = found;
    for (const [id, head] of this.heads) {
      const isSorted = id === this.sort.id;
      head.setAttribute('aria-sort', !isSorted ? 'none' : this.sort.direction > 0 ? 'ascending' : 'descending');
    }
    setText(this.shown, found.length === this.rows.length ? `${count(found.length)} topics` : `${count(found.length)} of ${count(this.rows.length)} topics`);
    if (this.isPartial) setText(this.shown, this.shown.textContent + ', and more that this page leaves out');
    this.table.setAttribute('aria-rowcount', found.length + 1);
    this.empty.hidden = found.length > 0 || !this.isLoaded;
    setText(this.empty, this.rows.length === 0 ? 'There are no topics yet, or you have no right on any.' : 'No topic fits the search.');
    this.draw();
  }

  // Puts the rows in sight into the document.
  draw() {
    if (!this.node.isConnected || !this.visible) return;
    const height = parseFloat(getComputedStyle(this.table).getPropertyValue('--row'));
    const top = this.above.getBoundingClientRect().top;
    const first = Math.max(0, Math.min(this.visible.length, Math.floor(-top / height) - OVERSCAN));
    const last = Math.min(this.visible.length, Math.ceil((innerHeight - top) / height) + OVERSCAN);
    const wanted = this.visible.slice(first, Math.max(first, last));
    const names = new Set(wanted.map((row) => row.name));
    this.samples.readAll([...names]);
    for (const [name, made] of this.made) {
      if (names.has(name)) continue;
      made.node.remove();
      this.made.delete(name);
    }
    let next = this.body.firstChild;
    wanted.forEach((row, i) => {
      if (!this.made.has(row.name)) this.made.set(row.name, new Row(row.name));
      const made = this.made.get(row.name);
      made.show(row, first + i);
      if (made.node === next) next = next.nextSibling;
      else this.body.insertBefore(made.node, next);
    });
    this.above.style.height = `${first * height}px`;
    this.below.style.height = `${(this.visible.length - first - wanted.length) * height}px`;
  }

  onKey(event) {
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12};
    if (!(event.key in steps) || event.altKey || event.ctrlKey || event.metaKey) return;
    const links = [...this.body.querySelectorAll('a')];
    const at = links.indexOf(document.activeElement);
    if (at < 0) return;
    event.preventDefault();
    const to = Math.max(0, Math.min(links.length - 1, at + steps[event.key]));
    links[to].focus({preventScroll: true});
    links[to].closest('.row').scrollIntoView({block: 'nearest'});
  }

  tile(id, name, text, level = '', most = null) {
    if (!this.tileOf.has(id)) {
      const value = element('strong');
      const limit = most === null ? null : element('small');
      const node = element('a', {class: 'tile', href: '#/broker'}, element('span', {}, name), value, limit);
      this.tileOf.set(id, {node, value, limit});
      this.tiles.append(node);
    }
    const {node, value, limit} = this.tileOf.get(id);
    setText(value, text);
    if (limit) setText(limit, `of ${most}`);
    node.className = 'tile ' + level;
  }

  showTiles(state) {
    const sum = (name) => this.rows.reduce((total, row) => total + (row[name] || 0), 0);
    this.tile('in', 'In/s', rate(sum('in')));
    this.tile('out', 'Out/s', rate(sum('out')));
    this.tile('ready', 'Ready', count(sum('ready')));
    this.tile('dead', 'Dead', count(sum('dead')), sum('dead') > 0 ? 'alarm' : '');
    this.tile('stored', 'Stored', bytes(sum('bytes')));
    const process = state.process;
    if (!state.broker || !process) return;
    const isTight = process.open_descriptors > 0.8 * process.descriptors_max;
    this.tile('connections', 'Connections', count(Object.values(state.connections || {}).reduce((total, each) => total + each, 0)));
    const isHeavy = process.resident_bytes > 0.8 * process.memory_max_bytes;
    this.tile('memory', 'Memory', bytes(process.resident_bytes), isHeavy ? 'alarm' : '', bytes(process.memory_max_bytes));
    const disk = state.disk;
    if (disk) {
      const isFull = disk.free_bytes < disk.free_bytes_min;
      this.tile('disk', 'Disk free', bytes(disk.free_bytes),
        isFull ? 'alarm' : disk.free_bytes < 2 * disk.free_bytes_min ? 'warn' : '', bytes(disk.size_bytes));
    }
    this.tile('files', 'Descriptors', short(process.open_descriptors), isTight ? 'alarm' : '', short(process.descriptors_max));
    const refusals = Object.values(state.broker.limits_reached).reduce((total, each) => total + each, 0);
    this.tile('limits', 'Refusals', count(refusals), refusals > 0 ? 'warn' : '');
  }

  create() {
    const name = element('input', {name: 'topic', required: true, maxlength: 128, pattern: '[A-Za-z0-9_][A-Za-z0-9._\\-]*',
      autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off'});
    const type = element('select', {name: 'type'},
      [['file', 'file: on the disk'], ['queue', 'queue: in memory'], ['queue_file', 'queue_file: in memory, then on the disk'],
        ['direct', 'direct: to connected consumers only']].map(([value, text]) => element('option', {value}, text)));
    form('New topic', [field('Name', name, 'letters, digits, dots, dashes and underscores'), field('Messages are stored', type)], 'Create', async () => {
      await ask('PUT', path('topics', name.value), {broker_type: type.value});
      note(`The topic '${name.value}' was created.`);
    });
  }
}
