// Dead messages of a group, or the letters in a dead-letter topic: list, retry and purge.
import {ask, get, path} from './api.js';
import {confirmTyped} from './dialog.js';
import {attempt, button, element, field, note, shown, table} from './dom.js';
import {messageCard} from './messages.js';
import {count, moment} from './text.js';

const PAGE = 100;
const LETTERS = '';  // the choice that means the letters in the topic itself; no group has this name

const OUTCOMES = [['given_back', 'given back'], ['published', 'published anew'], ['group_gone', 'without a group'],
  ['topic_gone', 'without a topic'], ['not_allowed', 'not allowed'], ['failed', 'failed'], ['unreadable', 'unreadable']];

export class DeadTab {
  constructor(topic, refreshNow) {
    this.topic = topic;
    this.refreshNow = refreshNow;
    this.chosen = new Set();
    this.group = element('select', {name: 'group', onchange: () => this.list()});
    this.found = element('div', {'aria-live': 'polite'});
    this.retry = button('Retry all', () => this.retryThem(), 'main');
    this.purge = button('Purge all…', () => this.purgeThem(), 'danger');
    this.node = element('section', {}, element('h2', {}, 'Dead letters'),
      element('div', {class: 'inline'}, field('Of', this.group), button('Refresh', () => this.list()), this.retry, this.purge), this.found);
  }

  update(stats) {
    const names = [...stats.groups.filter((group) => group.group !== '').map((group) => group.group), LETTERS];
    const text = JSON.stringify(names);
    if (text === this.last) return;
    const isFirst = this.last === undefined;
    this.last = text;
    const fromUrl = isFirst ? decodeURIComponent(location.hash.split('/')[4] || '') : null;
    const before = this.group.value;
    this.group.replaceChildren(...names.map((name) => element('option', {value: name},
      name === LETTERS ? 'letters in this topic' : ['group ', ...shown(name).map((piece) => piece.textContent || piece)])));
    const withDead = stats.groups.find((group) => group.group !== '' && group.parked + group.dead_waiting > 0);
    this.group.value = isFirst ? fromUrl || (withDead ? withDead.group : names[0]) : before;
    if (this.group.selectedIndex < 0) this.group.selectedIndex = 0;
    if (isFirst) this.list();
  }

  where(...parts) {
    const group = this.group.value;
    return group === LETTERS ? path('topics', this.topic, 'dead', ...parts) : path('topics', this.topic, 'groups', group, 'dead', ...parts);
  }

  async list(after = null) {
    await attempt(async () => {
      const reply = await get(`${this.where()}?limit=${PAGE}${after === null ? '' : '&after_offset=' + after}`);
      this.chosen.clear();
      this.showChosen();
      const letters = this.group.value === LETTERS;
      const columns = [
        {name: 'Choose', cell: (row) => element('input', {type: 'checkbox', 'aria-label': `offset ${row.offset}`,
          onchange: (event) => {
            if (event.target.checked) this.chosen.add(row.offset);
            else this.chosen.delete(row.offset);
            this.showChosen();
          }})},
        {name: 'Offset', isNumber: true, cell: (row) => row.offset},
        {name: 'State', cell: (row) => row.state},
        {name: 'Cause', cell: (row) => row.cause},
        {name: 'Attempts', isNumber: true, cell: (row) => row.attempts},
        {name: 'Died', cell: (row) => moment(row.last_failure_ms)},
        {name: 'Reason', cell: (row) => shown(row.reason || '–')},
        {name: 'Message', cell: (row) => button('Show', (event) => this.show(row.offset, event.target))},
      ];
      if (letters) columns.push({name: 'From', cell: (row) => [shown(row.source_topic || ''), ' / ', shown(row.source_group || ''), ` @ ${row.source_offset}`]});
      this.found.replaceChildren(table(columns, reply.messages, 'There are no dead messages.', 'Dead messages'));
      if ('continue_after' in reply) this.found.append(button('Next page', () => this.list(reply.continue_after)));
    });
  }

  // Shows the message of a row below it, or hides it.
  async show(offset, pressed) {
    const row = pressed.closest('tr');
    const isOpen = pressed.getAttribute('aria-expanded') === 'true';
    if (isOpen) row.nextElementSibling.remove();
    pressed.setAttribute('aria-expanded', String(!isOpen));
    pressed.textContent = isOpen ? 'Show' : 'Hide';
    if (isOpen) return;
    const cell = element('td', {colspan: row.childElementCount});
    row.after(element('tr', {class: 'opened'}, cell));
    const isRead = await attempt(async () => {
      const {messages} = await get(`${path('topics', this.topic, 'browse')}?from=${offset}&max=1`);
      const isStored = messages.length > 0 && messages[0].offset === offset;
      cell.append(isStored ? messageCard(messages[0]) : element('p', {class: 'empty'}, 'The log of the topic does not have this message any more.'));
    });
    if (!isRead && cell.isConnected) this.show(offset, pressed);
  }

  showChosen() {
    const number = this.chosen.size;
    this.retry.textContent = number > 0 ? `Retry ${number} chosen` : 'Retry all';
    this.purge.textContent = number > 0 ? `Purge ${number} chosen…` : 'Purge all…';
  }

  selection() {
    return this.chosen.size > 0 ? {offsets: [...this.chosen]} : {};
  }

  async retryThem() {
    await attempt(async () => {
      const reply = await ask('POST', this.where('retry'), this.selection());
      const more = OUTCOMES.filter(([name]) => reply[name] > 0).map(([name, words]) => `${reply[name]} ${words}`);
      note(`${count(reply.messages)} messages are retried.${more.length > 0 ? ' ' + more.join(', ') + '.' : ''}`);
      this.refreshNow();
      await this.list();
    });
  }

  async purgeThem() {
    await attempt(async () => {
      const selection = this.selection();
      const where = this.where('purge');
      const {messages} = await ask('POST', where + '?preview=true', selection);
      if (messages === 0) {
        note('There is nothing to purge.');
        return;
      }
      const isLetters = this.group.value === LETTERS;
      const name = isLetters ? this.topic : this.group.value;
      confirmTyped('Purge dead messages', [`${count(messages)} dead messages of `, element('code', {}, shown(name)), ' are given up for good.'],
        name, `Purge ${count(messages)}`, async () => {
          const reply = await ask('POST', where, selection);
          note(`${count(reply.messages)} dead messages were purged.`);
          this.refreshNow();
          await this.list();
        });
    });
  }
}
