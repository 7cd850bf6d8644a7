// The page: login, views by the part of the URL behind the #, and live statistics while it is visible.
import {forgetLogin, get, isLoggedIn, onExpired, path, setLogin} from './api.js';
import {BrokerView} from './broker.js';
import {closeAll} from './dialog.js';
import {element, field, setText} from './dom.js';
import {Live} from './live.js';
import {Samples} from './samples.js';
import {plain} from './text.js';
import {TopicView} from './topic.js';
import {TopicsView} from './topics.js';
import {UsersView} from './users.js';

const REFRESH_MS = 1000;       // between two requests while there are no events
const RETRY_MS = 1000;         // before the stream is opened again; twice as long after each failure
const RETRY_MS_MAX = 15000;
const PAGE_TOPICS = 1024;
const TOPICS_MAX = 10000;      // further topics are left out, and the page says so
const SHARE_MAX = 0.25;        // of the time that refreshes may take

const content = document.getElementById('content');
const live = document.getElementById('live');
let view = null;
let state = null;
let timer = 0;
let stream = null;   // ends the stream of events; null while there is none
let isLive = false;  // events arrive
let generation = 0;  // of the login: answers to requests of an earlier one are dropped

function fresh() {
  return {topics: [], at: 0, isLoaded: false, isPartial: false, samples: new Samples(), live: new Live(), broker: null,
    process: null, connections: null, cpuShare: NaN, isAdmin: true, user: ''};
}

// --- Login ---

function showLogin(sentence = '') {
  stopWatching();
  ++generation;
  closeAll();
  forgetLogin();
  if (view) view.close();
  view = null;
  state = null;
  document.getElementById('top').hidden = true;
  document.title = 'LightQ';
  const user = element('input', {name: 'user', autocomplete: 'username', required: true, spellcheck: 'false', autocapitalize: 'off'});
  const password = element('input', {name: 'password', type: 'password', autocomplete: 'current-password', required: true});
  const problem = element('p', {class: 'problem', role: 'alert'}, sentence);
  const submit = element('button', {type: 'submit', class: 'main'}, 'Log in');
  const form = element('form', {class: 'login card', method: 'post', onsubmit: async (event) => {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    setText(problem, '');
    const refusal = await logIn(user.value, password.value);
    password.value = '';
    submit.disabled = false;
    if (refusal === null) return;
    setText(problem, refusal);
    password.focus();
  }}, element('h1', {}, 'LightQ'), problem, field('User', user), field('Password', password), submit,
    element('p', {class: 'help'}, 'The page keeps your password in its memory only. Reloading it logs you out.'));
  content.replaceChildren(form);
  user.focus();
}

// Returns why the login was refused, or null.
async function logIn(user, password) {
  if (user.includes(':')) return 'A user name with a colon cannot log in over HTTP.';
  setLogin(user, password);
  try {
    await get(path('stats', 'topics') + '?topics_max=1');
  } catch (error) {
    forgetLogin();
    return error.status === 401 ? 'The user or the password is wrong.' : plain(error.message);
  }
  ++generation;
  state = fresh();
  state.user = user;
  setText(document.getElementById('user'), plain(user));
  document.getElementById('top').hidden = false;
  route();
  watch();
  return null;
}

onExpired(() => {
  if (state) showLogin('Your login is no longer valid. Log in again.');
});

// --- Views ---

function route() {
  if (!state) return;
  let parts;
  try {
    parts = location.hash.replace(/^#\/?/, '').split('/').map(decodeURIComponent);
  } catch (error) {
    parts = [''];
  }
  if (parts[0] === 'topic' && parts[1] && view instanceof TopicView && view.name === parts[1]) {
    view.open(parts[2] || 'overview');
    return;
  }
  closeAll();
  if (view) view.close();
  if (parts[0] === 'topic' && parts[1]) view = new TopicView(parts[1], parts[2] || 'overview', () => lookAt(parts[1]));
  else if (parts[0] === 'users') view = new UsersView(state.user);
  else if (parts[0] === 'broker') view = new BrokerView();
  else view = new TopicsView();
  const here = parts[0] === 'users' || parts[0] === 'broker' ? '#/' + parts[0] : '#/';
  for (const link of document.querySelectorAll('#nav a')) {
    if (link.getAttribute('href') === here) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  document.title = (parts[0] === 'topic' ? plain(parts[1]) + ' – ' : '') + 'LightQ';
  content.replaceChildren(view.node);
  scrollTo(0, 0);
  view.update(state);
  if (document.activeElement === document.body) content.focus({preventScroll: true});
}

// --- Live statistics ---

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function showStatus(text, kind) {
  setText(live, text);
  live.className = kind;
  live.title = text;
}

// Takes the state of all topics, and shows it.
function take(read) {
  const {process} = state;
  Object.assign(state, read, {at: performance.now(), isLoaded: true});
  if (state.process && state.process !== process) {
    state.process.at = state.at;
    if (process) state.cpuShare = (state.process.cpu_seconds - process.cpu_seconds) / ((state.at - process.at) / 1000);
  }
  state.samples.add(state.topics, state.at);
  view.update(state);
}

// Follows the broker's events. While there are none, asks instead, and tries again to open the stream.
async function watch() {
  stopWatching();
  if (!isLoggedIn() || document.hidden) return;
  const mine = stream = new AbortController();
  for (let wait = RETRY_MS; ; wait = Math.min(2 * wait, RETRY_MS_MAX)) {
    let why = 'the connection has broken';
    try {
      for await (const read of state.live.rounds(mine.signal)) {
        if (stream !== mine) return;
        clearTimeout(timer);
        if (!isLive) state.samples.interrupt();
        isLive = true;
        wait = RETRY_MS;
        take(read);
        showStatus('live', 'ok');
      }
    } catch (error) {
      if (stream !== mine || error.status === 401) return;
      why = error.message;
    }
    if (stream !== mine) return;
    isLive = false;
    showStatus(`not live: ${plain(why)}`, 'bad');
    poll(why);
    await pause(wait);
    if (stream !== mine) return;
  }
}

function stopWatching() {
  clearTimeout(timer);
  isLive = false;
  if (stream) stream.abort();
  stream = null;
}

async function allTopics() {
  const topics = [];
  let after = '';
  while (true) {
    const page = await get(`${path('stats', 'topics')}?topics_max=${PAGE_TOPICS}${after}`);
    topics.push(...page.topics);
    if (!('continue_after' in page)) return {topics, isPartial: false};
    if (topics.length >= TOPICS_MAX) return {topics, isPartial: true};
    after = '&after=' + encodeURIComponent(page.continue_after);
  }
}

// Returns the broker's statistics; null for a user who may not see them.
async function brokerStats() {
  if (!state.isAdmin) return null;
  const target = state;
  try {
    return await get(path('stats'));
  } catch (error) {
    if (error.status !== 403) throw error;
    target.isAdmin = false;
    return null;
  }
}

// Asks for the statistics once and shows them, because of `why` there are no events. The next request follows a second
// later, or later if this one was slow.
async function poll(why) {
  clearTimeout(timer);
  const mine = generation;
  const isOver = () => mine !== generation || isLive || document.hidden;
  if (isOver()) return;
  const began = performance.now();
  try {
    const read = await allTopics();
    if (isOver()) return;
    const broker = await brokerStats();
    if (isOver()) return;
    take({...read, broker});
    showStatus(`asks each second, because ${plain(why)}`, 'ok slow');
  } catch (error) {
    if (isOver() || error.status === 401) return;
    showStatus(plain(error.message), 'bad');
  }
  const took = performance.now() - began;
  if (isOver()) return;
  clearTimeout(timer);
  timer = setTimeout(() => poll(why), Math.max(REFRESH_MS - took, took * (1 / SHARE_MAX - 1), 100));
}

// Looks at one topic at once, after it was changed.
async function lookAt(topic) {
  const mine = generation;
  let stats = null;
  try {
    stats = await get(path('topics', topic));
  } catch (error) {
    if (error.status !== 404) return;
  }
  if (mine !== generation) return;
  if (stats) state.live.put(stats);
  else state.live.drop(topic);
  const others = state.topics.filter((each) => each.topic !== topic);
  state.topics = stats ? [...others, stats].sort((one, other) => one.topic < other.topic ? -1 : 1) : others;
  view.update(state);
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) stopWatching();
  else if (state) watch();
});
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.closest && event.target.closest('input, textarea, select, dialog');
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey || event.altKey || !(view instanceof TopicsView)) return;
  event.preventDefault();
  view.focusSearch();
});
document.getElementById('logout').addEventListener('click', () => showLogin('You are logged out.'));
document.querySelector('.skip').addEventListener('click', (event) => {
  event.preventDefault();  // the part behind the # is the view
  content.focus();
});
addEventListener('hashchange', route);
showLogin();
