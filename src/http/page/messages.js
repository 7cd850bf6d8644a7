// Messages of a topic: publish one, and browse by offset, time and key, which changes nothing.
import {ask, get, path} from './api.js';
import {attempt, button, element, field, note, shown} from './dom.js';
import {count, moment} from './text.js';

const SHOWN_BYTES = 16384;  // of a payload
const SHORT_BYTES = 256;    // of a key, a header, or a payload in a row of a table

// Returns the bytes of base64.
function decoded(text) {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

// Returns bytes as lines of hexadecimal numbers and characters.
function dump(data) {
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const part = [...data.slice(at, at + 16)];
    const text = part.map((byte) => byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.').join('');
    lines.push(`${at.toString(16).padStart(6, '0')}  ${hexadecimal(part).padEnd(47)}  ${text}`);
  }
  return lines.join('\n');
}

// Returns bytes as text; null if they are not UTF-8.
function utf8(data) {
  try {
    return new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(data);
  } catch (error) {
    return null;
  }
}

// Returns a member of a message as nodes: `name`, or `name`_base64; null if it has neither. Every invisible character is
// shown. Bytes that are no text are hexadecimal: in one line, or with `lines` as a table.
export function textOf(message, name, lines = false) {
  if (!(name in message) && !(name + '_base64' in message)) return null;
  const data = name in message ? null : decoded(message[name + '_base64']);
  const text = data === null ? message[name] : utf8(data);
  const size = lines ? SHOWN_BYTES : SHORT_BYTES;
  if (text !== null) {
    return [shown(text.slice(0, size), lines), text.length > size ? mark(`and ${text.length - size} more characters`) : null];
  }
  const part = data.slice(0, size);
  return [mark(`${data.length} bytes, not text`), lines ? '\n' + dump(part) : ' ' + hexadecimal([...part])];
}

const mark = (text) => element('span', {class: 'mark'}, text);
const hexadecimal = (numbers) => numbers.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');

// Returns a message with its key, headers and payload.
export function messageCard(message) {
  const headers = message.headers || [];
  return element('article', {class: 'card message'},
    element('div', {class: 'facts'}, element('strong', {}, `offset ${message.offset}`),
      message.stored_us ? element('span', {}, `stored ${moment(message.stored_us / 1000)}`) : null,
      message.time_us ? element('span', {}, `happened ${moment(message.time_us / 1000)}`) : null,
      message.expired ? element('span', {}, 'expired') : null,
      message.id === undefined ? null : element('span', {}, 'id ', element('code', {}, shown(message.id)))),
    textOf(message, 'key') === null ? null : element('div', {class: 'key'}, 'key ', element('code', {}, textOf(message, 'key'))),
    headers.length === 0 ? null : element('dl', {class: 'headers'}, headers.map((header) =>
      element('div', {}, element('dt', {}, textOf(header, 'name')), element('dd', {}, textOf(header, 'value'))))),
    element('pre', {class: 'payload'}, textOf(message, 'payload', true)));
}

export class MessagesTab {
  constructor(topic, refreshNow) {
    this.topic = topic;
    this.refreshNow = refreshNow;
    this.from = element('input', {type: 'number', min: 0, step: 1, value: 0, name: 'from', required: true});
    this.since = element('input', {type: 'datetime-local', step: 1, name: 'since'});
    this.key = element('input', {name: 'search-key', autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off'});
    this.max = element('select', {name: 'max', 'aria-label': 'Number of messages'}, [10, 50, 100].map((each) => element('option', {value: each}, each)));
    this.found = element('div', {class: 'found', 'aria-live': 'polite'});
    this.range = element('p', {class: 'help'});
    this.node = element('div', {class: 'columns'},
      element('section', {class: 'card'}, element('h2', {}, 'Publish'), this.publishForm()),
      element('section', {}, element('h2', {}, 'Browse'), element('form', {class: 'inline', onsubmit: (event) => {
        event.preventDefault();
        this.browse();
      }}, field('From offset', this.from), field('or stored since', this.since), field('With the key', this.key), field('Messages', this.max), element('button', {type: 'submit', class: 'main'}, 'Show'),
      button('Newest', () => {
        this.since.value = '';
        this.key.value = '';
        this.from.value = Math.max(this.first || 0, (this.next || 0) - Number(this.max.value));
        this.browse();
      })), this.range, this.found));
  }

  update(stats) {
    if (this.next === undefined) this.from.value = stats.first_offset;
    this.first = stats.first_offset;
    this.next = stats.next_offset;
    const text = this.first === this.next ? 'The topic has no stored messages.' : `The topic has the offsets ${this.first} to ${this.next - 1}. Browsing changes nothing.`;
    if (this.range.textContent !== text) this.range.textContent = text;
  }

  publishForm() {
    const key = element('input', {name: 'key', autocomplete: 'off', spellcheck: 'false'});
    const headers = element('textarea', {name: 'headers', rows: 2, spellcheck: 'false', placeholder: 'name: value'});
    const delay = element('input', {name: 'delay', type: 'number', min: 1, step: 1});
    const payload = element('textarea', {name: 'payload', rows: 6, spellcheck: 'false'});
    return element('form', {onsubmit: (event) => {
      event.preventDefault();
      attempt(async () => {
        const message = {payload: payload.value};
        if (key.value !== '') message.key = key.value;
        if (delay.value !== '') message.delay_ms = Number(delay.value);
        const lines = headers.value.split('\n').filter((line) => line.trim() !== '');
        if (lines.length > 0) message.headers = lines.map(headerOf);
        const answer = await ask('POST', path('topics', this.topic, 'messages'), JSON.stringify(message), 'application/x-ndjson');
        note(delay.value === '' ? `The message has the offset ${answer.first_offset}.` : 'The message is delivered later.');
        this.refreshNow();
      });
    }}, field('Key', key), field('Headers, one a line', headers), field('Payload', payload),
    field('Deliver after', delay, 'milliseconds; empty: at once'), element('button', {type: 'submit', class: 'main'}, 'Publish'));
  }

  // Shows messages from the chosen place on. `next`: goes on from this offset.
  async browse(next = null) {
    await attempt(async () => {
      const query = new URLSearchParams({max: this.max.value});
      if (next !== null) query.set('from', next);
      else if (this.since.value !== '') query.set('time_us', Math.max(0, new Date(this.since.value).getTime() * 1000));
      else query.set('from', Number(this.from.value));
      const key = this.key.value;
      if (key !== '') query.set('key', key);
      const answer = await get(`${path('topics', this.topic, 'browse')}?${query}`);
      this.showFound(answer, key);
    });
  }

  showFound({messages, next, lost, scanned}, key) {
    this.found.replaceChildren(...messages.map(messageCard));
    const facts = [`${messages.length} messages`];
    if (scanned !== undefined) facts.push(`of ${count(scanned)} that were read`);
    if (lost > 0) facts.push(`${count(lost)} are not stored any more`);
    const isMore = next < this.next;
    if (messages.length === 0 && !isMore) {
      this.found.append(element('p', {class: 'empty'}, key === '' ? 'There are no messages from here on.' : 'No further message has this key.'));
      return;
    }
    this.found.prepend(element('p', {class: 'help'}, facts.join(', ')));
    if (isMore) this.found.append(button(key === '' ? 'Next messages' : `Go on at offset ${next}`, () => this.browse(next)));
  }
}

function headerOf(line) {
  const colon = line.indexOf(':');
  if (colon < 1) throw new Error(`'${line}' is no header: write name: value`);
  return {name: line.slice(0, colon).trim(), value: line.slice(colon + 1).trim()};
}
