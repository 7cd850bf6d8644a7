// One topic: figures, chart, groups, and the tabs for its messages, dead letters, delayed messages and settings.
import {ask, get, path, post} from './api.js';
import {CURVES, Chart} from './chart.js';
import {DeadTab} from './dead.js';
import {DelayedTab} from './delayed.js';
import {confirmTyped} from './dialog.js';
import {attempt, button, element, field, note, setShown, setText, shown} from './dom.js';
import {Members} from './members.js';
import {MessagesTab} from './messages.js';
import {reasonsOf, reasonsOfGroup} from './reasons.js';
import {Rights} from './rights.js';
import {COARSE_MAX, FINE_MAX} from './samples.js';
import {bytes, count, duration, moment, plain, rate} from './text.js';

const MEMBERS_MAX = 200;         // consumers of all groups of the topic that the view lists
const MEMBERS_EVERY_MS = 2000;

const TABS = [['overview', 'Overview'], ['messages', 'Messages'], ['dead', 'Dead letters'], ['delayed', 'Delayed'], ['settings', 'Settings']];

// The row of a group. It stays while the group is there, so that its buttons keep the focus.
const GROUP_COLUMNS = [
  ['Ready', (group) => count(group.ready)], ['In flight', (group) => count(group.in_flight)],
  ['Retry', (group) => count(group.retrying)], ['Parked', (group) => count(group.parked)],
  ['To dead letters', (group) => count(group.dead_waiting)], ['Lag', (group) => count(group.lag)],
  ['Oldest', (group) => group.pending > 0 ? duration(group.oldest_ms) : '–'],
  ['Consumers', (group) => count(group.consumers)], ['Free', (group) => count(group.free_consumers)],
  ['Acknowledged', (group) => count(group.acknowledged)], ['Failed', (group) => count(group.failed + group.timed_out + group.lost_with_session)],
  ['Dead', (group) => count(group.dead)], ['Expired', (group) => count(group.expired)], ['Lost', (group) => count(group.lost)],
];

class GroupCard {
  constructor(topic, group, refreshNow) {
    this.name = group.group;
    const where = (action) => path('topics', topic, 'groups', this.name, action);
    const run = (action) => attempt(async () => {
      await post(where(action));
      refreshNow();
    });
    this.values = GROUP_COLUMNS.map(() => element('dd'));
    this.why = element('ul', {class: 'why'});
    this.members = new Members();
    this.pause = button('Pause', () => run(this.isPaused ? 'resume' : 'pause'));
    const actions = group.group === '' ? [] : [this.pause, button('Purge…', () => confirmTyped(`Purge the group`,
      ['The group ', element('code', {}, shown(this.name)), ' of ', element('code', {}, shown(topic)),
        ' skips all messages that it has not processed. Other groups keep them.'],
      this.name, 'Purge the group', async () => {
        const {messages} = await post(where('purge'));
        note(`${count(messages)} messages were purged.`);
        refreshNow();
      }), 'danger'),
    element('a', {class: 'button', href: `#/topic/${encodeURIComponent(topic)}/dead/${encodeURIComponent(this.name)}`}, 'Dead letters')];
    this.node = element('article', {class: 'card group'},
      element('h3', {}, group.group === '' ? 'a consumer without a group' : shown(group.group), ' ',
        group.mode === 'own' ? element('small', {}, 'cursor of one consumer') : null),
      this.why, element('dl', {class: 'values small'}, GROUP_COLUMNS.map(([name], i) =>
        element('div', {}, element('dt', {}, name), this.values[i]))), this.members.node,
      element('div', {class: 'buttons left'}, actions));
  }
  showMembers(group) {
    this.members.show(group.members || [], group.consumers);
  }
  show(group, stillMs) {
    this.isPaused = group.paused;
    setText(this.pause, group.paused ? 'Resume' : 'Pause');
    GROUP_COLUMNS.forEach(([, text], i) => setText(this.values[i], text(group)));
    showReasons(this.why, reasonsOfGroup(group, stillMs));
  }
}

function showReasons(list, reasons) {
  const text = JSON.stringify(reasons);
  if (list.dataset.reasons === text) return;
  list.dataset.reasons = text;
  list.replaceChildren(...reasons.map((reason) => element('li', {class: `level${reason.level}`}, reason.text)));
}

class OverviewTab {
  constructor(topic, refreshNow) {
    this.topic = topic;
    this.refreshNow = refreshNow;
    this.why = element('ul', {class: 'why big', 'aria-label': 'Why is nothing moving?'});
    this.values = element('dl', {class: 'values'});
    this.chart = new Chart();
    this.span = element('select', {'aria-label': 'Time of the chart', onchange: () => this.draw()},
      element('option', {value: 'fine'}, 'last five minutes'), element('option', {value: 'coarse'}, 'last hour'));
    this.curves = element('select', {'aria-label': 'Curves of the chart', onchange: () => this.draw()},
      Object.entries(CURVES).map(([id, {title}]) => element('option', {value: id}, title)));
    this.names = [element('span'), element('span')];
    this.membersAt = -Infinity;
    this.groups = element('div', {class: 'groups'});
    this.empty = element('p', {class: 'empty'}, 'No consumer group has joined this topic.');
    this.cards = new Map();
    this.node = element('div', {}, this.why, this.values,
      element('section', {class: 'card'}, element('div', {class: 'row-head'}, element('h2', {}, 'Course'),
        element('span', {class: 'legend'}, element('i', {class: 'in'}), this.names[0], element('i', {class: 'out'}), this.names[1]),
        element('span', {class: 'choices'}, this.curves, this.span)), this.chart.node),
      element('section', {}, element('h2', {}, 'Groups'), this.empty, this.groups));
  }
  update(stats, state) {
    const history = state.samples.of(this.topic);
    showReasons(this.why, reasonsOf(stats, history, state.at));
    const stored = stats.next_offset - stats.first_offset;
    const facts = [['In/s', rate(history.inRate)], ['Out/s', rate(history.outRate)], ['Stored messages', count(stored)],
      ['Oldest', stats.oldest_ms > 0 ? duration(stats.oldest_ms) : '–'], ['Stored bytes', bytes(stats.log_bytes)],
      ['Producers', count(stats.publishers_count)], ['Consumers', count(stats.subscribers_count)],
      ['Offsets', `${stats.first_offset} to ${stats.next_offset}`],
      ['Not yet on the disk', stats.topic_type === 'file' || stats.topic_type === 'queue_file' ? count(stats.next_offset - stats.durable_offset) : 'in memory only'],
      ['Delayed', stats.delayed ? count(stats.delayed.messages) : '0'], ['Rejected', count(stats.rejected)], ['Dropped', count(stats.dropped + stats.unclaimed_dropped)],
      ['Producers waited', duration(stats.blocked_ms)]];
    if (this.values.childElementCount === 0) {
      this.values.append(...facts.map(([name]) => element('div', {}, element('dt', {}, name), element('dd'))));
    }
    facts.forEach(([, value], i) => setText(this.values.children[i].lastElementChild, value));
    this.history = history;
    this.draw();
    this.showGroups(stats, history, state.at);
    if (state.samples.isMissing(this.topic)) state.samples.read(this.topic).then(() => this.draw());
    if (state.at - this.membersAt >= MEMBERS_EVERY_MS && stats.groups.some((group) => group.consumers > 0)) this.readMembers(state.at);
  }
  draw() {
    if (!this.history) return;
    const curves = CURVES[this.curves.value];
    const isFine = this.span.value === 'fine';
    const [ring, size] = isFine ? [this.history.fine, FINE_MAX] : [this.history.coarse, COARSE_MAX];
    const values = (side) => ring ? ring.newest(size, side) : Array(size).fill(NaN);
    curves.names.forEach((name, i) => setText(this.names[i], name));
    this.chart.show(curves, values(curves.sides[0]), values(curves.sides[1]), isFine ? 'five minutes ago' : 'an hour ago');
  }
  async readMembers(at) {
    this.membersAt = at;
    let stats;
    try {
      stats = await get(`${path('topics', this.topic)}?members_max=${MEMBERS_MAX}`);
    } catch (error) {
      return;  // the next refresh tries again
    }
    for (const group of stats.groups) {
      const card = this.cards.get(group.group);
      if (card) card.showMembers(group);
    }
  }
  showGroups(stats, history, at) {
    const names = new Set(stats.groups.map((group) => group.group));
    for (const [name, card] of this.cards) {
      if (names.has(name)) continue;
      card.node.remove();
      this.cards.delete(name);
    }
    for (const group of stats.groups) {
      if (!this.cards.has(group.group)) {
        const card = new GroupCard(this.topic, group, this.refreshNow);
        this.cards.set(group.group, card);
        this.groups.append(card.node);
      }
      this.cards.get(group.group).show(group, history.stillFor(group.group, at));
    }
    this.empty.hidden = stats.groups.length > 0;
  }
}

class SettingsTab {
  constructor(topic, refreshNow) {
    this.topic = topic;
    this.refreshNow = refreshNow;
    this.values = element('div');
    this.groups = element('div');
    this.rights = new Rights(topic);
    this.rights.list();
    this.ttl = element('input', {type: 'number', min: 0, max: 315619200000, step: 1, name: 'ttl', required: true});
    const save = element('form', {class: 'inline', onsubmit: (event) => {
      event.preventDefault();
      attempt(async () => {
        await ask('PATCH', path('topics', topic), {message_ttl_ms: Number(this.ttl.value)});
        note('The time to live was changed.');
        refreshNow();
      });
    }}, field('Time to live of all messages, in milliseconds (0: none)', this.ttl), element('button', {type: 'submit'}, 'Change'));
    this.node = element('div', {}, element('section', {class: 'card'}, element('h2', {}, 'Topic'), this.values, save),
      element('section', {class: 'card'}, element('h2', {}, 'Groups'), this.groups),
      element('section', {class: 'card'}, element('h2', {}, 'Rights'), this.rights.node),
      element('section', {class: 'card'}, element('h2', {}, 'Delete'),
        element('p', {class: 'help'}, 'Deletes the topic with all of its messages and groups.'),
        button('Delete topic…', () => confirmTyped('Delete the topic',
          ['All messages, groups and settings of ', element('code', {}, topic), ' are deleted.'], topic, 'Delete the topic', async () => {
            await ask('DELETE', path('topics', topic));
            note(`The topic '${topic}' was deleted.`);
            location.hash = '#/';
            refreshNow();
          }), 'danger')));
  }
  update(stats) {
    const text = JSON.stringify([stats.settings, stats.groups.map((group) => [group.group, group.settings])]);
    if (this.last === text) return;
    this.last = text;
    const list = (settings) => element('dl', {class: 'values settings'}, Object.entries(settings).map(([name, value]) =>
      element('div', {}, element('dt', {}, name), element('dd', {}, shown(typeof value === 'string' ? value || '–' : JSON.stringify(value))))));
    this.values.replaceChildren(list(stats.settings));
    this.ttl.value = stats.settings.message_ttl_ms || 0;
    this.groups.replaceChildren(...stats.groups.filter((group) => group.group !== '').map((group) =>
      element('div', {}, element('h3', {}, shown(group.group)), list(group.settings))));
    if (this.groups.childElementCount === 0) this.groups.append(element('p', {class: 'empty'}, 'There are no groups.'));
  }
}

export class TopicView {
  constructor(name, tab, refreshNow) {
    this.name = name;
    this.refreshNow = refreshNow;
    this.kind = element('span', {class: 'kind'});
    this.pause = button('Pause', () => attempt(async () => {
      await post(path('topics', name, this.isPaused ? 'resume' : 'pause'));
      refreshNow();
    }));
    this.purge = button('Purge…', () => this.askPurge(), 'danger');
    this.tabs = element('nav', {class: 'tabs', 'aria-label': 'Parts of the topic'}, TABS.map(([id, label]) =>
      element('a', {href: `#/topic/${encodeURIComponent(name)}/${id}`, 'data-tab': id}, label)));
    this.body = element('div', {class: 'tab'});
    this.gone = element('p', {class: 'empty', hidden: true}, 'There is no such topic, or you have no right on it.');
    const title = element('h1');
    setShown(title, name);
    this.node = element('div', {class: 'view'}, element('div', {class: 'title'}, title, this.kind, element('div', {class: 'buttons'}, this.pause, this.purge)),
      this.tabs, this.gone, this.body);
    this.open(tab);
  }

  close() {}

  open(id) {
    const wanted = TABS.some(([each]) => each === id) ? id : 'overview';
    for (const link of this.tabs.children) {
      if (link.dataset.tab === wanted) link.setAttribute('aria-current', 'page');
      else link.removeAttribute('aria-current');
    }
    const makers = {
      overview: () => new OverviewTab(this.name, this.refreshNow), messages: () => new MessagesTab(this.name, this.refreshNow),
      dead: () => new DeadTab(this.name, this.refreshNow), delayed: () => new DelayedTab(this.name, this.refreshNow),
      settings: () => new SettingsTab(this.name, this.refreshNow),
    };
    if (this.tabId !== wanted) {
      this.tabId = wanted;
      this.tab = makers[wanted]();
      this.body.replaceChildren(this.tab.node);
    }
    if (this.state) this.update(this.state);
  }

  update(state) {
    this.state = state;
    const stats = state.topics.find((each) => each.topic === this.name);
    this.gone.hidden = Boolean(stats) || !state.isLoaded;
    this.body.hidden = !stats;
    this.pause.hidden = this.purge.hidden = !stats;
    if (!stats) return;
    this.isPaused = stats.paused;
    this.stored = stats.next_offset - stats.first_offset;
    setText(this.kind, stats.topic_type);
    setText(this.pause, stats.paused ? 'Resume' : 'Pause');
    this.tab.update(stats, state);
  }

  askPurge() {
    confirmTyped('Purge the topic', [`All ${count(this.stored)} stored messages of `, element('code', {}, plain(this.name)),
      ' are dropped, for all groups. Delayed messages stay.'], this.name, 'Purge the topic', async () => {
      const {messages} = await post(path('topics', this.name, 'purge'));
      note(`${count(messages)} messages were purged.`);
      this.refreshNow();
    });
  }
}
