// Samples of the statistics. The broker keeps those of the last hour for topics that move; the page goes on with its own.
import {get, path} from './api.js';

export const FINE_MAX = 300;    // samples of a second each
export const COARSE_MAX = 60;   // samples of a minute each
const COARSE_MS = 60000;
export const SIDES = ['in', 'out', 'pending', 'lag'];  // messages a second, and numbers of messages

// A ring of samples, which have four numbers each. Missing samples are NaN.
class Ring {
  constructor(size) {
    this.values = new Float32Array(SIDES.length * size).fill(NaN);
    this.size = size;
    this.next = 0;
  }
  add(sample) {
    this.values.set(sample, SIDES.length * this.next);
    this.next = (this.next + 1) % this.size;
  }
  // Takes samples of the broker: an object of lists, oldest first.
  seed(lists) {
    this.values.fill(NaN);
    this.next = 0;
    const many = Math.min(lists.in.length, this.size);
    const first = lists.in.length - many;
    for (let i = 0; i < many; ++i) this.add(SIDES.map((side) => lists[side][first + i]));
  }
  // Returns the newest `wanted` samples of one side, oldest first.
  newest(wanted, side) {
    const at = SIDES.indexOf(side);
    const found = [];
    for (let i = this.size - wanted; i < this.size; ++i) found.push(this.values[SIDES.length * ((this.next + i) % this.size) + at]);
    return found;
  }
}

// The course of one topic.
class History {
  constructor() {
    this.fine = new Ring(FINE_MAX);
    this.coarse = null;  // made with the first sample of a minute
    this.last = null;
    this.readAfter = -1;  // interruptions before the broker's samples were read
    this.inRate = NaN;
    this.outRate = NaN;
    this.minute = null;
    this.acknowledged = new Map();  // of each group: the number, and since when it has not changed
  }
  add(stats, at) {
    const last = this.last;
    this.last = {at, in: stats.messages_received, out: stats.messages_out, since: stats.since_ms};
    this.watchGroups(stats.groups, at);
    if (!last || last.since !== stats.since_ms || at <= last.at) return;
    const seconds = (at - last.at) / 1000;
    this.inRate = Math.max(0, (stats.messages_received - last.in) / seconds);
    this.outRate = Math.max(0, (stats.messages_out - last.out) / seconds);
    const pending = stats.groups.reduce((total, group) => total + group.pending, 0);
    const lag = Math.max(0, ...stats.groups.map((group) => group.lag));
    this.fine.add([this.inRate, this.outRate, pending, lag]);
    this.addToMinute(last.at, at, [this.inRate, this.outRate, pending, lag], seconds);
  }
  addToMinute(began, at, [incoming, outgoing, pending, lag], seconds) {
    if (!this.minute) this.minute = {began, in: 0, out: 0, pending: 0, lag: 0, seconds: 0};
    const minute = this.minute;
    minute.in += incoming * seconds;
    minute.out += outgoing * seconds;
    minute.pending = Math.max(minute.pending, pending);
    minute.lag = Math.max(minute.lag, lag);
    minute.seconds += seconds;
    if (at - minute.began < COARSE_MS) return;
    if (!this.coarse) this.coarse = new Ring(COARSE_MAX);
    this.coarse.add([minute.in / minute.seconds, minute.out / minute.seconds, minute.pending, minute.lag]);
    this.minute = null;
  }
  // Takes the broker's samples in place of all so far, unless it has none.
  seed({seconds, minutes}) {
    if (seconds.in.length === 0 && minutes.in.length === 0) return;
    this.fine.seed(seconds);
    this.coarse = new Ring(COARSE_MAX);
    this.coarse.seed(minutes);
    this.minute = null;
  }
  watchGroups(groups, at) {
    const seen = new Map();
    for (const group of groups) {
      const done = group.acknowledged + group.released + group.failed + group.timed_out + group.dead + group.expired;
      const before = this.acknowledged.get(group.group);
      const isSame = before && before.done === done && group.in_flight > 0 && before.inFlight > 0;
      seen.set(group.group, {done, inFlight: group.in_flight, since: isSame ? before.since : at});
    }
    this.acknowledged = seen;
  }
  // Returns for how many milliseconds no message in flight of a group was settled.
  stillFor(group, at) {
    const seen = this.acknowledged.get(group);
    return seen ? at - seen.since : 0;
  }
}

export class Samples {
  constructor() {
    this.histories = new Map();
    this.interruptions = 0;  // times in which samples may be missing
    this.wanted = [];        // topics whose samples are to be read
    this.isReading = false;
  }
  // Takes the statistics of all topics; forgets topics that are gone.
  add(topics, at) {
    const names = new Set();
    for (const stats of topics) {
      names.add(stats.topic);
      if (!this.histories.has(stats.topic)) this.histories.set(stats.topic, new History());
      this.histories.get(stats.topic).add(stats, at);
    }
    for (const name of this.histories.keys()) {
      if (!names.has(name)) this.histories.delete(name);
    }
  }
  // Called when statistics come again after a time without.
  interrupt() {
    this.interruptions += 1;
  }
  isMissing(topic) {
    const history = this.histories.get(topic);
    return history !== undefined && history.readAfter !== this.interruptions;
  }
  // Reads the broker's samples of a topic. Returns false if the broker does not give them: ask again later.
  async read(topic) {
    const history = this.of(topic);
    const before = history.readAfter;
    history.readAfter = this.interruptions;
    try {
      history.seed(await get(path('topics', topic, 'history')));
      return true;
    } catch (error) {
      history.readAfter = before;
      return error.status === 404;
    }
  }
  // Reads those of topics that miss them, one after the other: a list of many must not use up the requests of its source.
  async readAll(topics) {
    this.wanted = topics.filter((topic) => this.isMissing(topic));
    if (this.isReading) return;
    this.isReading = true;
    while (this.wanted.length > 0 && !document.hidden) {
      const topic = this.wanted.shift();
      if (this.isMissing(topic) && !await this.read(topic)) break;
    }
    this.isReading = false;
  }
  of(topic) {
    return this.histories.get(topic) || new History();
  }
}
