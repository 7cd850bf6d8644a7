"""Tests of live statistics as server-sent events, of the history of a topic, and of the lists of members, over HTTP."""
import json

import pytest

from conftest import brokers
from http_support import HTTP, EventReader, HttpClient, basic
from session_support import consumer_of
from support import ADMIN, ADMIN_PASSWORD, Secrets, until

pytestmark = pytest.mark.one_broker

ADMINISTRATOR = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
PASSWORD = Secrets.plant("planted-viewer-secret-1618")
EVENTS = "/api/v1/events"
TOPIC = "/api/v1/topics/orders"
VIEWERS_PER_SOURCE = 16


@pytest.fixture(scope="module")
def broker_of_the_file():
    with brokers() as make:
        yield make(*HTTP)


@pytest.fixture
def http(broker, control):
    control.create("orders")
    client = HttpClient(broker, basic())
    yield client
    client.close()


@pytest.fixture
def watch(broker):
    """Opens streams of statistics, and closes them at the end."""
    opened = []

    def open_stream(login=None, source=None):
        opened.append(EventReader(broker, EVENTS, basic() if login is None else login, source))
        return opened[-1]

    yield open_stream
    for events in opened:
        events.close()


def user(control, name, *patterns):
    control.ok("create_user", **ADMINISTRATOR, user_id=name, password=PASSWORD, rights=[{"topic": each, "rights": ["consume"]} for each in patterns])
    return basic(name, PASSWORD)


def a_round(events):
    """Returns the topics, by name, and the last event of the next round."""
    topics = {}
    while True:
        kind, _, data = events.next()
        assert kind == "stats", data
        topics.update((topic["topic"], topic) for topic in data["topics"])
        if data["complete"]:
            return topics, data


def round_with(events, holds):
    """Returns the first round for which `holds` is true, within ten rounds."""
    for _ in range(10):
        found = a_round(events)
        if holds(*found):
            return found
    raise AssertionError(f"not in ten rounds; the last one: {found}")


def publish(http, *payloads, path=TOPIC, key=None):
    lines = "".join(json.dumps({"payload": payload, **({"key": key} if key else {})}) + "\n" for payload in payloads)
    assert http.ask("POST", f"{path}/messages", lines.encode(), Content_Type="application/x-ndjson").status == 200


def take(http, group="g", path=TOPIC):
    return http.get(f"{path}/messages?group={group}&lease=60000").json()["lease"]


# --- Live statistics ---

def test_the_first_event_has_all_topics_and_later_ones_what_changes(http, control, watch):
    control.ok("create_topic", **ADMINISTRATOR, topic="still", broker_type="queue")
    publish(http, "a", path="/api/v1/topics/still")
    take(http, path="/api/v1/topics/still")
    events = watch()
    assert events.status == 200 and events.response.headers["Content-Type"] == "text/event-stream"
    topics, last = a_round(events)
    assert set(topics) == {"orders", "still"} and last["gone"] == [] and last["partial"] is False
    # The page's other source of statistics has the same members.
    page = {topic["topic"]: topic for topic in http.get("/api/v1/stats/topics").json()["topics"]}
    assert {name: set(topic) for name, topic in topics.items()} == {name: set(topic) for name, topic in page.items()}
    assert last["broker"]["version"] == http.get("/api/v1/version").json()["version"]
    assert 0 < last["process"]["resident_bytes"] < last["process"]["memory_max_bytes"]
    assert 0 < last["disk"]["free_bytes"] <= last["disk"]["size_bytes"] and last["disk"]["free_bytes_min"] > 0
    assert last["process"]["open_descriptors"] > 0 and last["connections"]["http"] >= 2
    publish(http, "a", "b")
    topics, _ = round_with(events, lambda topics, _: topics)
    assert {name: topic["messages_received"] for name, topic in topics.items()} == {"orders": 2}
    control.ok("delete_topic", **ADMINISTRATOR, topic="still")
    topics, last = round_with(events, lambda _, last: last["gone"])
    assert (topics, last["gone"]) == ({}, ["still"])


def test_a_user_sees_what_it_may_see_at_the_time_of_each_event(http, control, watch):
    control.ok("create_topic", **ADMINISTRATOR, topic="payments", broker_type="queue")
    events = watch(user(control, "ann", "orders"))
    topics, last = a_round(events)
    assert set(topics) == {"orders"} and not {"broker", "process", "connections"} & set(last)
    control.ok("grant", **ADMINISTRATOR, user_id="ann", topic="payments", rights=["consume"])
    assert set(round_with(events, lambda topics, _: topics)[0]) == {"payments"}
    control.ok("revoke", **ADMINISTRATOR, user_id="ann", topic="orders", rights=["consume"])
    assert round_with(events, lambda _, last: last["gone"])[1]["gone"] == ["orders"]


@pytest.mark.parametrize("end", [("set_password", {"new_password": PASSWORD + "2"}), ("delete_user", {})], ids=["password", "deleted"])
def test_a_stream_ends_with_its_login(http, control, watch, end):
    Secrets.plant(PASSWORD + "2")
    events = watch(user(control, "ann", "*"))
    a_round(events)
    control.ok(end[0], **ADMINISTRATOR, user_id="ann", **end[1])
    while (event := events.next())[0] == "stats":
        pass
    assert (event[0], event[2]["status"]) == ("end", 401) and events.next() is None


def with_place(watch, *where):
    """Opens a stream. Waits until the broker has heard of the ends of earlier tests' streams, which kept places until then."""
    return until(lambda: (events := watch(*where)).status == 200 and events, "a place")


def limits_reached(http):
    return http.get("/api/v1/stats").json()["limits_reached"]["http_viewers_max"]


def test_viewers_are_limited(http, watch):
    viewers = [with_place(watch) for _ in range(VIEWERS_PER_SOURCE)]
    before = limits_reached(http)
    refused = watch()
    assert refused.status == 429 and json.loads(refused.response.read())["code"] == "limit_reached"
    assert limits_reached(http) == before + 1
    viewers.pop().close()
    until(lambda: watch().status == 200, "there is a place again")


def test_viewers_of_a_user_are_limited_from_all_sources_together(http, control, watch):
    ann = user(control, "ann", "*")
    before = limits_reached(http)
    viewers = [watch(ann, f"127.0.0.{2 + i % 2}") for i in range(VIEWERS_PER_SOURCE)]
    assert {events.status for events in viewers} == {200}
    refused = watch(ann, "127.0.0.4")
    assert refused.status == 429 and json.loads(refused.response.read())["code"] == "limit_reached"
    assert limits_reached(http) == before + 1
    with_place(watch, basic(), "127.0.0.4")
    viewers.pop().close()
    until(lambda: watch(ann, "127.0.0.4").status == 200, "there is a place again")


def test_wrong_requests_for_events(broker, http, watch):
    assert watch({}).status == watch(basic("nobody", PASSWORD)).status == 401
    assert http.get(EVENTS + "?topic=orders").status == 400
    assert http.ask("HEAD", EVENTS).status == 405 and http.ask("POST", EVENTS, b"").status == 405


# --- History ---

def test_the_broker_remembers_the_course_of_a_topic(broker, http, control):
    assert http.get(TOPIC + "/history").json()["seconds"] == {"step_ms": 1000, "in": [], "out": [], "pending": [], "lag": []}
    take_nothing = http.get(TOPIC + "/messages?group=g")
    assert take_nothing.status == 200
    publish(http, *"abcde")
    take(http)

    def course():
        return http.get(TOPIC + "/history").json()

    until(lambda: sum(course()["seconds"]["in"]) == 5 and course()["seconds"]["pending"][-1] == 5, lambda: course())
    found = course()
    assert sum(found["seconds"]["out"]) == 1 and found["seconds"]["lag"][-1] == 4
    assert {len(found["seconds"][side]) for side in ("in", "out", "pending", "lag")} == {len(found["seconds"]["in"])}
    assert found["minutes"]["step_ms"] == 60000 and found["minutes"]["pending"][-1] == 5
    many = len(found["seconds"]["in"])
    until(lambda: len(course()["seconds"]["in"]) > many and course()["seconds"]["in"][-1] == 0, "it goes on while nothing moves")


def test_a_history_needs_a_right_on_the_topic(broker, http, control):
    ann = HttpClient(broker, user(control, "ann", "orders"))
    control.ok("create_topic", **ADMINISTRATOR, topic="payments", broker_type="queue")
    assert ann.get(TOPIC + "/history").status == 200
    assert ann.get("/api/v1/topics/payments/history").status == 403
    assert ann.get("/api/v1/topics/nothing/history").status == 403 and http.get("/api/v1/topics/nothing/history").status == 404
    assert ann.get(TOPIC + "/history?from=1").status == 400 and HttpClient(broker).get(TOPIC + "/history").status == 401


# --- Members ---

def test_the_members_of_groups_are_listed_up_to_a_limit(broker, http, control):
    ann = HttpClient(broker, user(control, "ann", "orders"))
    publish(http, *"abc")
    take(http, "one")
    take(ann, "one")
    take(ann, "two")

    def members(most):
        groups = http.get(f"{TOPIC}?members_max={most}").json()["groups"]
        return {group["group"]: [(each["user_id"], each["in_flight"]) for each in group["members"]] for group in groups}

    # The administrator has no name.
    assert members(10) == {"one": [("", 1), ("ann", 1)], "two": [("ann", 1)]}
    assert sum(map(len, members(2).values())) == 2
    first = http.get(f"{TOPIC}?members_max=1").json()["groups"][0]["members"][0]
    assert first["number"] == 0 and first["since_ms"] > 1_600_000_000_000 and "heard_ms" not in first
    assert "members" not in http.get(TOPIC).json()["groups"][0]
    assert http.get(f"{TOPIC}?members_max=1001").status == 400
    # A user that may not manage the topic sees no names.
    assert {each["user_id"] for group in ann.get(f"{TOPIC}?members_max=10").json()["groups"] for each in group["members"]} == {""}
    control.ok("grant", **ADMINISTRATOR, user_id="ann", topic="orders", rights=["manage"])
    assert {each["user_id"] for group in ann.get(f"{TOPIC}?members_max=10").json()["groups"] for each in group["members"]} == {"", "ann"}


def test_a_member_over_a_session_is_heard(http, control, session):
    consumer_of(control, session, "orders", "g", credit=(7, 1000))

    def member():
        groups = http.get(f"{TOPIC}?members_max=5").json()["groups"]
        return groups[0]["members"][0] if groups and groups[0]["members"] else {}

    until(lambda: member().get("credit_messages") == 7, lambda: member())
    assert (member()["in_flight"], member()["credit_bytes"]) == (0, 1000) and 0 <= member()["heard_ms"] < 60_000


# --- Search by key ---

def test_messages_are_found_by_their_key(http):
    for i in range(5):
        publish(http, f"a{i}", key="a")
        publish(http, f"b{i}", key="b")

    def found(query):
        answer = http.get(f"{TOPIC}/browse?{query}").json()
        return [message["payload"] for message in answer["messages"]], answer

    payloads, answer = found("key=b&max=2")
    assert payloads == ["b0", "b1"] and answer["next"] == 4 and answer["scanned"] == 4
    payloads, answer = found(f"key=b&max=100&from={answer['next']}")
    assert payloads == ["b2", "b3", "b4"] and (answer["next"], answer["scanned"]) == (10, 6)
    assert found("key_base64=YQ%3D%3D")[0] == [f"a{i}" for i in range(5)]
    assert found("key=")[0] == [] and found("key=A")[0] == []
    assert "scanned" not in found("max=1")[1]
    assert [http.get(f"{TOPIC}/browse?{query}").status for query in ("key_base64=%3F", "key=a&key_base64=YQ%3D%3D", "key=" + "k" * 1025)] == [400] * 3
    assert http.get(TOPIC).json()["groups"] == []


def test_a_search_within_long_batches_misses_nothing(http):
    """The search of such a batch takes several turns of the broker."""
    lines = [{"payload": "", "key": "a"}] * 8_000 + [{"payload": str(number), "key": "z"} for number in range(1_500)]
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    assert http.ask("POST", f"{TOPIC}/messages?confirm=received", content, Content_Type="application/x-ndjson").status == 200
    found, place = [], 0
    for expected in 1_000, 500:
        answer = http.get(f"{TOPIC}/browse?key=z&max=1000&from={place}").json()
        assert len(answer["messages"]) == expected
        found += [int(message["payload"]) for message in answer["messages"]]
        place = answer["next"]
    assert found == list(range(1_500))


def test_a_search_ends_after_a_bounded_number_of_messages(http):
    lines = json.dumps({"payload": "", "key": "a"}) + "\n"
    for _ in range(21):
        assert http.ask("POST", f"{TOPIC}/messages?confirm=received", (lines * 10_000).encode(), Content_Type="application/x-ndjson").status == 200
    answer = http.get(f"{TOPIC}/browse?key=b").json()
    assert (answer["messages"], answer["scanned"], answer["next"]) == ([], 200_000, 200_000)
    answer = http.get(f"{TOPIC}/browse?key=b&from={answer['next']}").json()
    assert (answer["messages"], answer["scanned"], answer["next"]) == ([], 10_000, 210_000)
