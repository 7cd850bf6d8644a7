"""Requests to a broker, and acts at its page, for the tests of the page. The fixtures are imported by the files that use them."""
import json

import pytest

from browser_support import Browser
from http_support import HttpClient, address_of, basic


@pytest.fixture(scope="module")
def browser():
    made = Browser()
    yield made
    made.close()


@pytest.fixture
def http(broker):
    client = HttpClient(broker, basic())
    yield client
    client.close()


@pytest.fixture
def url(broker):
    scheme, host, port = address_of(broker)
    return f"{scheme}://{host}:{port}/"


@pytest.fixture
def page(browser, url):
    """The browser, with nobody logged in. At the end no script has failed, and only the broker was asked."""
    browser.events.clear()
    browser.view(1280, 800)
    browser.call("Network.clearBrowserCache")
    browser.open("about:blank")
    yield browser
    assert browser.complaints() == []
    # The browser's own pictures of a date field are data: URLs, which ask nobody; the policy forbids them to the page.
    assert {request for request in browser.requests() if not request.startswith((url, "about:blank", "data:image/"))} == set()
    browser.open("about:blank")


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
