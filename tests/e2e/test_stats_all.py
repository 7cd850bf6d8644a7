"""Tests of the statistics of all topics: `stats_all` over the control socket, and `lightq stats --all`."""
import json

import zmq

from cli_support import lightq  # noqa: F401: a fixture
from support import ADMIN, ADMIN_PASSWORD, until

ASKER = {"admin_user_id": ADMIN, "admin_password": ADMIN_PASSWORD}
SECRET = "planted-cli-secret-7001"


def pages(control, **fields):
    """Returns the names of the topics of each page."""
    found = []
    while True:
        page = control.ok("stats_all", **ASKER, **fields)
        found.append([stats["topic"] for stats in page["topics"]])
        if "continue_after" not in page:
            return found
        fields["after"] = page["continue_after"]


def test_pages_have_each_topic_once_and_show_what_stats_shows(control):
    names = [f"t{number:02}" for number in range(25)]
    for name in reversed(names):
        control.create(name)
    assert pages(control) == [names], "one page is enough"
    for size in (1, 7, 24, 25):
        of_size = pages(control, topics_max=size)
        assert [name for page in of_size for name in page] == names, size
        assert all(len(page) == size for page in of_size[:-1]), size
    control.delete("t03")
    assert pages(control, topics_max=4, after="t01") == [["t02", "t04", "t05", "t06"], ["t07", "t08", "t09", "t10"],
                                                         ["t11", "t12", "t13", "t14"], ["t15", "t16", "t17", "t18"],
                                                         ["t19", "t20", "t21", "t22"], ["t23", "t24"]]
    page = control.ok("stats_all", **ASKER, topics_max=1)
    one = control.stats("t00")
    assert page["topics"] == [{name: value for name, value in one.items() if name not in ("cmd", "status")}]
    assert control.broker_stats()["topics"] == 24


def test_the_command_line_shows_the_topics_of_the_user(lightq):
    for topic in ("orders.eu", "orders.us", "private"):
        lightq("topic", "create", topic)
    lightq("produce", "orders.us", stdin=b"one\ntwo\n")
    until(lambda: [lightq.stats("orders.us")[count] for count in ("messages_received", "publishers_count")] == [2, 0],
          "the messages, and the producer's end")
    lightq("user", "add", "ann", "--consume", "orders.*", stdin=f"{SECRET}\n".encode())
    lines = lightq("stats", "--all").stdout.decode().splitlines()
    assert lines[0].split() == ["topic", "type", "received", "sent", "queue", "publishers", "subscribers", "log"]
    assert [line.split()[0] for line in lines[1:]] == ["orders.eu", "orders.us", "private"]
    assert lines[2].split()[:5] == ["orders.us", "queue", "2", "0", "2"]
    assert len({len(line) for line in lines}) == 1, "columns"
    shown = lightq.json("stats", "--all")
    one = {name: value for name, value in lightq.stats("orders.us").items() if name not in ("cmd", "status")}
    assert one.pop("oldest_ms") >= shown["topics"][1].pop("oldest_ms") > 0, "an age, which grows"
    assert shown["topics"][1] == one
    as_ann = {"LIGHTQ_USER": "ann", "LIGHTQ_PASSWORD": SECRET, "LIGHTQ_ADMIN_USER": "", "LIGHTQ_DATA_DIR": "/nowhere"}
    of_ann = json.loads(lightq("stats", "--all", "--json", variables=as_ann).stdout)
    assert [stats["topic"] for stats in of_ann["topics"]] == ["orders.eu", "orders.us"]
    assert b"excludes" in lightq("stats", "orders.eu", "--all", code=2).stderr


def test_a_stop_answers_the_requests_under_way(broker, control):
    for number in range(100):
        control.create(f"t{number:02}")
    dealer = broker.socket(zmq.DEALER, broker.control_uri, **control.options)
    asked = 200
    for _ in range(asked):
        dealer.send(json.dumps({"cmd": "stats_all", **ASKER}).encode())
    replies = [json.loads(dealer.recv())]  # the others are under way, or still to be read
    broker.stop()
    while dealer.poll(200):
        replies.append(json.loads(dealer.recv()))
    assert len(replies) <= asked
    for reply in replies:
        if reply["status"] == "error":
            assert reply["code"] == "shutting_down", reply
        else:
            assert len(reply["topics"]) == 100
