"""Tests of the page's users, rights and definitions, in a headless Chromium."""
import json

import pytest

from conftest import brokers
from http_support import HTTP, HttpClient, basic
from page_support import browser, confirm, create, group_of, http, page, send, show, stats, url  # noqa: F401 (some are fixtures)
from support import ADMIN, ADMIN_PASSWORD, Secrets, until

pytestmark = pytest.mark.one_broker

ANN = Secrets.plant("planted-page-secret-3141")


@pytest.fixture(scope="module")
def broker_of_the_file():
    with brokers() as make:
        yield make(*HTTP)


def test_users_and_their_rights(page, http, url):
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    page.click("#nav a", "Users")
    page.click("button", "New user")
    page.type("dialog input[name=user]", "ann")
    page.type("dialog input[name=password]", ANN)
    page.type("dialog input[name=pattern]", "orders.*")
    page.click("dialog input[value=consume]")
    page.click("dialog button[type=submit]")
    page.sees("orders.*")
    ann = {"user_id": "ann", "admin": False, "rights": [{"topic": "orders.*", "rights": ["consume"]}]}
    assert send(http, "GET", "users")["users"] == [ann]
    create(http, "orders.new")
    show(page, "#/topic/orders.new/settings")
    page.until("document.querySelector('.rights')?.innerText === 'consume by orders.*'", "the rights on a topic")
    show(page, "#/users")
    page.click("button", "Grant")
    page.type("dialog input[name=pattern]", "logs:viewers")
    page.click("dialog input[value=consume]")
    page.click("dialog button[type=submit]")
    page.sees("logs:viewers")
    page.click("li button", "Revoke")
    until(lambda: len(send(http, "GET", "users")["users"][0]["rights"]) == 1, "a right is revoked")
    page.click("button", "Delete")
    confirm(page, "ann")
    page.sees("There are no users beside the administrator.")


def test_patterns_of_rights_fit_as_in_the_broker(page, http, broker, url):
    patterns = ["orders", "*", "a*", "*a", "a*b*c", "ab*ba", "a**b", "*b*", "*.*"]
    names = ["orders", "orders2", "a", "ab", "ba", "abc", "a-b-c", "acb", "aba", "abba", "x.y"]
    for name in names:
        create(http, name)
    page.open(url)
    for i, pattern in enumerate(patterns):
        send(http, "PUT", f"users/u{i}", {"password": ANN, "rights": [{"topic": pattern, "rights": ["consume"]}]}, 201)
        seen = [topic["topic"] for topic in send(HttpClient(broker, basic(f"u{i}", ANN)), "GET", "stats/topics")["topics"]]
        fitting = page.run(f"import('/page/rights.js').then(({{fitsPattern}}) => {json.dumps(names)}.filter((name) => fitsPattern(name, {json.dumps(pattern)})))")
        assert sorted(fitting) == sorted(seen), pattern


def test_definitions_are_exported_and_imported(page, http, url, tmp_path):
    create(http, "orders")
    send(http, "GET", "topics/orders/messages?group=billing")
    send(http, "PATCH", "topics/orders/groups/billing", {"max_attempts": 3})
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    show(page, "#/broker")
    page.until("document.querySelectorAll('.progress .fine').length === 4", "all checks of the broker's progress")
    page.run("(() => { const real = URL.createObjectURL; URL.createObjectURL = (blob) => { window.saved = blob.text(); return real(blob); }; })()")
    page.call("Browser.setDownloadBehavior", behavior="deny")
    page.click("button", "Export")
    page.sees("1 topics and 0 users were exported")
    found = json.loads(page.run("window.saved"))
    orders, = found["topics"]
    assert (found["format"], found["users"], orders["topic"], orders["broker_type"]) == (1, [], "orders", "queue")
    assert [(group["group"], group["max_attempts"]) for group in orders["groups"]] == [("billing", 3)]
    file = tmp_path / "definitions.json"

    def choose(definitions):
        file.write_text(definitions if isinstance(definitions, str) else json.dumps(definitions))
        page.choose_file(".definitions input", file)

    choose(found)
    page.sees("The broker has these definitions already.")
    for wrong, sentence in ("[", "The file is no JSON."), ({"format": 2}, "no definitions of this format"), ({"format": 1, "topics": [5]}, "must be a list of objects"):
        choose(wrong)
        page.sees(sentence)
    orders["groups"][0]["max_attempts"] = 5
    orders["message_ttl_ms"] = 60000
    orders["ring_bytes"] *= 2
    found["topics"].append({"topic": "payments", "broker_type": "queue_file"})
    found["users"].append({"user_id": "ann", "rights": [{"topic": "*", "rights": ["consume"]}]})
    found["users"].append({"user_id": "backup", "uid": 1000, "admin": True, "rights": [{"topic": "*", "rights": ["manage"]}]})
    choose(found)
    page.sees("Make 4 changes")
    dialog = page.run("document.querySelector('dialog').innerText")
    for text in "cannot change after the topic was created: ring_bytes", "ann: needs a password", "payments", "backup", '"uid":1000', '"admin":true', '"manage"', '"max_attempts":5', '"message_ttl_ms":60000':
        assert text in dialog, dialog
    assert stats(http, "orders")["settings"]["message_ttl_ms"] == 0
    page.click("dialog button[type=submit]")
    page.sees("4 changes were made.")
    assert stats(http, "orders")["settings"]["message_ttl_ms"] == 60000 and stats(http, "payments")["topic_type"] == "queue_file"
    assert group_of(http, "orders", "billing")["settings"]["max_attempts"] == 5
