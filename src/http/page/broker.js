// The broker's own figures, for administrators: what it uses, and how often each limit has refused something.
import {readiness} from './api.js';
import {element, setText, shown, table} from './dom.js';
import {definitionsCard} from './definitions.js';
import {bytes, count, duration, moment} from './text.js';

const CHECKS_EVERY_MS = 10000;
const CHECKS = {append: 'Messages become durable', disk: 'The disk has space', topics: 'Topics and groups move', descriptors: 'Descriptors are free'};

// Whether the broker makes progress: the checks of /readyz, which the broker makes when it is asked.
class Progress {
  constructor() {
    this.found = element('div', {'aria-live': 'polite'});
    this.node = element('section', {class: 'card progress'}, element('h2', {}, 'Progress'), this.found);
    this.at = -Infinity;
  }
  async update(at) {
    if (at - this.at < CHECKS_EVERY_MS) return;
    this.at = at;
    let lines;
    try {
      const {checks} = await readiness();
      lines = Object.entries(checks).map(([id, state]) => [CHECKS[id] || id, state]);
    } catch (error) {
      lines = [['Answers', error.message]];
    }
    const text = JSON.stringify(lines);
    if (text === this.last) return;
    this.last = text;
    this.found.replaceChildren(element('ul', {class: 'why'}, lines.map(([name, state]) =>
      element('li', {class: state === 'ok' ? 'fine' : 'level2'}, name, state === 'ok' ? null : [': ', shown(state)]))));
  }
}

export class BrokerView {
  constructor() {
    this.values = element('dl', {class: 'values'});
    this.files = element('meter', {min: 0, max: 1, high: 0.8, value: 0, 'aria-label': 'file descriptors in use'});
    this.limits = element('div');
    this.progress = new Progress();
    this.empty = element('p', {class: 'empty'}, 'Only administrators see the figures of the broker.');
    this.content = element('div', {hidden: true},
      element('section', {class: 'card'}, element('h2', {}, 'Now'), this.values,
        element('p', {class: 'help'}, 'Descriptors in use ', this.files)),
      this.progress.node,
      definitionsCard(),
      element('section', {class: 'card'}, element('h2', {}, 'Refused by limits since the start'), this.limits));
    this.node = element('div', {class: 'view'}, element('h1', {}, 'Broker'), this.empty, this.content);
    this.last = '';
  }
  close() {}
  update(state) {
    const {broker, process, disk} = state;
    this.empty.hidden = Boolean(broker);
    this.content.hidden = !broker;
    if (!broker) return;
    this.progress.update(state.at);
    const cpu = state.cpuShare;
    const facts = [['Version', broker.version], ['Started', moment(broker.since_ms)], ['Runs for', duration(broker.uptime_ms)],
      ['Process', broker.pid], ['Data directory', broker.data_dir],
      ['Encrypted', broker.encrypted ? 'yes' : broker.insecure ? 'no, and other machines can reach it' : 'no'],
      ['Topics', count(broker.topics)], ['Bytes of logs', bytes(broker.log_bytes)],
      ['Received since the start', `${count(broker.messages_received)} messages, ${bytes(broker.total_bytes_written)}`],
      ['Delivered since the start', `${count(broker.deliveries)} messages, ${bytes(broker.total_bytes_read)}`],
      ['Wrong logins', count(broker.auth_failures)], ['Refused connections', count(broker.refused_connections)],
      ['Throttled requests', count(broker.throttled_requests)]];
    for (const [kind, number] of Object.entries(state.connections || {})) facts.push([`Connections: ${kind}`, count(number)]);
    if (process) {
      facts.push(['Memory of the process', `${bytes(process.resident_bytes)} of ${bytes(process.memory_max_bytes)}`],
        ['Processor', Number.isFinite(cpu) ? `${(100 * cpu).toFixed(1)} % of a core` : '–'],
        ['Descriptors', `${count(process.open_descriptors)} of ${count(process.descriptors_max)}`]);
      this.files.value = process.open_descriptors / process.descriptors_max;
    }
    if (disk) {
      facts.push(['Free on the disk', `${bytes(disk.free_bytes)} of ${bytes(disk.size_bytes)}`],
        ['Appends wait below', `${bytes(disk.free_bytes_min)} free`]);
    }
    this.showFacts(facts);
    const reached = Object.entries(broker.limits_reached).filter(([, times]) => times > 0).sort((one, other) => other[1] - one[1]);
    const text = JSON.stringify(reached);
    if (text === this.last) return;
    this.last = text;
    this.limits.replaceChildren(table([
      {name: 'Limit', cell: ([name]) => element('code', {}, name)},
      {name: 'Refusals', isNumber: true, cell: ([, times]) => count(times)},
    ], reached, `None of ${Object.keys(broker.limits_reached).length} limits has refused anything.`, 'Limits'));
  }
  showFacts(facts) {
    if (this.values.childElementCount !== facts.length) {
      this.values.replaceChildren(...facts.map(([name]) => element('div', {}, element('dt', {}, name), element('dd'))));
    }
    facts.forEach(([, value], i) => setText(this.values.children[i].lastElementChild, String(value)));
  }
}
