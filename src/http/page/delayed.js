// Delayed messages and recurring schedules of a topic.
import {ask, get, path, post} from './api.js';
import {confirmTyped} from './dialog.js';
import {attempt, button, element, note, shown, table} from './dom.js';
import {textOf} from './messages.js';
import {bytes, count, day, duration, moment} from './text.js';

const PAGE = 100;
const PREVIEW_BYTES = 160;  // of a payload

export class DelayedTab {
  constructor(topic, refreshNow) {
    this.topic = topic;
    this.refreshNow = refreshNow;
    this.summary = element('p', {class: 'help'});
    this.found = element('div', {'aria-live': 'polite'});
    this.schedules = element('div');
    this.node = element('div', {}, element('section', {}, element('h2', {}, 'Delayed messages'), this.summary,
      element('div', {class: 'inline'}, button('Refresh', () => this.list()), button('Cancel all…', () => this.cancelAll(), 'danger')), this.found),
    element('section', {}, element('h2', {}, 'Recurring schedules'), this.schedules));
  }

  update(stats) {
    const delayed = stats.delayed;
    const text = !delayed ? 'The topic has never had delayed messages.' :
      `${count(delayed.messages)} wait, ${bytes(delayed.bytes)}` + (delayed.messages > 0 ? `; the first is due ${moment(delayed.next_due_us / 1000)}` : '') + '.';
    if (this.summary.textContent !== text) this.summary.textContent = text;
    const waiting = delayed ? `${delayed.messages} ${delayed.next_due_us}` : '';
    if (this.waiting === undefined) this.listSchedules();
    // The first page follows the statistics; a list that is in use stays as it is.
    if (this.waiting === waiting || this.isFurther || this.found.contains(document.activeElement)) return;
    this.waiting = waiting;
    this.list();
  }

  async list(after = '') {
    this.isFurther = after !== '';
    await attempt(async () => {
      const where = `${path('topics', this.topic, 'delayed')}?limit=${PAGE}${after}`;
      let reply;
      try {
        reply = await get(`${where}&payload_bytes=${PREVIEW_BYTES}`);
      } catch (error) {
        if (error.status !== 403) throw error;
        reply = await get(where);  // payloads need the right to consume
      }
      const act = (action, row, words) => attempt(async () => {
        const done = await ask('POST', path('topics', this.topic, 'delayed', action), {numbers: [row.number]});
        note(done.messages === 1 ? words : 'It is too late for this message.');
        this.refreshNow();
        await this.list();
      });
      this.found.replaceChildren(table([
        {name: 'Due', cell: (row) => moment(row.due_us / 1000)},
        {name: 'In', cell: (row) => row.state === 'moving' ? 'moving' : row.due_us / 1000 > Date.now() ? duration(row.due_us / 1000 - Date.now()) : 'now'},
        {name: 'Key', cell: (row) => element('code', {}, shown(row.key || '–'))},
        {name: 'Id', cell: (row) => shown(row.id || '–')},
        {name: 'Payload', cell: (row) => element('code', {class: 'cut'}, textOf(row, 'payload') || '–')},
        {name: 'Bytes', isNumber: true, cell: (row) => count(row.bytes)},
        {name: 'Actions', cell: (row) => [button('Deliver now', () => act('hurry', row, 'The message is due now.')),
          button('Cancel', () => act('cancel', row, 'The message was cancelled.'), 'danger')]},
      ], reply.messages, 'No delayed messages wait.', 'Delayed messages', (row) => day(row.due_us / 1000)));
      if ('continue_after_due_us' in reply) {
        this.found.append(button('Next page', () => this.list(`&after_due_us=${reply.continue_after_due_us}&after_number=${reply.continue_after_number}`)));
      }
    });
  }

  async cancelAll() {
    await attempt(async () => {
      const where = path('topics', this.topic, 'delayed', 'cancel');
      const {messages} = await ask('POST', where + '?preview=true', {});
      if (messages === 0) {
        note('There is nothing to cancel.');
        return;
      }
      confirmTyped('Cancel all delayed messages', [`${count(messages)} delayed messages of `, element('code', {}, shown(this.topic)), ' are removed for good.'],
        this.topic, `Cancel ${count(messages)}`, async () => {
          const reply = await ask('POST', where, {});
          note(`${count(reply.messages)} messages were cancelled.`);
          this.refreshNow();
          await this.list();
        });
    });
  }

  async listSchedules() {
    await attempt(async () => {
      const {schedules} = await get(path('topics', this.topic, 'schedules') + '?limit=1000');
      this.schedules.replaceChildren(table([
        {name: 'Name', cell: (row) => shown(row.name)},
        {name: 'Rule', cell: (row) => element('code', {}, shown(row.cron))},
        {name: 'Zone', cell: (row) => shown(row.zone)},
        {name: 'Next', cell: (row) => row.paused ? 'paused' : moment(row.next_ms[0])},
        {name: 'Published', isNumber: true, cell: (row) => count(row.fired)},
        {name: 'Waits', cell: (row) => shown(row.waiting_by || '–')},
        {name: 'Actions', cell: (row) => button(row.paused ? 'Resume' : 'Pause', () => attempt(async () => {
          await post(path('topics', this.topic, 'schedules', row.name, row.paused ? 'resume' : 'pause'));
          await this.listSchedules();
        }))},
      ], schedules, 'There are no schedules.', 'Recurring schedules'));
    });
  }
}
