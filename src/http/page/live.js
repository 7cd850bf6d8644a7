// Live statistics. The broker sends events with the topics that have changed; this keeps the state of all of them.
import {ApiError, events, path} from './api.js';

const SILENT_MS = 20000;  // without an event for so long, the connection is taken for broken

export class Live {
  constructor() {
    this.topics = new Map();  // by name: the statistics, and when they were received
    this.figures = {};
    this.isPartial = false;
  }

  // Yields the state after each round of events: {topics, isPartial, broker, connections, process, disk}. Throws ApiError.
  async* rounds(signal) {
    this.topics.clear();
    const silence = new AbortController();
    let timer = 0;
    const wait = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENT_MS);
    };
    wait();
    try {
      for await (const {name, data} of events(path('events'), AbortSignal.any([signal, silence.signal]))) {
        wait();
        if (name === 'end') throw new ApiError(data.status, data.code, data.detail);
        if (name !== 'stats') continue;
        for (const stats of data.topics) this.put(stats);
        if (!data.complete) continue;
        for (const gone of data.gone) this.topics.delete(gone);
        this.isPartial = data.partial;
        this.figures = {broker: data.broker || null, connections: data.connections || null,
          process: data.process || this.figures.process || null, disk: data.disk || this.figures.disk || null};
        yield this.state();
      }
    } finally {
      clearTimeout(timer);
    }
  }

  // Takes the statistics of one topic.
  put(stats) {
    const ages = [stats, ...stats.groups].map((each) => [each, each.oldest_ms]);
    this.topics.set(stats.topic, {stats, ages, at: performance.now()});
  }

  drop(topic) {
    this.topics.delete(topic);
  }

  // While nothing else changes, ages grow: the broker sends no event for that.
  state() {
    const now = performance.now();
    const all = [...this.topics.values()];
    for (const {ages, at} of all) {
      for (const [target, age] of ages) target.oldest_ms = age > 0 ? Math.round(age + now - at) : 0;
    }
    all.sort((one, other) => one.stats.topic < other.stats.topic ? -1 : 1);
    return {topics: all.map((each) => each.stats), isPartial: this.isPartial, ...this.figures};
  }
}
