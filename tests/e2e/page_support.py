"""Requests to a broker, and acts at its page, for the tests of the page."""
import json


def send(http, method, path, members=None, status=200, **headers):
    body = members if members is None or isinstance(members, bytes) else json.dumps(members).encode()
    response = http.ask(method, "/api/v1/" + path, body, **headers)
    assert response.status == status, response.body
    return response.json()


def create(http, topic, kind="queue", **settings):
    send(http, "PUT", f"topics/{topic}", {"broker_type": kind, **settings}, 201)


def stats(http, topic):
    return send(http, "GET", f"topics/{topic}")


def group_of(http, topic, name):
    return next(group for group in stats(http, topic)["groups"] if group["group"] == name)


def show(page, where):
    page.run(f"location.hash = {json.dumps(where)}")


def confirm(page, name):
    page.type("dialog input", name)
    page.click("dialog button[type=submit]")
    page.until("document.querySelector('dialog') === null", "the dialog is closed")
