// Samples of the statistics, taken while the page is open. The broker keeps no history.

export const FINE_MAX = 120;     // samples of one refresh each
export const COARSE_MAX = 240;   // samples of COARSE_MS each: an hour
const COARSE_MS = 15000;

// A ring of pairs: messages in and out a second. Missing samples are NaN.
class Ring {
  constructor(size) {
    this.values = new Float32Array(2 * size).fill(NaN);
    this.size = size;
    this.next = 0;
  }
  add(incoming, outgoing) {
    this.values[2 * this.next] = incoming;
    this.values[2 * this.next + 1] = outgoing;
    this.next = (this.next + 1) % this.size;
  }
  // Returns the newest `wanted` samples of one side (0: in, 1: out), oldest first.
  newest(wanted, side) {
    const found = [];
    for (let i = this.size - wanted; i < this.size; ++i) found.push(this.values[2 * ((this.next + i) % this.size) + side]);
    return found;
  }
}

// The rates of one topic.
class History {
  constructor() {
    this.fine = new Ring(FINE_MAX);
    this.coarse = null;  // made with the first sample of 15 seconds
    this.last = null;
    this.inRate = NaN;
    this.outRate = NaN;
    this.sums = [0, 0, 0];
    this.coarseBegan = 0;
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
    this.fine.add(this.inRate, this.outRate);
    this.sums = [this.sums[0] + this.inRate * seconds, this.sums[1] + this.outRate * seconds, this.sums[2] + seconds];
    if (!this.coarseBegan) this.coarseBegan = last.at;
    if (at - this.coarseBegan < COARSE_MS) return;
    if (!this.coarse) this.coarse = new Ring(COARSE_MAX);
    this.coarse.add(this.sums[0] / this.sums[2], this.sums[1] / this.sums[2]);
    this.sums = [0, 0, 0];
    this.coarseBegan = at;
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
    this.since = Date.now();
    this.histories = new Map();
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
  of(topic) {
    return this.histories.get(topic) || new History();
  }
}
