"""Tests of publishing over HTTP with an id or a delay, and of names with a slash in the path."""
import json
import threading
import time

import pytest

from http_support import ASKER, HttpClient, administrator, basic, broker  # noqa: F401
from support import Secrets, until

PASSWORD = Secrets.plant("planted-id-secret-2718")
TOPIC = "/api/v1/topics/orders"
MESSAGES = TOPIC + "/messages"


def publish(http, body, path=MESSAGES, **headers):
    done = http.ask("POST", path, body, **headers)
    assert done.status == 200, done.body
    return done.json()


def stored(http, topic=TOPIC):
    return [message["payload"] for message in http.get(f"{topic}/browse").json()["messages"]]


# --- Ids ---

def test_a_message_with_an_id_is_stored_once(http):
    first = publish(http, b"one", Lightq_Id="order 1")
    assert first == {"first_offset": 0, "messages": 1, "flushed": True}
    assert publish(http, b"two", Lightq_Id="order 2")["first_offset"] == 1
    assert publish(http, b"one", Lightq_Id="order 1") == {"first_offset": 0, "messages": 1, "flushed": True, "repeated": True}
    assert publish(http, b"changed", Lightq_Id="order 2", path=MESSAGES + "?confirm=received")["first_offset"] == 1
    assert stored(http) == ["one", "two"]
    assert http.get(TOPIC).json()["duplicates"] == 2
    assert http.get(f"{TOPIC}/browse?max=1").json()["messages"][0]["headers"] == [{"name": "lightq-id", "value": "order 1"}]


def test_an_id_belongs_to_a_user_and_a_topic(broker, http, control):
    control.ok("create_topic", **ASKER, topic="other", broker_type="queue")
    control.ok("create_user", **ASKER, user_id="ann", password=PASSWORD, rights=[{"topic": "orders", "rights": ["produce"]}])
    ann = HttpClient(broker, basic("ann", PASSWORD))
    assert publish(http, b"a", Lightq_Id="1")["first_offset"] == 0
    assert publish(ann, b"b", Lightq_Id="1")["first_offset"] == 1
    assert publish(http, b"c", path="/api/v1/topics/other/messages", Lightq_Id="1") == {"first_offset": 0, "messages": 1, "flushed": False}
    assert publish(http, b"c", path="/api/v1/topics/other/messages", Lightq_Id="1")["repeated"]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_an_id_survives_the_end_of_the_broker(broker, http, end):
    for i in range(20):
        publish(http, f"m{i}".encode(), Lightq_Id=str(i))
    getattr(broker, end)()
    broker.start()
    again = HttpClient(broker, basic())
    for i in range(20):
        repeated = publish(again, f"m{i}".encode(), Lightq_Id=str(i))
        assert repeated == {"first_offset": i, "messages": 1, "flushed": True, "repeated": True}
    assert publish(again, b"new", Lightq_Id="20")["first_offset"] == 20


def test_requests_that_a_kill_leaves_unanswered_are_repeated(broker, http):
    """Each kill comes while requests are under way. A repetition finds the message, or stores it."""
    expected = []
    for kill in range(4):
        clients = [HttpClient(broker, basic()) for _ in range(5)]
        for number, client in enumerate(clients):
            client.connection.request("POST", MESSAGES, b"%d.%d" % (kill, number), {**client.login, "Lightq-Id": f"{kill}.{number}"})
        if kill % 2 == 1:
            assert clients[0].connection.getresponse().status == 200
        broker.kill()
        broker.start()
        again = HttpClient(broker, basic())
        for number in range(5):
            publish(again, b"%d.%d" % (kill, number), Lightq_Id=f"{kill}.{number}")
            expected.append(f"{kill}.{number}")
        assert sorted(stored(again)) == expected


def test_requests_with_one_id_at_once_store_one_message(broker, http):
    answers = []

    def send():
        client = HttpClient(broker, basic())
        for i in range(20):
            while (done := client.ask("POST", MESSAGES, b"x", Lightq_Id=str(i))).status == 429:
                assert done.json()["code"] == "busy"
            answers.append((i, done.json()["first_offset"]))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 80 and len(set(answers)) == 20
    assert len(stored(http)) == 20


def test_an_id_is_free_if_nothing_was_stored(http, control):
    control.ok("create_topic", **ASKER, topic="full", broker_type="queue", ring_bytes=1 << 16, overflow="reject")
    path = "/api/v1/topics/full/messages"
    assert http.get(f"{path}?group=g").json()["messages"] == []
    while http.ask("POST", path, b"x" * 10_000).status == 200:
        pass
    assert http.ask("POST", path, b"y" * 10_000, Lightq_Id="1").status == 429
    taken = http.get(f"{path}?group=g&max=100").json()
    assert http.ask("POST", f"/api/v1/topics/full/leases/{taken['lease']}/acknowledge").status == 200
    until(lambda: http.ask("POST", path, b"y" * 10_000, Lightq_Id="1").status == 200, lambda: "there is space")
    assert publish(http, b"y" * 10_000, path, Lightq_Id="1")["repeated"]


def test_ids_without_a_user_are_for_consumers_only(broker, http, control):
    control.ok("create_topic", **ASKER, topic="open", broker_type="queue", open=True)
    anybody = HttpClient(broker)
    for offset in (0, 1):
        assert publish(anybody, b"a", "/api/v1/topics/open/messages", Lightq_Id="1")["first_offset"] == offset


# --- Delays ---

def test_delayed_messages_are_listed_and_cancelled(http):
    done = publish(http, b"later", Lightq_Delay="600000", Lightq_Id="reminder", Lightq_Key="k")
    assert done == {"first_number": done["first_number"], "messages": 1, "flushed": True}
    assert publish(http, b"much later", Lightq_At=str(int((time.time() + 86_400) * 1_000_000)))["messages"] == 1
    listed = http.get(f"{TOPIC}/delayed?payload_bytes=100").json()["messages"]
    assert [message["payload"] for message in listed] == ["later", "much later"] and listed[0]["id"] == "reminder"
    assert stored(http) == []
    cancelled = http.ask("POST", f"{TOPIC}/delayed/cancel", json.dumps({"id": "reminder"}).encode())
    assert cancelled.status == 200, cancelled.body
    assert len(http.get(f"{TOPIC}/delayed").json()["messages"]) == 1


def test_delayed_messages_arrive(http):
    publish(http, b"soon", Lightq_Delay="1")
    publish(http, b"past", Lightq_At="1")
    lines = b'{"payload":"a","delay_ms":1}\n{"payload":"b","at_us":1}\n'
    assert publish(http, lines, Content_Type="application/x-ndjson")["messages"] == 2
    until(lambda: sorted(stored(http)) == ["a", "b", "past", "soon"], lambda: f"all arrive: {stored(http)}")


def test_delayed_messages_survive_the_end_of_the_broker(broker, http):
    for i in range(3):
        publish(http, f"m{i}".encode(), Lightq_Delay="600000", Lightq_Id=str(i))
    broker.kill()
    broker.start()
    again = HttpClient(broker, basic())
    assert [message["id"] for message in again.get(f"{TOPIC}/delayed").json()["messages"]] == ["0", "1", "2"]
    assert again.ask("POST", f"{TOPIC}/delayed/hurry").json()["messages"] == 3
    until(lambda: stored(again) == ["m0", "m1", "m2"], lambda: f"all arrive: {stored(again)}")


@pytest.mark.parametrize("headers", [{"Lightq-Delay": "0"}, {"Lightq-Delay": "1s"}, {"Lightq-Delay": "315619200001"}, {"Lightq-At": "x"},
                                     {"Lightq-Delay": "1", "Lightq-At": "1"}])
def test_wrong_delays(http, headers):
    refused = http.ask("POST", MESSAGES, b"a", **headers)
    assert refused.status == 400, refused.body
    assert http.get(f"{TOPIC}/delayed").json()["messages"] == []


def test_delays_of_some_lines_or_of_a_direct_topic(http, control):
    refused = http.ask("POST", MESSAGES, b'{"payload":"a","delay_ms":1}\n{"payload":"b"}\n', Content_Type="application/x-ndjson")
    assert refused.status == 400 and "all messages" in refused.json()["detail"]
    far = http.ask("POST", MESSAGES, b"a", Lightq_At="9000000000000000")
    assert far.status == 400 and "ten years" in far.json()["detail"]
    control.ok("create_topic", **ASKER, topic="now", broker_type="direct")
    assert http.ask("POST", "/api/v1/topics/now/messages", b"a", Lightq_Delay="1").status == 422


# --- Paths ---

def test_a_user_whose_name_has_a_slash(http):
    created = http.ask("PUT", "/api/v1/users/team%2Fann", json.dumps({"password": PASSWORD, "rights": []}).encode())
    assert created.status == 201, created.body
    names = [user["user_id"] for user in http.get("/api/v1/users").json()["users"]]
    assert names == ["team/ann"]
    assert http.ask("POST", "/api/v1/users/team%2fann/grant", json.dumps({"topic": "orders", "rights": ["produce"]}).encode()).status == 200
    assert http.ask("DELETE", "/api/v1/users/team/ann").status == 404
    assert http.ask("DELETE", "/api/v1/users/team%2Fann").status == 200
    assert http.get("/api/v1/topics%2Forders").status == 404, "an encoded slash separates nothing"
