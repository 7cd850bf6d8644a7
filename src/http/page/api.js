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
  return documentOf(answer, text, sent);
}

// Returns the content of an answer. Throws ApiError. `sent`: the login of the request.
function documentOf(answer, text, sent) {
  if (sent !== authorization) throw new ApiError(401, 'unauthorized_access', 'the login has ended');
  let document = {};
  try {
    document = JSON.parse(text);
  } catch (error) {
    if (answer.ok) throw new ApiError(answer.status, 'invalid_json', 'the answer is no JSON');
  }
  if (answer.status === 401) expire(sent);
  if (!answer.ok) {
    throw new ApiError(answer.status, document.code || '', document.detail || `the broker answered with status ${answer.status}`);
  }
  return document;
}

function expire(sent) {
  if (sent === '' || sent !== authorization || isChanging) return;
  forgetLogin();
  whenExpired();
}

const EVENT_LENGTH_MAX = 64 * 1024 * 1024;  // of one event, far more than the statistics of 256 topics

// Yields the events of a stream: {name, data}. Ends with the stream, or throws ApiError.
export async function* events(where, signal) {
  const sent = authorization;
  const broken = () => new ApiError(0, 'no_answer', 'the connection has broken');
  let answer;
  try {
    answer = await fetch(where, {credentials: 'omit', cache: 'no-store', redirect: 'error', signal, headers: {Authorization: sent}});
    if (!answer.ok) documentOf(answer, await answer.text(), sent);
  } catch (error) {
    throw error instanceof ApiError ? error : broken();
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  while (true) {
    let part;
    try {
      part = await reader.read();
    } catch (error) {
      throw broken();
    }
    if (part.done) return;
    text += part.value;
    const pieces = text.split('\n\n');
    text = pieces.pop();
    if (text.length > EVENT_LENGTH_MAX) {
      reader.cancel().catch(() => {});
      throw new ApiError(0, 'too_large', 'the broker sends an event that does not end');
    }
    for (const piece of pieces) {
      const event = eventOf(piece);
      if (event === null) continue;
      if (event.name === 'end' && event.data.status === 401) expire(sent);
      yield event;
    }
  }
}

// Returns one event; null for a comment.
function eventOf(text) {
  const event = {name: 'message', data: null};
  for (const line of text.split('\n')) {
    if (line.startsWith('event: ')) event.name = line.slice(7);
    else if (line.startsWith('data: ')) event.data = JSON.parse(line.slice(6));
  }
  return event.data === null ? null : event;
}

// Returns the checks of the broker's progress: {ready, checks}. It answers without a login, also with status 503.
export async function readiness() {
  try {
    const answer = await fetch('/readyz', {credentials: 'omit', cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(WAIT_MS)});
    return await answer.json();
  } catch (error) {
    throw new ApiError(0, 'no_answer', 'the broker does not answer');
  }
}

export const get = (where) => ask('GET', where);
export const post = (where, content = null) => ask('POST', where, content);
