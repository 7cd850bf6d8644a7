// Definitions: the settings of topics, groups and users as one JSON file, which the command line reads and writes, too.
import {ApiError, ask, get, path} from './api.js';
import {form} from './dialog.js';
import {attempt, button, element, note, shown, table} from './dom.js';
import {bytes, count} from './text.js';

const FORMAT = 1;
const BYTES_MAX = 8 * 1024 * 1024;
const FIXED = ['broker_type', 'ring_bytes', 'segment_bytes', 'open', 'encrypt_at_rest'];  // settings that cannot change
const RIGHTS = ['produce', 'consume', 'manage'];
const WORDS = {create_topic: 'create topic', set_topic: 'set topic', set_group: 'set group', create_user: 'create user', grant: 'grant',
  conflict: 'cannot be done'};

// Returns the definitions of the broker.
async function present() {
  const topics = [];
  let after = '';
  while (true) {
    const page = await get(`${path('topics')}?groups=true${after}`);
    for (const topic of page.topics) {
      const groups = (topic.groups || []).map((group) => ({group: group.group, ...group.settings}));
      topics.push({topic: topic.topic, ...topic.settings, ...(groups.length > 0 ? {groups} : {})});
    }
    if (!('continue_after' in page)) break;
    after = '&after=' + encodeURIComponent(page.continue_after);
  }
  const {users} = await get(path('users'));
  return {cmd: 'definitions', status: 'ok', format: FORMAT, topics, users};
}

async function save() {
  const definitions = await present();
  const url = URL.createObjectURL(new Blob([JSON.stringify(definitions, null, 2) + '\n'], {type: 'application/json'}));
  element('a', {href: url, download: 'lightq-definitions.json'}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
  note(`${count(definitions.topics.length)} topics and ${count(definitions.users.length)} users were exported, without passwords.`);
}

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

// Returns the list of objects in a member, each with a name. Throws if it is something else.
function listOf(object, member, name) {
  const list = object[member] === undefined ? [] : object[member];
  const isList = Array.isArray(list) && list.every((each) => isObject(each) && typeof each[name] === 'string' && each[name] !== '');
  if (!isList) throw new Error(`'${member}' must be a list of objects with '${name}'`);
  return list;
}

// Returns the definitions of a file. It may come from anybody.
function read(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new Error('The file is no JSON.');
  }
  if (!isObject(found) || found.format !== FORMAT) throw new Error('The file has no definitions of this format.');
  const topics = listOf(found, 'topics', 'topic').map((topic) => ({...topic, groups: listOf(topic, 'groups', 'group')}));
  const users = listOf(found, 'users', 'user_id').map((user) => ({...user, rights: listOf(user, 'rights', 'topic')}));
  return {topics, users};
}

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

// Returns the members of `wanted` that are others in `before`.
function changed(wanted, before, left = []) {
  return Object.fromEntries(Object.entries(wanted).filter(([name, value]) => !left.includes(name) && !isSame(value, name in before ? before[name] : null)));
}

function topicSteps({topic, groups, ...settings}, before) {
  if (!before) return [{what: 'create_topic', text: `${topic} ${JSON.stringify(settings)}`, run: () => ask('PUT', path('topics', topic), settings)}];
  const change = changed(settings, before, ['topic', 'groups']);
  const fixed = Object.keys(change).filter((name) => FIXED.includes(name));
  const steps = [];
  if (fixed.length > 0) steps.push({what: 'conflict', text: `${topic}: cannot change after the topic was created: ${fixed.join(', ')}`});
  const free = changed(change, {}, FIXED);
  if (!fixed.includes('broker_type') && Object.keys(free).length > 0) {
    steps.push({what: 'set_topic', text: `${topic} ${JSON.stringify(free)}`, run: () => ask('PATCH', path('topics', topic), free)});
  }
  return steps;
}

function groupSteps({topic, groups}, before) {
  return groups.flatMap(({group, ...settings}) => {
    const change = changed(settings, (before && before.groups || []).find((each) => each.group === group) || {});
    if (Object.keys(change).length === 0) return [];
    return [{what: 'set_group', text: `${topic}: ${group} ${JSON.stringify(change)}`, run: () => ask('PATCH', path('topics', topic, 'groups', group), change)}];
  });
}

function userSteps(user, before) {
  const name = user.user_id;
  if (!before && user.uid !== undefined) {
    const content = {uid: user.uid, admin: Boolean(user.admin), rights: user.rights};
    return [{what: 'create_user', text: `${name} ${JSON.stringify(content)}`, run: () => ask('PUT', path('users', name), content)}];
  }
  if (!before) return [{what: 'conflict', text: `${name}: needs a password; create the user on the page for users`}];
  const steps = [];
  if (Boolean(before.admin) !== Boolean(user.admin) || before.uid !== user.uid) {
    steps.push({what: 'conflict', text: `${name}: 'admin' and 'uid' cannot change`});
  }
  for (const {topic, rights} of user.rights) {
    const known = before.rights.find((each) => each.topic === topic);
    const missing = RIGHTS.filter((right) => Array.isArray(rights) && rights.includes(right) && !(known && known.rights.includes(right)));
    if (missing.length === 0) continue;
    steps.push({what: 'grant', text: `${name}: ${missing.join(', ')} on ${topic}`, run: () => ask('POST', path('users', name, 'grant'), {topic, rights: missing})});
  }
  return steps;
}

// Returns the steps from the broker's definitions to those of a file: topics, then groups, which may name topics, then users.
// Nothing is deleted.
function stepsTo(wanted, before) {
  const topicOf = new Map(before.topics.map((topic) => [topic.topic, topic]));
  const userOf = new Map(before.users.map((user) => [user.user_id, user]));
  return [...wanted.topics.flatMap((topic) => topicSteps(topic, topicOf.get(topic.topic))),
    ...wanted.topics.flatMap((topic) => groupSteps(topic, topicOf.get(topic.topic))),
    ...wanted.users.flatMap((user) => userSteps(user, userOf.get(user.user_id)))];
}

async function apply(steps) {
  let done = 0;
  for (const step of steps) {
    try {
      await step.run();
    } catch (error) {
      throw new ApiError(error.status, error.code, `${count(done)} changes were made; then: ${step.text}: ${error.message}`);
    }
    done += 1;
  }
  note(`${count(done)} changes were made.`);
}

async function preview(file) {
  if (file.size > BYTES_MAX) throw new Error(`The file is larger than ${bytes(BYTES_MAX)}.`);
  const steps = stepsTo(read(await file.text()), await present());
  const possible = steps.filter((step) => step.run);
  if (steps.length === 0) {
    note('The broker has these definitions already.');
    return;
  }
  const list = table([{name: 'Step', cell: (step) => WORDS[step.what]}, {name: 'What', cell: (step) => shown(step.text)}], steps, '', 'Steps');
  const {submit} = form('Import definitions', [element('p', {}, `These changes are made. Nothing is deleted; what the file does not name stays as it is.`), list],
    `Make ${count(possible.length)} changes`, () => apply(possible));
  submit.disabled = possible.length === 0;
}

export function definitionsCard() {
  const file = element('input', {type: 'file', accept: 'application/json,.json', hidden: true, 'aria-label': 'File of definitions', onchange: async () => {
    const [chosen] = file.files;
    if (chosen) await attempt(() => preview(chosen));
    file.value = '';
  }});
  return element('section', {class: 'card definitions'}, element('h2', {}, 'Definitions'),
    element('p', {class: 'help'}, 'The settings of topics, groups and users as one JSON file, without messages and passwords. An import shows its changes first.'),
    element('div', {class: 'buttons left'}, button('Export', () => attempt(save)), button('Import…', () => file.click()), file));
}
