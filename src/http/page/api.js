// Requests to the broker. The login stays in this module's memory: it is in no URL, no cookie and no storage of the
// browser, and ends with the page.

let authorization = '';
let whenExpired = () => {};
let isChanging = false;

const WAIT_MS = 35000;

// An answer that is an error. `status`: 0 if there is no answer.
export class ApiError extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

export function onExpired(call) {
  whenExpired = call;
}

export function setLogin(user, password) {
  const text = new TextEncoder().encode(user + ':' + password);
  authorization = 'Basic ' + btoa(String.fromCharCode(...text));
}

// Changes the own password by `action`, and logs in with it. Requests meanwhile may be refused: they do not end the login.
export async function changeLogin(user, password, action) {
  isChanging = true;
  try {
    await action();
    setLogin(user, password);
  } finally {
    isChanging = false;
  }
}

export function forgetLogin() {
  authorization = '';
}

export function isLoggedIn() {
  return authorization !== '';
}

// Returns a path below /api/v1/. A browser resolves the parts "." and "..", also when they are escaped, so such a
// name would address something else; a slash in a name would be taken for the end of the part.
export function path(...parts) {
  for (const part of parts) {
    if (part === '' || part === '.' || part === '..' || part.includes('/')) {
      throw new ApiError(0, 'invalid_request', `'${part}' cannot be a part of a URL: use the command line for it`);
    }
  }
  return '/api/v1/' + parts.map(encodeURIComponent).join('/');
}

// Sends a request and returns the content of the answer. `content`: an object, or a text if `type` is given.
// Throws ApiError.
export async function ask(method, where, content = null, type = null) {
  const sent = authorization;
  const options = {method, credentials: 'omit', cache: 'no-store', redirect: 'error', headers: {Authorization: sent},
    signal: AbortSignal.timeout(WAIT_MS)};
  if (content !== null) {
    options.headers['Content-Type'] = type || 'application/json';
    options.body = type ? content : JSON.stringify(content);
  }
  let answer;
  let text;
  try {
    answer = await fetch(where, options);
    text = await answer.text();
  } catch (error) {
    throw new ApiError(0, 'no_answer', 'the broker does not answer');
  }
  if (sent !== authorization) throw new ApiError(401, 'unauthorized_access', 'the login has ended');
  let document = {};
  try {
    document = JSON.parse(text);
  } catch (error) {
    if (answer.ok && !where.startsWith('/metrics')) throw new ApiError(answer.status, 'invalid_json', 'the answer is no JSON');
  }
  if (answer.status === 401 && sent !== '' && !isChanging) {
    forgetLogin();
    whenExpired();
  }
  if (!answer.ok) {
    throw new ApiError(answer.status, document.code || '', document.detail || `the broker answered with status ${answer.status}`);
  }
  return where.startsWith('/metrics') ? text : document;
}

export const get = (where) => ask('GET', where);
export const post = (where, content = null) => ask('POST', where, content);
