// Why nothing is moving: reasons that the statistics state, most severe first.
import {count, duration, moment, plain} from './text.js';

const STILL_MS = 10000;  // messages in flight that nobody settles for so long are worth a word

const bad = (text) => ({level: 2, text});
const warning = (text) => ({level: 1, text});
const info = (text) => ({level: 0, text});

function blocked(by) {
  if (by === 'disk' || by.startsWith('disk')) return 'producers wait for the disk';
  if (by === 'delayed') return 'full of delayed messages: producers wait';
  if (by === 'nobody connected') return 'nobody is connected: producers wait';
  if (by.startsWith('group:')) return `full: producers wait for the group '${plain(by.slice(6))}'`;
  return `producers wait: ${plain(by)}`;
}

// Returns the reasons of one group. `stillMs`: for how long none of its messages in flight was settled.
export function reasonsOfGroup(group, stillMs) {
  const found = [];
  if (group.paused_by === 'failing') found.push(bad('paused: most deliveries failed'));
  else if (group.paused_by === 'dead_letters') found.push(bad('stopped: too many dead messages wait for their topic'));
  else if (group.paused) found.push(warning('paused'));
  if (group.blocked_by) found.push(bad(`cannot read: ${plain(group.blocked_by)}`));
  if (group.dead_waiting > 0 && group.dead_waiting_by) found.push(bad(`dead letters wait: ${plain(group.dead_waiting_by)}`));
  if (group.ready > 0 && !group.paused_by && !group.paused && !group.blocked_by) {
    if (group.consumers === 0) found.push(warning('no consumers'));
    else if (group.free_consumers === 0) found.push(warning('all consumers are busy'));
  }
  if (group.in_flight > 0 && stillMs >= STILL_MS) {
    found.push(warning(`${count(group.in_flight)} in flight, none settled for ${duration(stillMs)}`));
  }
  if (group.parked > 0) found.push(warning(`${count(group.parked)} dead`));
  if (group.retrying > 0 && group.ready === 0 && group.in_flight === 0) {
    found.push(info(`waits for a retry at ${moment(group.next_due_ms).slice(11)}`));
  }
  return found;
}

// Returns the reasons of a topic and its groups.
export function reasonsOf(stats, history, at) {
  const found = [];
  if (stats.blocked_by) found.push(bad(blocked(stats.blocked_by)));
  if (stats.paused) found.push(warning('topic is paused'));
  if (stats.delayed && stats.delayed.waiting_by) found.push(bad(`due messages wait: ${plain(stats.delayed.waiting_by)}`));
  for (const group of stats.groups) {
    const name = group.group === '' ? '(a consumer)' : plain(group.group);
    for (const reason of reasonsOfGroup(group, history.stillFor(group.group, at))) {
      found.push({level: reason.level, text: `${name}: ${reason.text}`});
    }
  }
  for (const subscriber of stats.subscribers) {
    if (subscriber.blocked_by) found.push(bad(`a subscriber cannot read: ${plain(subscriber.blocked_by)}`));
  }
  const stored = stats.next_offset - stats.first_offset;
  if (stats.groups.length === 0 && stats.subscribers.length === 0 && stored > 0) {
    found.push(info('no consumer has joined yet'));
  }
  if (stats.corrupt > 0) found.push(bad(`${count(stats.corrupt)} messages are damaged`));
  return found.sort((one, other) => other.level - one.level);
}
