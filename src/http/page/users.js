// Users and their rights, for administrators; the own password for everybody.
import {ask, changeLogin, get, path} from './api.js';
import {confirmTyped, form} from './dialog.js';
import {attempt, button, element, field, note, shown, table} from './dom.js';

const RIGHTS = ['produce', 'consume', 'manage'];

function rightBoxes() {
  return element('fieldset', {}, element('legend', {}, 'Rights'), RIGHTS.map((right) =>
    element('label', {class: 'check'}, element('input', {type: 'checkbox', name: 'right', value: right}), right)));
}

function chosenRights(body) {
  const rights = [...body.querySelectorAll('input[name=right]:checked')].map((box) => box.value);
  if (rights.length === 0) throw new Error('Choose at least one right.');
  return rights;
}

const patternField = () => field('On', element('input', {name: 'pattern', required: true, autocomplete: 'off', spellcheck: 'false', value: '*'}),
  'a topic, or TOPIC:GROUP; * fits any characters');
const passwordField = (label) => field(label, element('input', {name: 'password', type: 'password', required: true, autocomplete: 'new-password'}));

export class UsersView {
  constructor(self) {
    this.self = self;
    this.found = element('div');
    this.node = element('div', {class: 'view'}, element('div', {class: 'title'}, element('h1', {}, 'Users'), element('div', {class: 'buttons'},
      button('Change my password', () => this.askPassword(self)), button('New user', () => this.askUser(), 'main'))), this.found);
  }
  close() {}
  update() {
    if (this.isListed) return;
    this.isListed = true;
    this.list();
  }

  async list() {
    await attempt(async () => {
      let users;
      try {
        ({users} = await get(path('users')));
      } catch (error) {
        if (error.status !== 403) throw error;
        this.found.replaceChildren(element('p', {class: 'empty'}, 'Only administrators see the users.'));
        return;
      }
      this.found.replaceChildren(table([
        {name: 'User', cell: (row) => element('strong', {}, shown(row.user_id))},
        {name: 'Rights', cell: (row) => row.admin ? 'administrator' : row.rights.length === 0 ? 'none' :
          element('ul', {class: 'rights'}, row.rights.map((grant) => element('li', {}, element('code', {}, shown(grant.topic)), ' ' + grant.rights.join(', '), ' ',
            button('Revoke', () => this.change('revoke', row.user_id, grant.topic, grant.rights)))))},
        {name: 'Actions', cell: (row) => [button('Grant…', () => this.askGrant(row.user_id)),
          button('Password…', () => this.askPassword(row.user_id)), button('Delete…', () => this.askDelete(row.user_id), 'danger')]},
      ], users, 'There are no users beside the administrator.', 'Users'));
    });
  }

  async change(action, user, pattern, rights) {
    await attempt(async () => {
      await ask('POST', path('users', user, action), {topic: pattern, rights});
      note(action === 'grant' ? 'The rights were granted.' : 'The rights were revoked.');
      await this.list();
    });
  }

  askGrant(user) {
    form('Grant rights', [element('p', {}, 'To ', element('code', {}, shown(user))), patternField(), rightBoxes()], 'Grant', async (body) => {
      await ask('POST', path('users', user, 'grant'), {topic: body.elements.pattern.value, rights: chosenRights(body)});
      note('The rights were granted.');
      await this.list();
    });
  }

  askUser() {
    const name = element('input', {name: 'user', required: true, autocomplete: 'off', spellcheck: 'false', autocapitalize: 'off'});
    const admin = element('input', {type: 'checkbox', name: 'admin'});
    form('New user', [field('Name', name), passwordField('Password'), element('label', {class: 'check'}, admin, 'administrator'),
      patternField(), rightBoxes()], 'Create', async (body) => {
      const rights = admin.checked ? [] : [{topic: body.elements.pattern.value, rights: chosenRights(body)}];
      await ask('PUT', path('users', name.value), {password: body.elements.password.value, admin: admin.checked, rights});
      note(`The user '${name.value}' was created.`);
      await this.list();
    });
  }

  askPassword(user) {
    form('New password', [element('p', {}, 'Of ', element('code', {}, shown(user))), passwordField('New password')], 'Change', async (body) => {
      const password = body.elements.password.value;
      const change = () => ask('PUT', path('users', user, 'password'), {new_password: password});
      await (user === this.self ? changeLogin(user, password, change) : change());
      note('The password was changed.');
    });
  }

  askDelete(user) {
    confirmTyped('Delete the user', ['Everything that depends on the rights of ', element('code', {}, shown(user)), ' ends.'], user, 'Delete the user', async () => {
      await ask('DELETE', path('users', user));
      note('The user was deleted.');
      await this.list();
    });
  }
}
