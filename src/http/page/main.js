// The page: login, views by the part of the URL behind the #, and a refresh each second while it is visible.
import {ask, forgetLogin, get, isLoggedIn, onExpired, path, setLogin} from './api.js';
import {BrokerView, processOf} from './broker.js';
import {closeAll} from './dialog.js';
import {element, field, setText} from './dom.js';
import {Samples} from './samples.js';
import {plain} from './text.js';
import {TopicView} from './topic.js';
import {TopicsView} from './topics.js';
import {UsersView} from './users.js';

const REFRESH_MS = 1000;
const METRICS_EVERY = 5;       // refreshes between two looks at the process
const PAGE_TOPICS = 1024;
const TOPICS_MAX = 10000;      // further topics are left out, and the page says so
const SHARE_MAX = 0.25;        // of the time that refreshes may take

const content = document.getElementById('content');
const live = document.getElementById('live');
let view = null;
let state = null;
let timer = 0;
let generation = 0;  // of the login: answers to requests of an earlier one are dropped

function fresh() {
  return {topics: [], at: 0, isLoaded: false, isPartial: false, samples: new Samples(), broker: null, process: null,
    cpuShare: NaN, isAdmin: true, refreshes: 0, user: ''};
}

// --- Login ---

function showLogin(sentence = '') {
  clearTimeout(timer);
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
  refresh();
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
  if (parts[0] === 'topic' && parts[1]) view = new TopicView(parts[1], parts[2] || 'overview', () => refreshNow());
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

// --- Refreshes ---

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

async function readBroker(mine) {
  if (!state.isAdmin) return;
  const target = state;
  try {
    target.broker = await get(path('stats'));
    if (target.refreshes % METRICS_EVERY !== 0 || mine !== generation) return;
    const process = processOf(await ask('GET', '/metrics?detail=off'));
    const at = performance.now();
    if (target.process) target.cpuShare = (process.cpuSeconds - target.process.cpuSeconds) / ((at - target.process.at) / 1000);
    target.process = {...process, at};
  } catch (error) {
    if (error.status !== 403) throw error;
    target.isAdmin = false;
  }
}

// Reads the statistics once and shows them. The next refresh follows a second later, or later if this one was slow.
async function refresh() {
  clearTimeout(timer);
  if (!isLoggedIn() || document.hidden) return;
  const mine = generation;
  const began = performance.now();
  try {
    const read = await allTopics();
    if (mine !== generation) return;
    await readBroker(mine);
    if (mine !== generation) return;
    Object.assign(state, read, {at: performance.now(), isLoaded: true});
    state.refreshes += 1;
    state.samples.add(state.topics, state.at);
    view.update(state);
    setText(live, 'live');
    live.className = 'ok';
  } catch (error) {
    if (mine !== generation || error.status === 401) return;
    setText(live, plain(error.message));
    live.className = 'bad';
  }
  const took = performance.now() - began;
  if (mine !== generation) return;
  clearTimeout(timer);
  timer = setTimeout(refresh, Math.max(REFRESH_MS - took, took * (1 / SHARE_MAX - 1), 100));
}

function refreshNow() {
  clearTimeout(timer);
  timer = setTimeout(refresh, 0);
}

document.addEventListener('visibilitychange', () => {
  if (document.hidden) clearTimeout(timer);
  else if (state) refreshNow();
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
