"""Tests of messages as server-sent events, and of reading them without a group, over HTTP."""
import json
import subprocess

import pytest

from http_support import ASKER, HTTP, EventReader, HttpClient, address_of, administrator, basic, broker  # noqa: F401
from support import ADMIN, ADMIN_PASSWORD, Secrets, until

PASSWORD = Secrets.plant("planted-stream-secret-3141")
TOPIC = "/api/v1/topics/orders"
STREAM, BROWSE = TOPIC + "/stream", TOPIC + "/browse"


def publish(http, *payloads, path=TOPIC):
    body = "".join(json.dumps({"payload": payload}) + "\n" for payload in payloads)
    done = http.ask("POST", f"{path}/messages?confirm=received", body.encode(), Content_Type="application/x-ndjson")
    assert done.status == 200, done.body


def numbered(begin, end):
    return [f"m{i}" for i in range(begin, end)]


def group_of(http, name="g"):
    return next(each for each in http.get(TOPIC).json()["groups"] if each["group"] == name)


def settle(http, lease, what, query=""):
    return http.ask("POST", f"{TOPIC}/leases/{lease}/{what}{query}")


def make_user(control, name, *rights):
    control.ok("create_user", **ASKER, user_id=name, password=PASSWORD, rights=[{"topic": pattern, "rights": [right]} for pattern, right in rights])
    return basic(name, PASSWORD)


# --- Stream without a group ---

def test_a_stream_without_a_group_changes_nothing_and_resumes(broker, http):
    publish(http, *numbered(0, 3))
    events = EventReader(broker, f"{STREAM}?from=first", basic())
    assert events.status == 200 and events.response.headers["Content-Type"] == "text/event-stream"
    kind, last, message = events.next()
    assert (kind, last, message["offset"], message["payload"]) == (None, "0", 0, "m0") and "delivery" not in message
    assert events.payloads(2) == ["m1", "m2"]
    publish(http, "m3")
    kind, last, message = events.next()
    assert (last, message["payload"]) == ("3", "m3")
    events.close()
    until(lambda: http.get(TOPIC).json()["groups"] == [], lambda: "the cursor has ended with its stream")
    publish(http, "m4")
    resumed = EventReader(broker, STREAM, basic(), Last_Event_ID=last)
    assert resumed.payloads(1) == ["m4"]


def test_a_stream_begins_with_new_messages_or_at_a_time(broker, http):
    publish(http, "old")
    events = EventReader(broker, STREAM, basic())
    publish(http, "new")
    assert events.payloads(1) == ["new"]
    stored = http.get(f"{BROWSE}?from=1").json()["messages"][0]["stored_us"]
    assert EventReader(broker, f"{STREAM}?time_us={stored}", basic()).payloads(1) == ["new"]
    assert EventReader(broker, f"{STREAM}?from=0", basic()).payloads(2) == ["old", "new"]


def test_a_slow_reader_gets_all_messages_with_bounded_memory(broker, http):
    events = EventReader(broker, f"{STREAM}?group=g&max=50", basic())
    lease = events.next()[2]["lease"]
    publish(http, *numbered(0, 300))
    until(lambda: group_of(http)["in_flight"] == 50, lambda: "only so many messages are under way")
    assert events.payloads(50) == numbered(0, 50)
    assert settle(http, lease, "acknowledge").json()["messages"] == 50
    assert events.payloads(50) == numbered(50, 100)
    events.close()
    until(lambda: group_of(http)["in_flight"] == 0, lambda: "the stream's messages are given back")


def test_much_text_towards_a_reader_that_waits(broker, http):
    events = EventReader(broker, f"{STREAM}?from=first", basic())
    for i in range(40):
        publish(http, *(f"{i}.{j}:" + "x" * 5000 for j in range(20)))
    assert [text[:text.index(":")] for text in events.payloads(800)] == [f"{i}.{j}" for i in range(40) for j in range(20)]


# --- Stream with a group ---

def test_messages_of_a_group_are_acknowledged_by_the_lease(broker, http):
    publish(http, *numbered(0, 3))
    events = EventReader(broker, f"{STREAM}?group=g", basic())
    kind, _, opened = events.next()
    assert kind == "lease"
    first = events.next()[2]
    assert (first["payload"], first["delivery"]) == ("m0", 1)
    assert events.payloads(2) == ["m1", "m2"]
    assert settle(http, opened["lease"], "acknowledge", "?offsets=0,2").json() == {"messages": 2, "in_flight": 1, "late": []}
    events.close()
    again = EventReader(broker, f"{STREAM}?group=g", basic())
    assert again.next()[0] == "lease"
    assert again.next()[2]["payload"] == "m1", "what was not acknowledged is delivered again"
    assert settle(http, opened["lease"], "acknowledge").status == 410, "the lease has ended with its stream"


def test_messages_return_to_the_stream_after_their_time(broker, http):
    publish(http, "m0")
    events = EventReader(broker, f"{STREAM}?group=g&lease=1000&max=1", basic())
    lease = events.next()[2]["lease"]
    assert events.next()[2]["delivery"] == 1
    again = events.next()[2]
    assert (again["payload"], again["delivery"]) == ("m0", 2)
    assert settle(http, lease, "retry").json()["messages"] == 1
    assert events.next()[2]["delivery"] == 3
    assert settle(http, lease, "dead", "?reason=never").json()["messages"] == 1
    publish(http, "m1")
    assert events.payloads(1) == ["m1"]


def test_streams_and_requests_share_a_group(broker, http):
    events = EventReader(broker, f"{STREAM}?group=g&ack=now", basic())
    publish(http, "m0")
    assert events.payloads(1) == ["m0"], "without a lease to tell"
    events.close()
    until(lambda: group_of(http)["consumers"] == 0, lambda: "the stream has left")
    publish(http, "m1")
    taken = http.get(f"{TOPIC}/messages?group=g&wait=10000").json()
    assert [message["payload"] for message in taken["messages"]] == ["m1"]


def test_a_stream_over_tls(make_broker):
    broker = make_broker(*HTTP, "--encrypt")
    http = HttpClient(broker, basic())
    assert http.ask("PUT", TOPIC, b'{"broker_type":"queue"}').status == 201
    events = EventReader(broker, f"{STREAM}?group=g&ack=now", basic())
    for begin in range(0, 300, 100):
        publish(http, *(f"{i}:" + "x" * 3000 for i in range(begin, begin + 100)))
    assert [text.split(":")[0] for text in events.payloads(300)] == [str(i) for i in range(300)]
    events.close()
    until(lambda: group_of(http)["consumers"] == 0, lambda: "the broker sees the end")


# --- Ends ---

def test_a_stream_ends_with_its_right(broker, http, control):
    login = make_user(control, "consumer", ("orders", "consume"))
    streams = [EventReader(broker, f"{STREAM}{query}", login) for query in ("", "?group=g")]
    assert streams[1].next()[0] == "lease"
    control.ok("revoke", **ASKER, user_id="consumer", topic="orders", rights=["consume"])
    for events in streams:
        kind, _, problem = events.next()
        assert (kind, problem["status"], problem["code"]) == ("end", 403, "unauthorized_access")
        assert events.next() is None
    refused = EventReader(broker, STREAM, login)
    assert refused.status == 403


def test_a_stream_ends_with_its_topic(broker, http, control):
    events = EventReader(broker, STREAM, basic())
    control.ok("delete_topic", **ASKER, topic="orders")
    kind, _, problem = events.next()
    assert (kind, problem["status"], problem["code"]) == ("end", 404, "topic_not_found")
    assert events.next() is None and EventReader(broker, STREAM, basic()).status == 404


def test_a_stream_ends_with_the_broker(broker, http):
    events = EventReader(broker, STREAM, basic())
    broker.stop()
    last = events.next()
    assert last is None or last[2]["code"] == "shutting_down"


def test_streams_of_a_source_are_limited(broker, http):
    streams = [EventReader(broker, STREAM, basic()) for _ in range(64)]
    assert {events.status for events in streams} == {200}
    assert EventReader(broker, STREAM, basic()).status == 429
    assert http.get("/api/v1/stats").json()["limits_reached"]["http_streams_max"] == 1
    streams.pop().close()
    until(lambda: EventReader(broker, STREAM, basic()).status == 200, lambda: "there is a place again")


def test_streams_of_a_user_are_limited_from_all_sources_together(broker, http, control):
    ann = make_user(control, "ann", ("*", "consume"))
    streams = [EventReader(broker, STREAM, ann, f"127.0.0.{2 + i % 2}") for i in range(64)]
    assert {events.status for events in streams} == {200}
    refused = EventReader(broker, STREAM, ann, "127.0.0.4")
    assert refused.status == 429 and json.loads(refused.response.read())["code"] == "limit_reached"
    assert http.get("/api/v1/stats").json()["limits_reached"]["http_streams_max"] == 1
    assert EventReader(broker, STREAM, basic(), "127.0.0.4").status == 200, "others have places"
    streams.pop().close()
    until(lambda: EventReader(broker, STREAM, ann, "127.0.0.4").status == 200, lambda: "there is a place again")


@pytest.mark.parametrize("query, headers", [("max=0", {}), ("max=1001", {}), ("from=middle", {}), ("from=-1", {}), ("group=-", {}), ("nothing=1", {}), ("ack=x", {}),
                                            ("from=0&time_us=1", {}), ("group=g&from=3", {}), ("lease=1", {}), ("", {"Last-Event-ID": "x"})])
def test_wrong_parameters(http, query, headers):
    refused = http.get(f"{STREAM}?{query}", **headers)
    assert refused.status == 400 and refused.json()["code"] == "invalid_request", refused.body


def test_rights_of_streams(broker, http, control):
    grouped = make_user(control, "grouped", ("orders:g", "consume"))
    assert EventReader(broker, f"{STREAM}?group=g", grouped).next()[0] == "lease"
    assert EventReader(broker, f"{STREAM}?group=other", grouped).status == 403
    assert EventReader(broker, STREAM, grouped).status == 403, "reading without a group needs a right on all groups"
    assert EventReader(broker, STREAM).status == 401
    assert http.ask("HEAD", STREAM).status == 405


@pytest.mark.clear
def test_curl_reads_a_stream(broker, http):
    publish(http, "m0")
    _, host, port = address_of(broker)
    heard = subprocess.run(["curl", "--silent", "--no-buffer", "--max-time", "1", "--user", f"{ADMIN}:{ADMIN_PASSWORD}",
                            f"http://{host}:{port}{STREAM}?from=first"], capture_output=True, check=False, text=True)
    assert 'id: 0\ndata: {"offset":0,' in heard.stdout, heard


# --- Browse ---

def test_browsing_changes_nothing(http):
    publish(http, *numbered(0, 5))
    http.ask("POST", f"{TOPIC}/messages", b"\xff", Lightq_Key="k")
    read = http.get(BROWSE).json()
    assert (read["next"], read["lost"]) == (6, 0)
    assert [message["offset"] for message in read["messages"]] == list(range(6))
    assert read["messages"][5]["payload_base64"] == "/w==" and read["messages"][5]["key"] == "k"
    assert http.get(f"{BROWSE}?from=2&max=2").json()["messages"] == read["messages"][2:4]
    assert http.get(f"{BROWSE}?from=2&max=2").json()["next"] == 4
    assert http.get(f"{BROWSE}?from=6").json() == {"next": 6, "lost": 0, "messages": []}
    assert http.get(f"{BROWSE}?from=600").json()["messages"] == []
    assert http.get(TOPIC).json()["groups"] == []
    taken = http.get(f"{TOPIC}/messages?group=g").json()["messages"]
    assert (taken[0]["payload"], taken[0]["delivery"]) == ("m0", 1)


def test_messages_are_as_the_document_says(broker, http):
    http.ask("POST", f"{TOPIC}/messages", b"a", Lightq_Key="k", Lightq_Time="1", Lightq_Header_Colour="red", Lightq_Ttl="1000000")
    schema = http.get("/api/v1/openapi.json").json()["components"]["schemas"]["StoredMessage"]
    events = EventReader(broker, f"{STREAM}?group=g", basic())
    events.next()
    for message in (http.get(BROWSE).json()["messages"][0], events.next()[2], http.get(f"{TOPIC}/messages?group=other").json()["messages"][0]):
        assert set(schema["required"]) <= set(message) <= set(schema["properties"]), message
        types = {"integer": int, "string": str, "array": list, "boolean": bool}
        assert all(isinstance(value, types[schema["properties"][name]["type"]]) for name, value in message.items()), message


def test_browsing_after_a_restart(broker, http):
    publish(http, *numbered(0, 500))
    broker.stop()
    broker.start()
    read = HttpClient(broker, basic()).get(f"{BROWSE}?from=400&max=1000").json()
    assert [message["payload"] for message in read["messages"]] == numbered(400, 500) and read["next"] == 500


def test_browsing_lines_and_times(http):
    publish(http, "m0")
    publish(http, "m1")
    lines = http.get(BROWSE, Accept="application/x-ndjson")
    assert lines.headers["Content-Type"] == "application/x-ndjson"
    assert (lines.headers["Lightq-Next"], lines.headers["Lightq-Lost"]) == ("2", "0")
    messages = [json.loads(line) for line in lines.body.splitlines()]
    assert [message["payload"] for message in messages] == ["m0", "m1"]
    since = http.get(f"{BROWSE}?time_us={messages[1]['stored_us']}").json()
    assert since["messages"] == messages[1:]
    assert http.get(f"{BROWSE}?time_us=9000000000000000").json()["messages"] == []


def test_browsing_is_bounded(http):
    for _ in range(8):
        publish(http, *("x" * 200_000 for _ in range(4)))
    read = http.get(f"{BROWSE}?max=1000").json()
    assert 5 <= len(read["messages"]) <= 7 and read["next"] == len(read["messages"])


def test_browsing_a_topic_in_memory_that_has_dropped_messages(http, control):
    control.ok("create_topic", **ASKER, topic="small", broker_type="queue", ring_bytes=1 << 16, overflow="drop_oldest")
    for i in range(50):
        publish(http, f"{i}:" + "x" * 4000, path="/api/v1/topics/small")
    read = http.get("/api/v1/topics/small/browse?from=0&max=1").json()
    assert read["lost"] > 0 and read["messages"][0]["offset"] == read["lost"]


def test_rights_of_browsing(broker, http, control):
    reader = HttpClient(broker, make_user(control, "reader", ("orders", "consume")))
    grouped = HttpClient(broker, make_user(control, "grouped", ("orders:g", "consume")))
    producer = HttpClient(broker, make_user(control, "producer", ("orders", "produce")))
    assert [client.get(BROWSE).status for client in (reader, grouped, producer, HttpClient(broker))] == [200, 403, 403, 401]
    assert http.get("/api/v1/topics/nothing/browse").status == 404


@pytest.mark.parametrize("query", ["max=0", "max=1001", "from=x", "from=1&time_us=1", "time_us=-1", "group=g", "from=99999999999999999999"])
def test_wrong_parameters_of_browsing(http, query):
    assert http.get(f"{BROWSE}?{query}").status == 400
