"""Tests of the control protocol's commands as resources of HTTP: the same effects, rights and errors."""
import json

import pytest

from http_support import ASKER, HttpClient, basic, broker  # noqa: F401
from support import Secrets

PASSWORD = Secrets.plant("planted-command-secret-5772")
OTHER = Secrets.plant("planted-command-secret-1566")
TOPIC = "/api/v1/topics/orders"


@pytest.fixture
def http(broker):
    return HttpClient(broker, basic())


def send(http, method, path, **members):
    return http.ask(method, path, json.dumps(members).encode() if members else None)


def ok(http, method, path, status=200, **members):
    response = send(http, method, path, **members)
    assert response.status == status, response.body
    document = response.json()
    assert document["status"] == "ok"
    return document


def test_a_topic_from_its_creation_to_its_end(http, control):
    ok(http, "PUT", TOPIC, 201, broker_type="file", retention_bytes=1 << 30)
    again = send(http, "PUT", TOPIC, broker_type="file")
    assert (again.status, again.json()["code"]) == (409, "topic_already_exists")
    assert again.headers["Content-Type"] == "application/problem+json"
    assert [topic["topic"] for topic in ok(http, "GET", "/api/v1/topics")["topics"]] == ["orders"]
    ok(http, "PATCH", TOPIC, message_ttl_ms=60_000)
    assert ok(http, "GET", TOPIC) == control.ok("stats", **ASKER, topic="orders")
    ok(http, "POST", TOPIC + "/pause")
    assert ok(http, "GET", TOPIC)["paused"]
    ok(http, "POST", TOPIC + "/resume")
    assert http.ask("POST", TOPIC + "/messages", b"a").status == 200
    assert ok(http, "POST", TOPIC + "/purge?delayed=true")["messages"] == 1
    joined = ok(http, "POST", TOPIC + "/join", type="push")
    ok(http, "POST", TOPIC + "/leave", bind_uri=joined["bind_uri"])
    ok(http, "DELETE", TOPIC)
    gone = http.get(TOPIC)
    assert (gone.status, gone.json()["code"]) == (404, "topic_not_found")


def test_groups_and_dead_messages(http):
    ok(http, "PUT", TOPIC, 201, broker_type="queue")
    group = TOPIC + "/groups/g"
    ok(http, "PATCH", group, max_attempts=2)
    assert http.ask("POST", TOPIC + "/messages", b"a").status == 200
    lease = http.get(TOPIC + "/messages?group=g").json()["lease"]
    assert http.ask("POST", f"{TOPIC}/leases/{lease}/dead").status == 200
    dead = ok(http, "GET", group + "/dead?limit=5")["messages"]
    assert [message["offset"] for message in dead] == [0]
    assert ok(http, "POST", group + "/dead/retry?preview=true")["messages"] == 1
    assert ok(http, "POST", group + "/dead/purge", offsets=[0])["messages"] == 1
    moved = ok(http, "POST", group + "/seek?preview=true", position="first")
    assert {name: moved[name] for name in ("former_offset", "offset", "former_pending", "pending")} == \
        {"former_offset": 1, "offset": 1, "former_pending": 0, "pending": 0}, "the ring dropped the message"
    assert send(http, "POST", group + "/seek").json()["code"] == "invalid_request"
    for what in ("pause", "resume", "purge"):
        ok(http, "POST", f"{group}/{what}")
    ok(http, "DELETE", group)
    assert send(http, "DELETE", group).status == 404


def test_delayed_messages_and_schedules(http):
    ok(http, "PUT", TOPIC, 201, broker_type="queue_file")
    assert ok(http, "GET", TOPIC + "/delayed?limit=10&payload_bytes=8")["messages"] == []
    assert ok(http, "POST", TOPIC + "/delayed/cancel?preview=true")["messages"] == 0
    schedule = TOPIC + "/schedules/daily"
    ok(http, "PUT", schedule, cron="0 6 * * *", payload="report")
    assert len(ok(http, "GET", schedule + "?times=3")["schedules"][0]["next_ms"]) == 3
    ok(http, "POST", schedule + "/pause")
    ok(http, "POST", schedule + "/resume")
    assert [each["name"] for each in ok(http, "GET", "/api/v1/schedules")["schedules"]] == ["daily"]
    ok(http, "DELETE", schedule)
    assert send(http, "POST", schedule + "/pause").status == 404


def test_users(broker, http):
    ok(http, "PUT", "/api/v1/users/carol", 201, password=PASSWORD, rights=[{"topic": "orders", "rights": ["manage"]}])
    carol = HttpClient(broker, basic("carol", PASSWORD))
    ok(carol, "PUT", TOPIC, 201, broker_type="queue")
    refused = send(carol, "PUT", "/api/v1/topics/other", broker_type="queue")
    assert (refused.status, refused.json()["code"]) == (403, "unauthorized_access")
    assert send(carol, "GET", "/api/v1/users").status == 403
    ok(http, "POST", "/api/v1/users/carol/grant", topic="other", rights=["consume"])
    assert len(ok(http, "GET", "/api/v1/users")["users"][0]["rights"]) == 2
    ok(http, "POST", "/api/v1/users/carol/revoke", topic="other", rights=["consume"])
    ok(carol, "PUT", "/api/v1/users/carol/password", new_password=OTHER)
    assert carol.get(TOPIC).status == 401
    assert HttpClient(broker, basic("carol", OTHER)).get(TOPIC).status == 200
    ok(http, "PUT", "/api/v1/users/carol/password", new_password=PASSWORD)
    ok(http, "DELETE", "/api/v1/users/carol")
    assert send(http, "DELETE", "/api/v1/users/carol").status == 404


def test_a_topics_own_user(broker, http):
    ok(http, "PUT", TOPIC, 201, broker_type="queue", user_id="billing", password=PASSWORD)
    own = HttpClient(broker, basic("billing", PASSWORD))
    ok(own, "GET", TOPIC)
    ok(own, "PUT", TOPIC + "/password", user_id="billing", new_password=OTHER)
    assert own.get(TOPIC).status == 401
    assert HttpClient(broker, basic("billing", OTHER)).ask("POST", TOPIC + "/messages", b"a").status == 200


def test_statistics_of_all(http):
    ok(http, "PUT", TOPIC, 201, broker_type="queue")
    page = ok(http, "GET", "/api/v1/stats/topics?topics_max=1")
    assert [topic["topic"] for topic in page["topics"]] == ["orders"]
    assert ok(http, "GET", "/api/v1/stats")["topics"] == 1
    assert ok(http, "GET", "/api/v1/version")["protocol"] == 1


@pytest.mark.parametrize("method, path, members, words", [
    ("PUT", TOPIC, {"broker_type": "nothing"}, "broker_type"),
    ("PUT", TOPIC, {"broker_type": "queue", "topic": "other"}, "topic: it is given in the URL"),
    ("PUT", TOPIC, {"broker_type": "queue", "cmd": "ping"}, "cmd: not in the content"),
    ("PUT", TOPIC, {"broker_type": "queue", "admin_user_id": "x"}, "admin_user_id: not in the content"),
    ("POST", TOPIC + "/join", {"type": "push", "user_id": "x"}, "user_id: not in the content"),
    ("POST", TOPIC + "/pause", {"group": "g"}, "takes no content"),
    ("POST", TOPIC + "/pause?group=g", {}, "group: there is no such parameter"),
    ("POST", TOPIC + "/purge?delayed=yes", {}, "delayed: must be true or false"),
    ("GET", TOPIC + "/dead?limit=x", {}, "limit: must be a whole number"),
    ("GET", TOPIC + "/dead?limit=0", {}, "limit"),
    ("PUT", "/api/v1/topics/-", {"broker_type": "queue"}, "topic"),
])
def test_wrong_requests_change_nothing(http, method, path, members, words):
    refused = send(http, method, path, **members)
    assert refused.status == 400 and words in refused.json()["detail"], refused.body
    assert ok(http, "GET", "/api/v1/topics")["topics"] == []


@pytest.mark.parametrize("body", [b"{", b"[]", b"1", b'{"a":' + b"[" * 40 + b"]" * 40 + b"}", b'{"broker_type":"queue","broker_type":"file"}', b"\xff"])
def test_contents_that_are_no_object(http, body):
    refused = http.ask("PUT", TOPIC, body)
    assert refused.status == 400 and refused.json()["code"] in ("invalid_json", "invalid_request"), refused.body


def test_a_content_beyond_the_bound_of_commands(http):
    refused = http.ask("PUT", TOPIC, json.dumps({"broker_type": "queue", "x": "y" * 100_000}).encode())
    assert (refused.status, refused.json()["code"]) == (413, "request_too_large")


def test_without_a_login(broker):
    anybody = HttpClient(broker)
    for method, path in (("GET", "/api/v1/topics"), ("PUT", TOPIC), ("GET", TOPIC), ("DELETE", TOPIC), ("GET", "/api/v1/stats")):
        refused = anybody.ask(method, path)
        assert refused.status == 401 and "Basic" in refused.headers["WWW-Authenticate"], (method, path, refused.body)
    assert anybody.get("/api/v1/version").status == 200


def test_pages_of_other_sites_are_refused(http):
    for site in ("cross-site", "same-site"):
        assert http.get("/api/v1/topics", Sec_Fetch_Site=site).status == 403
    assert http.get("/api/v1/topics", Sec_Fetch_Site="none").status == 200


def test_the_openapi_document_names_every_resource(broker, http):
    document = HttpClient(broker).get("/api/v1/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    ids = [each["operationId"] for path in document["paths"].values() for each in path.values()]
    assert len(ids) == len(set(ids)) and len(ids) > 40, ids
    ok(http, "PUT", TOPIC, 201, broker_type="queue")
    for path, operations in document["paths"].items():
        names = {parameter["name"]: "x" for parameter in next(iter(operations.values()))["parameters"] if parameter["in"] == "path"}
        other = HttpClient(broker, basic()).ask("OPTIONS", path.format(**names))
        allowed = set(other.headers["Allow"].split(", ")) - {"HEAD"}
        assert other.status == 405 and allowed == {method.upper() for method in operations}, path


def test_other_methods(http):
    refused = http.ask("POST", TOPIC)
    assert refused.status == 405 and set(refused.headers["Allow"].split(", ")) == {"PUT", "GET", "HEAD", "PATCH", "DELETE"}
