// The rights of users on a topic, for administrators.
import {get, path} from './api.js';
import {element, shown, table} from './dom.js';

// Returns true if a name matches a pattern, in which * stands for any characters, or none.
export function fitsPattern(name, pattern) {
  const pieces = pattern.split('*');
  if (pieces.length === 1) return name === pattern;
  let at = pieces[0].length;
  if (!name.startsWith(pieces[0])) return false;
  for (const piece of pieces.slice(1, -1)) {
    const found = name.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  const last = pieces[pieces.length - 1];
  return name.length - at >= last.length && name.endsWith(last);
}

// Returns the rights of a user that concern a topic: [{pattern, rights, groups}]; groups: null for everything of the topic.
function grantsOn(topic, user) {
  return user.rights.flatMap((grant) => {
    const colon = grant.topic.indexOf(':');
    if (!fitsPattern(topic, colon < 0 ? grant.topic : grant.topic.slice(0, colon))) return [];
    return [{pattern: grant.topic, rights: grant.rights, groups: colon < 0 ? null : grant.topic.slice(colon + 1)}];
  });
}

function cellOf(user, grants) {
  if (user.admin) return 'everything, as an administrator';
  return element('ul', {class: 'rights'}, grants.map(({pattern, rights, groups}) => element('li', {}, rights.join(', '),
    groups === null ? null : [' with the groups ', element('code', {}, shown(groups))], ' ', element('small', {}, 'by ', element('code', {}, shown(pattern))))));
}

export class Rights {
  constructor(topic) {
    this.topic = topic;
    this.node = element('div');
  }
  // Asks for the users, and shows those that have rights on the topic.
  async list() {
    let users;
    try {
      ({users} = await get(path('users')));
    } catch (error) {
      const sentence = error.status === 403 ? 'Only administrators see the rights.' : error.message;
      this.node.replaceChildren(element('p', {class: 'empty'}, shown(sentence)));
      return;
    }
    const able = users.map((user) => ({user, grants: grantsOn(this.topic, user)})).filter(({user, grants}) => user.admin || grants.length > 0);
    this.node.replaceChildren(table([
      {name: 'User', cell: ({user}) => element('strong', {}, shown(user.user_id))},
      {name: 'May', cell: ({user, grants}) => cellOf(user, grants)},
    ], able, 'No user has a right on this topic.', 'Rights'), element('p', {class: 'help'},
      'The administrator of the configuration may do everything. ', element('a', {href: '#/users'}, 'Change rights'), '.'));
  }
}
