// The consumers of a group: their users, and the messages that each has.
import {element, shown, table} from './dom.js';
import {count, duration, moment} from './text.js';

const COLUMNS = [
  {name: 'Consumer', isNumber: true, cell: (member) => member.number},
  {name: 'User', cell: (member) => member.user_id ? shown(member.user_id) : '–'},
  {name: 'Since', cell: (member) => moment(member.since_ms)},
  {name: 'In flight', isNumber: true, cell: (member) => count(member.in_flight)},
  {name: 'Credit', isNumber: true, cell: (member) => count(member.credit_messages)},
  {name: 'Heard', isNumber: true, cell: (member) => member.heard_ms === undefined ? '–' : `${duration(member.heard_ms)} ago`},
];

export class Members {
  constructor() {
    this.title = element('summary');
    this.found = element('div');
    this.node = element('details', {open: true, hidden: true, class: 'members'}, this.title, this.found);
  }
  // `members`: the first ones; `all`: the number of connected consumers.
  show(members, all) {
    this.node.hidden = members.length === 0;
    const text = JSON.stringify([members, all]);
    if (this.node.hidden || text === this.last) return;
    this.last = text;
    const others = all - members.length;
    this.title.textContent = others > 0 ? `Consumers: ${count(members.length)} of ${count(all)}` : `Consumers: ${count(all)}`;
    this.found.replaceChildren(table(COLUMNS, members, '', 'Consumers'));
  }
}
