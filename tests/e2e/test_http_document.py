"""Requests made of the OpenAPI document, fitting and unfitting, to a running broker: no error of the server, and no answer
that the document does not describe."""
import json

import hypothesis
import pytest
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir

from conftest import brokers
from document_support import Document
from harness import variable
from http_support import ASKER, HTTP, HttpClient, basic
from support import Secrets

PASSWORD = Secrets.plant("planted-document-secret-2236")
EXAMPLES = int(variable("LIGHTQ_EXAMPLES", 20))  # of each operation
SEED = int(variable("LIGHTQ_SEED", 1))
LOGIN = "/api/v1/users"
MESSAGES = "/api/v1/topics/orders/messages"

# Values of the path's variables: things that exist, and some that do not.
NAMES = {"topic": ["orders", "orders", "orders", "ring", "missing"], "group": ["g", "g", "missing"], "name": ["daily"],
         "user_id": ["ann", "ann", "bob"], "lease": ["0" * 16]}
# A content that each operation accepts, and names in its path for which it does so. Others accept an empty one.
CONTENTS = {
    "create_topic": {"broker_type": "queue"}, "set_topic": {"message_ttl_ms": 60_000}, "join": {"type": "push"},
    "leave": {"bind_uri": "tcp://127.0.0.1:1"}, "set_password": {"new_password": PASSWORD}, "set_group_of_group": {"max_attempts": 5},
    "seek_group_of_group": {"position": "first"}, "reschedule_delayed": {"numbers": [0], "delay_us": 3_600_000_000},
    "set_schedule_of_name": {"cron": "0 9 * * *", "payload": "p"}, "create_user_of_user_id_of_all": {"password": PASSWORD},
    "set_password_of_user_id_of_all": {"new_password": PASSWORD}, "publish": {"payload": "p"},
    "grant_of_user_id_of_all": {"topic": "*", "rights": ["consume"]}, "revoke_of_user_id_of_all": {"topic": "*", "rights": ["consume"]},
}
WANTED = {"create_topic": {"topic": ["new", "newer"]}, "create_user_of_user_id_of_all": {"user_id": ["carl", "dora"]},
          "set_password": {"topic": ["owned"]}, "delete_topic": {"topic": ["new", "newer"]},
          "trace": {"topic": ["orders"], "offset": ["0"]}}
# These need something that only another answer names.
NEVER = {"leave"}
# Values of members of contents, some of them wrong.
MEMBERS = {
    "broker_type": ["file", "queue", "queue_file", "direct", "disk"], "overflow": ["block", "reject", "drop_oldest", ""],
    "capacity_bytes": [0, 1, 1 << 20, 1 << 62], "retention_bytes": [0, 1 << 20], "retention_ms": [0, 1000], "ring_bytes": [0, 1 << 20, 1 << 62],
    "segment_bytes": [1 << 16, 1], "message_ttl_ms": [0, 60_000, 1 << 60], "open": [True, False], "type": ["push", "pull", "sub", "x"],
    "group": ["g", "missing", ""], "offsets": [[0], [0, 3], ["a"], []], "offset": [0, 7, 1 << 63], "position": ["first", "next", "middle"],
    "time_ms": [0, 1, 1 << 53], "max_attempts": [0, 1, 1 << 40], "backoff_ms": [[], [1, 2], [-1]], "dead_letter_topic": ["letters", "orders", ""],
    "cause": ["attempts", "x"], "numbers": [[0], [1, 2], []], "id": ["a", ""], "key": ["k", ""], "deliver_at_us": [1, 1 << 62], "delay_us": [0, 1 << 62], "delay_ms": [1, 0],
    "cron": ["0 9 * * *", "61 * * * *", ""], "zone": ["UTC", "Mars/Base"], "payload": ["p", "\0"], "payload_base64": ["AAA=", "?"],
    "admin": [True, False], "rights": [[], [{"topic": "*", "rights": ["consume"]}], ["manage"]], "password": [PASSWORD, ""],
    "new_password": [PASSWORD], "topic": ["*", "orders", "a b"], "headers": [[], [{"name": "n", "value": "v"}], [{"name": ""}]],
    "retention_messages": [0, 7], "retention_over_pending": [True, False], "encrypt_at_rest": [False], "transport": ["tcp", "ipc"],
    "connection_type": ["zmq", "socket", "pipe"], "delivery": ["plain", "session"], "client_key": ["x" * 40, "short"],
    "processing_timeout_ms": [None, 0, 1 << 32], "dead_waiting_max": [1, 0], "pause_when_failing": [True, False],
    "dead_letter_expired": [True, False], "state": ["parked", "alive"], "failed_since_ms": [0, 1 << 60], "failed_until_ms": [0, 1],
    "ranges": [[[0, 2]], [[2, 0]], [[1]], []], "due_from_us": [0, -1], "due_until_us": [0, 1 << 62], "missed": ["skip", "once", "all"],
    "uid": [1, 4_294_967_294, 1 << 32], "key_base64": ["AAA=", "?"],
    "time_us": [1, 0], "ttl_ms": [1, 0], "at_us": [1, 1 << 62], "preview": [True], "user_id": ["ann"], "bind_uri": ["tcp://127.0.0.1:1"],
}
WAITS = {"wait": 20, "max": 3}  # milliseconds, and messages in an answer


@pytest.fixture(scope="module", autouse=True)
def home_of_hypothesis(tmp_path_factory):
    """Keeps its tables of characters out of the repository."""
    set_hypothesis_home_dir(tmp_path_factory.mktemp("hypothesis"))


@pytest.fixture(scope="module")
def broker():
    with brokers() as make:
        made = make(*HTTP, "--requests-per-second", "1000000")
        control = made.control()
        for topic, kind in (("orders", "queue_file"), ("letters", "file"), ("ring", "queue")):
            control.ok("create_topic", **ASKER, topic=topic, broker_type=kind)
        control.ok("create_topic", **ASKER, topic="owned", broker_type="queue", user_id="owner", password=PASSWORD)
        control.ok("create_user", **ASKER, user_id="ann", password=PASSWORD, rights=[{"topic": "*", "rights": ["consume"]}])
        yield made


@pytest.fixture(scope="module")
def document(broker):
    return Document(HttpClient(broker).get("/api/v1/openapi.json").json())


def send(broker, http, method, target, headers, content):
    """Sends a request, over a connection of its own if the answer may not end."""
    if not target.partition("?")[0].endswith(("/stream", "/events")):
        return http.ask(method, target, content, **headers)
    return StreamStart(broker, http.login, target, headers)


class StreamStart:
    """The beginning of an answer: the whole one, unless it is a stream."""

    def __init__(self, broker, login, target, headers):
        client = HttpClient(broker, login)
        client.connection.request("GET", target, None, {**login, **headers})
        response = client.connection.getresponse()
        self.status, self.headers = response.status, response.headers
        self.body = b"" if response.status == 200 else response.read()
        response.close()
        client.close()


RANDOM = hypothesis.settings(max_examples=EXAMPLES, deadline=None, database=None, phases=[hypothesis.Phase.generate],
                             suppress_health_check=list(hypothesis.HealthCheck))


def ask_at_random(operation, ask, **names):
    """Sends requests of one operation and checks the answers. `names`: of the path. Returns the statuses."""
    statuses = set()

    @hypothesis.seed(SEED)
    @RANDOM
    @hypothesis.given(operation.requests({**NAMES, **WANTED.get(operation.name, {}), **names}, CONTENTS.get(operation.name), MEMBERS, WAITS))
    def check(request):
        response = ask(operation.method, *request)
        statuses.add(response.status)
        operation.check(response)

    check()
    return statuses


def prepare(http):
    """Makes the things that an operation needs, if earlier ones have removed it."""
    http.ask("PUT", "/api/v1/topics/orders", b'{"broker_type":"queue_file"}')
    http.ask("PATCH", "/api/v1/topics/orders/groups/g", b'{"max_attempts":5}')
    http.ask("POST", "/api/v1/topics/orders/resume")
    http.ask("PUT", "/api/v1/topics/orders/schedules/daily", b'{"cron":"0 9 * * *","payload":"p"}')
    http.ask("PUT", f"{LOGIN}/ann", json.dumps({"password": PASSWORD}).encode())
    assert http.ask("POST", MESSAGES, b"m").status == 200
    assert http.ask("POST", MESSAGES, b"m", Lightq_Delay="3600000").status == 200
    assert http.get(f"{MESSAGES}?group=g&ack=now").status == 200


def test_every_answer_is_described(broker, document):
    """LIGHTQ_EXAMPLES sets the requests for each operation, LIGHTQ_SEED chooses others."""
    http = HttpClient(broker, basic())
    seen = {}
    for operation in document.operations:
        prepare(http)
        lease = http.get(f"{MESSAGES}?group=leased&lease=60000").json()["lease"]
        seen[operation.name] = ask_at_random(operation, lambda *request: send(broker, http, *request), lease=[lease])
    assert http.get(LOGIN).status == 200, "the login is as before"
    refused = {name: statuses for name, statuses in seen.items() if name not in NEVER and not statuses & {200, 201, 204}}
    assert not refused, f"no request for these was accepted: {refused}"


def test_without_a_login_only_what_the_document_opens(broker, document):
    http = HttpClient(broker)
    for operation in document.operations:
        content = json.dumps(CONTENTS.get(operation.name, {})).encode() if "requestBody" in operation.described else None
        needed = [each["name"] for each in operation.parameters if each["in"] == "query" and each.get("required")]
        query = {name: WANTED[operation.name][name][0] for name in needed}
        target, headers, content = operation.request({name: values[0] for name, values in NAMES.items()}, query, {}, (content, None))
        response = send(broker, http, operation.method, target, headers, content)
        operation.check(response)
        assert (response.status == 401) == operation.needs_login, f"{operation.name}: {response.status} {response.body}"


@hypothesis.seed(SEED)
@RANDOM
@hypothesis.given(st.data())
def test_other_methods_are_refused(broker, document, data):
    http = HttpClient(broker, basic())
    path = data.draw(st.sampled_from(sorted(document.document["paths"])))
    known = {method.upper() for method in document.document["paths"][path]}
    method = data.draw(st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"]).filter(lambda each: each not in known))
    response = http.ask(method, path.format(**{name: values[0] for name, values in NAMES.items()}))
    assert response.status == 405 and response.headers["Content-Type"] == "application/problem+json", f"{method} {path}: {response.body}"
    assert set(response.headers["Allow"].split(", ")) - {"HEAD"} == known
    http.close()
