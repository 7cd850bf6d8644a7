"""Tests of the page in a headless Chromium: login, a topic's life, dead letters, a login that ends, hostile texts, and
a thousand topics."""
import datetime
import json
import pathlib
import re
import time
import unicodedata
from urllib.parse import quote

import pytest

from conftest import brokers
from delayed_support import delayed, schedule
from http_support import HTTP, HttpClient, basic
from page_support import browser, confirm, create, group_of, http, page, send, show, stats, url  # noqa: F401 (some are fixtures)
from support import ADMIN, ADMIN_PASSWORD, Secrets, until

pytestmark = pytest.mark.one_broker

FILES = pathlib.Path(__file__).resolve().parents[2] / "src/http/page"
ANN = Secrets.plant("planted-page-secret-2718")
ANN_LATER = Secrets.plant("planted-page-secret-8281")
SCRIPT = "<script>window.hit=1</script><img src=x onerror=\"window.hit=1\">"
TOPICS = 1000


@pytest.fixture(scope="module")
def broker_of_the_file():
    with brokers() as make:
        yield make(*HTTP)


def test_the_files_are_those_of_the_sources_under_a_strict_policy(broker, http):
    index = http.get("/")
    assert index.headers["Content-Type"] == "text/html; charset=utf-8"
    links = re.findall(r'(?:src|href)="(/[^"]+)"', index.body.decode())
    names = {file.name for file in FILES.iterdir() if file.suffix in (".css", ".js", ".svg")}
    assert {link.removeprefix("/page/") for link in links} <= names
    for path, name in [("/", "index.html"), *((f"/page/{name}", name) for name in names)]:
        served = HttpClient(broker).get(path)
        assert (served.status, served.body) == (200, (FILES / name).read_bytes()), path
        policy = dict(part.strip().split(" ", 1) for part in served.headers["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert {policy[kind] for kind in ("script-src", "style-src", "img-src", "connect-src")} == {"'self'"}
        assert policy["require-trusted-types-for"] == "'script'"
        assert (served.headers["X-Content-Type-Options"], served.headers["X-Frame-Options"]) == ("nosniff", "DENY")
    text = index.body.decode()
    assert not re.search(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|https?:", text)
    sources = "".join((FILES / name).read_text() for name in names if name.endswith(".js"))
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Storage\b|document\.cookie", sources)
    assert http.ask("HEAD", "/").status == 200
    assert (http.get("/page/none.js").status, http.ask("POST", "/", b"").status) == (404, 405)


def test_a_login_and_a_topics_life(page, http, url):
    page.open(url)
    page.type("input[name=user]", ADMIN)
    page.type("input[name=password]", "wrong")
    page.press("Enter")
    page.sees("The user or the password is wrong.")
    page.log_in(url, ADMIN, ADMIN_PASSWORD)

    page.click("button", "New topic")
    page.type("dialog input[name=topic]", "orders")
    page.press("Enter")
    page.click(".topics a", "orders")
    page.click(".tabs a", "Messages")
    page.type("input[name=key]", "k1")
    page.type("textarea[name=headers]", "kind: test\nsecond: a: b")
    page.type("textarea[name=payload]", "first\nsecond €")
    page.click("button", "Publish")
    page.sees("The message has the offset 0.")
    message, = send(http, "GET", "topics/orders/messages?group=billing&lease=60000")["messages"]
    assert (message["key"], message["payload"]) == ("k1", "first\nsecond €")
    assert message["headers"] == [{"name": "kind", "value": "test"}, {"name": "second", "value": "a: b"}]

    page.click(".tabs a", "Overview")
    page.sees("billing")
    page.until("document.querySelector('.group dl').innerText.replace(/\\s+/g, ' ').includes('In flight 1')", "in flight")
    page.click(".group button", "Pause")
    page.until("document.querySelector('.group .why').innerText.includes('paused')", "the group is paused")
    assert group_of(http, "orders", "billing")["paused_by"] == "command"
    page.click(".group button", "Resume")
    until(lambda: not group_of(http, "orders", "billing")["paused"], "the group goes on")
    page.click(".title button", "Pause")
    page.sees("topic is paused")
    page.click(".title button", "Resume")
    until(lambda: not stats(http, "orders")["paused"], "the topic goes on")

    page.click(".title button", "Purge")
    page.type("dialog input", "order")
    assert page.run("document.querySelector('dialog button[type=submit]').disabled")
    page.press("Escape")
    page.until("document.querySelector('dialog') === null", "Escape closes the dialog")
    assert page.run("document.activeElement.innerText") == "Purge…"
    assert stats(http, "orders")["first_offset"] == 0
    page.click(".title button", "Purge")
    confirm(page, "orders")
    page.sees("1 messages were purged.")
    assert stats(http, "orders")["first_offset"] == 1

    page.click(".tabs a", "Settings")
    page.type("input[name=ttl]", "60000")
    page.click("button", "Change")
    until(lambda: stats(http, "orders")["settings"]["message_ttl_ms"] == 60000, "the time to live")
    page.click("button", "Delete topic")
    confirm(page, "orders")
    page.sees("There are no topics yet")
    assert send(http, "GET", "topics")["topics"] == []


def test_dead_letters_are_retried_and_purged(page, http, url):
    create(http, "orders")
    for text in b"a", b"b", b"c":
        send(http, "POST", "topics/orders/messages", text)
    lease = send(http, "GET", "topics/orders/messages?group=billing&max=3")["lease"]
    send(http, "POST", f"topics/orders/leases/{lease}/dead?reason=no+such+account")
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    page.sees("billing: 3 dead")
    page.click(".topics a", "orders")
    page.click(".group a", "Dead letters")
    page.sees("no such account")
    page.click(".plain button", "Show")
    page.until("document.querySelector('.opened .payload')?.innerText === 'a'", "the message of the first row")
    page.click(".plain button", "Hide")
    page.until("document.querySelector('.opened') === null", "the row is closed")
    page.click("input[aria-label='offset 1']")
    page.click("button", "Retry 1 chosen")
    page.sees("1 messages are retried.")
    page.until("document.querySelectorAll('.plain tbody tr').length === 2", "two are left")
    group = group_of(http, "orders", "billing")
    assert (group["ready"], group["parked"]) == (1, 2)
    page.click("button", "Purge all")
    page.sees("2 dead messages of billing are given up for good.")
    confirm(page, "billing")
    page.sees("There are no dead messages.")
    assert group_of(http, "orders", "billing")["parked"] == 0


def test_delayed_messages_and_schedules(page, http, control, session, url):
    control.create("orders", "file")
    schedule(session, [delayed(b"the first", 3600), delayed(b"the second", 7200), delayed(b"the third", 10800)], "orders")
    send(http, "PUT", "topics/orders/schedules/nightly", {"cron": "0 3 * * *", "payload": "go"})
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    show(page, "#/topic/orders/delayed")
    page.sees("the third")
    first = datetime.datetime.fromtimestamp(time.time() + 3600)
    page.until(f"document.querySelector('.day').innerText.endsWith('{first:%A, %B} {first.day}, {first.year}')", "the day of the first message")
    page.click("button", "Deliver now")
    page.sees("The message is due now.")
    until(lambda: stats(http, "orders")["next_offset"] == 1, "the first message is in the log")
    page.until("document.querySelectorAll('.plain')[0].querySelectorAll('tbody tr:not(.day)').length === 2", "two are left")
    page.click(".plain button", "Cancel")
    page.until("document.querySelectorAll('.plain')[0].querySelectorAll('tbody tr:not(.day)').length === 1", "one is left")
    page.click("button", "Cancel all")
    page.sees("1 delayed messages of orders are removed for good.")
    confirm(page, "orders")
    page.sees("No delayed messages wait.")
    assert (stats(http, "orders")["delayed"]["messages"], stats(http, "orders")["next_offset"]) == (0, 1)
    page.sees("nightly")
    page.click(".plain button", "Pause")
    until(lambda: send(http, "GET", "topics/orders/schedules")["schedules"][0]["paused"], "the schedule is paused")


def test_a_login_that_ends_leads_to_the_form_and_back_to_the_view(page, http, url):
    create(http, "orders")
    send(http, "PUT", "users/ann", {"password": ANN, "rights": [{"topic": "*", "rights": ["consume"]}]}, 201)
    page.log_in(url, "ann", ANN)
    assert not page.run("Boolean(document.querySelector('.tiles').innerText.includes('Memory'))")
    show(page, "#/topic/orders")
    page.sees("No consumer group has joined this topic.")
    page.click(".title button", "Purge")
    page.type("dialog input", "orders")
    page.click("dialog button[type=submit]")
    page.sees("lacks the right 'manage'")
    send(http, "PUT", "users/ann/password", {"new_password": ANN_LATER})
    page.sees("Your login is no longer valid.")
    assert page.run("document.querySelector('dialog') === null && document.getElementById('top').hidden")
    assert page.run("document.getElementById('content').innerText.includes('orders')") is False
    asked = len(page.requests())
    page.type("input[name=user]", "ann")
    page.type("input[name=password]", ANN_LATER)
    page.press("Enter")
    page.sees("No consumer group has joined this topic.")
    assert len(page.requests()) > asked
    page.click("#logout")
    page.sees("You are logged out.")


def test_the_password_is_only_in_memory(page, http, url):
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    assert page.run("[localStorage.length, sessionStorage.length, document.cookie, history.length > 0, location.search]") == [0, 0, "", True, ""]
    assert not any(ADMIN_PASSWORD in request for request in page.requests())
    assert page.run("document.documentElement.outerHTML").find(ADMIN_PASSWORD) == -1
    page.call("Page.reload")
    page.until("Boolean(document.querySelector('input[name=password]'))", "the login form")


def test_markup_and_control_characters_are_shown_and_never_run(page, http, broker, control, url, tmp_path):
    name = f"{SCRIPT}\u0007\u202e"
    create(http, "hostile", "file")
    line = {"payload": f"{SCRIPT}\u0000\u001b[31m", "key": f"key {name}", "headers": [{"name": f"h{SCRIPT}", "value": name}]}
    send(http, "POST", "topics/hostile/messages", json.dumps(line).encode(), Content_Type="application/x-ndjson")
    send(http, "POST", "topics/hostile/messages", b"\xff\xfe\x00")
    control.ok("create_user", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, user_id=name, password=ANN,
               rights=[{"topic": "*", "rights": ["consume"]}])
    hostile = HttpClient(broker, basic(name, ANN))
    send(hostile, "GET", "topics/hostile/messages?group=watched&max=2&lease=60000")
    taken = send(http, "GET", "topics/hostile/messages?group=billing&max=2")
    send(http, "POST", f"topics/hostile/leases/{taken['lease']}/dead?reason={quote(name, safe='')}")
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    show(page, "#/topic/hostile/messages")
    page.type("input[name=search-key]", f"{SCRIPT}")
    page.click("button", "Show")
    page.sees("No further message has this key.")
    page.type("input[name=search-key]", "")
    page.click("button", "Show")
    page.sees(f"{SCRIPT}\\0\\x1B[31m")
    page.sees(f"key key {SCRIPT}\\x07U+202E")
    page.sees(f"h{SCRIPT}")
    page.sees("3 bytes, not text")
    page.sees("ff fe 00")
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps({"format": 1, "topics": [{"topic": name, name: name}], "users": [{"user_id": name, "uid": name}]}))
    show(page, "#/broker")
    page.choose_file(".definitions input", file)
    page.sees(f"{SCRIPT}\\x07U+202E: 'admin' and 'uid' cannot change")
    page.click("dialog button[type=submit]")
    page.sees("cannot be a part of a URL")
    page.press("Escape")
    for where in "#/topic/hostile/dead", "#/topic/hostile/settings", "#/topic/hostile", "#/users":
        show(page, where)
        page.sees(f"{SCRIPT}\\x07U+202E")
        if where.endswith("dead"):
            page.click(".plain button", "Show")
            page.sees(f"key key {SCRIPT}\\x07U+202E")
    # No topic and no group can have such a name.
    assert http.get(f"/api/v1/topics/hostile/messages?group={quote(name, safe='')}").status == 400
    assert http.ask("PUT", f"/api/v1/topics/{quote(name, safe='')}", b"{}").status == 400
    page.click("button", "Delete")
    page.sees("Everything that depends on the rights of <script>")
    page.press("Escape")
    show(page, "#/topic/" + quote(name, safe=""))
    page.sees("There is no such topic")
    page.sees(f"{SCRIPT}\\x07U+202E")
    assert page.run("window.hit === undefined && document.querySelectorAll('main script, main img').length === 0")


def test_every_invisible_character_has_a_sign(page, url):
    page.open(url)
    page.until("Boolean(document.querySelector('input[name=password]'))")
    marked = page.run("""(async () => {
        const {pieces} = await import('/page/text.js');
        const marked = [];
        for (let code = 0; code < 0x110000; ++code) {
            const found = pieces('a' + String.fromCodePoint(code) + 'b');
            if (found.some((piece) => piece.isMark)) marked.push(code);
        }
        return marked;
    })()""")
    invisible = {code for code in range(0x110000) if unicodedata.category(chr(code)) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Zs")}
    assert invisible - set(marked) == {ord(" ")}
    assert not {code for code in marked if unicodedata.category(chr(code))[0] in "NP"}
    # Letters and marks that no font shows are among them: fillers, and selectors of variants.
    assert {0x115F, 0x3164, 0xFE0F, 0xE0100} <= set(marked) and not {ord(each) for each in "aÄ€漢😀"} & set(marked)


def test_a_user_whose_name_no_url_can_have_is_not_taken_for_something_else(page, control, url):
    control.ok("create_user", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, user_id="..", password=ANN)
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    show(page, "#/users")
    page.click("button", "Delete")
    page.type("dialog input", "..")
    asked = len(page.requests())
    page.click("dialog button[type=submit]")
    page.sees("cannot be a part of a URL")
    assert not any("users" in request for request in page.requests()[asked:])


def test_a_thousand_topics_by_keyboard_on_every_width(page, http, url):
    for name in "t0000", "t0007":
        create(http, name)
    send(http, "POST", "topics/t0007/messages", b"a")
    lease = send(http, "GET", "topics/t0007/messages?group=billing")["lease"]
    send(http, "POST", f"topics/t0007/leases/{lease}/release")
    # The statistics of two topics are shown as those of a thousand: creating so many would take most of the test's time.
    many = f"""(answer) => ({{...answer, topics: Array.from({{length: {TOPICS}}}, (_, i) =>
        ({{...answer.topics[i === 7 ? 1 : 0], topic: 't' + String(i).padStart(4, '0')}}))}})"""
    # Without events the page asks for statistics, which a script can change.
    with page.refusing("/api/v1/events"), page.answering("/stats/topics?topics_max=1024", many):
        watch_many(page, url)


def watch_many(page, url):
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    page.sees(f"{TOPICS:,} topics")
    rows = "document.querySelectorAll('.rows .row').length"
    names = "[...document.querySelectorAll('.rows .topic')].map((each) => each.innerText)"
    assert 10 < page.run(rows) < 60
    page.run("scrollTo(0, document.body.scrollHeight)")
    page.until(f"{names}.at(-1) === 't{TOPICS - 1:04}'", "the last row")
    assert page.run(rows) < 60
    page.run("scrollTo(0, 0)")
    page.until(f"{names}[0] === 't0000'", "the first row")
    page.click(".head button", "Ready")
    page.until(f"{names}[0] === 't0007'", "the topic with most ready messages first")

    page.press("/")
    page.call("Input.insertText", text="t019")
    page.until(f"{rows} === 10", "ten topics fit")
    page.run("document.querySelector('.rows a').focus()")
    page.press("ArrowDown")
    page.press("ArrowDown")
    assert page.run("document.activeElement.innerText") == "t0192"
    page.press("Enter")
    page.until("document.title === 't0192 – LightQ'", "the topic's view")

    for scheme, is_dark in ("light", False), ("dark", True):
        page.view(390, 800, scheme)
        for where in "#/", "#/topic/t0007", "#/topic/t0007/messages", "#/topic/t0007/settings", "#/users", "#/broker":
            show(page, where)
            page.until("document.documentElement.scrollWidth <= 390", f"{where} is as wide as the screen")
        ground = page.run("getComputedStyle(document.documentElement).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == is_dark


def test_the_page_says_that_it_is_not_live_and_becomes_live_again(page, http, url):
    create(http, "orders")
    with page.refusing("/api/v1/events"):
        page.log_in(url, ADMIN, ADMIN_PASSWORD)
        page.sees("asks each second, because the connection has broken")
        send(http, "POST", "topics/orders/messages", b"a")
        show(page, "#/topic/orders")
        page.until("document.querySelector('.values').innerText.includes('0 to 1')", "the message, without events")
        page.run("answerAgain()")
        page.until("document.getElementById('live').className === 'ok'", "live")
    send(http, "POST", "topics/orders/messages", b"b")
    page.until("document.querySelector('.values').innerText.includes('0 to 2')", "the message, by an event")


def test_an_event_that_does_not_end_is_refused(page, http, url):
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    why = page.run("""(async () => {
      const {events} = await import('/page/api.js');
      const ask = window.fetch;
      const part = new Uint8Array(8 << 20).fill(97);
      window.fetch = async () => new Response(new ReadableStream({pull: (to) => to.enqueue(part)}));
      try {
        for await (const event of events('/endless', new AbortController().signal)) return event.name;
      } catch (error) {
        return error.code;
      } finally {
        window.fetch = ask;
      }
    })()""")
    assert why == "too_large"


def test_a_page_that_was_just_opened_has_the_course_and_the_members(page, http, broker, url):
    create(http, "orders")
    send(http, "PUT", "users/ann", {"password": ANN, "rights": [{"topic": "*", "rights": ["consume"]}]}, 201)
    send(http, "GET", "topics/orders/messages?group=billing")
    for _ in range(5):
        send(http, "POST", "topics/orders/messages", b"a")
    ann = HttpClient(broker, basic("ann", ANN))
    send(ann, "GET", "topics/orders/messages?group=billing&max=2&lease=60000")
    until(lambda: sum(send(http, "GET", "topics/orders/history")["seconds"]["out"]) >= 2, "the broker has samples")
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    page.until("document.querySelector('.sparkline .in').getAttribute('d').split('L').length > 2", "a curve from before the page was opened")
    for name in ("Memory", "Disk free"):
        page.until(f"[...document.querySelectorAll('.tile')].some((each) => /^{name}\\s+[\\d.,]+ \\w+\\s+of [\\d.,]+ \\w+$/.test(each.innerText))", f"{name} and its limit")
    show(page, "#/topic/orders")
    page.until("/[1-9]\\d*\\.\\d msg/.test(document.querySelector('.scale').innerText)", "a rate from before the page was opened")
    page.run("(() => { const each = document.querySelector('.choices select'); each.value = 'waiting'; each.dispatchEvent(new Event('change')); })()")
    page.until("document.querySelector('.scale').innerText === '5'", "pending messages")
    page.sees("Consumers: 1")
    row = "document.querySelector('.members tbody tr').innerText.split('\\t')"
    assert page.run(f"{row}.filter((_, i) => i !== 2)") == ["1", "ann", "2", "0", "–"]


def test_messages_are_found_by_key_and_time(page, http, url):
    create(http, "orders")
    for key in "ab":
        lines = "".join(json.dumps({"payload": f"{key}{i}", "key": key}) + "\n" for i in range(12))
        send(http, "POST", "topics/orders/messages", lines.encode(), Content_Type="application/x-ndjson")
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    show(page, "#/topic/orders/messages")
    page.type("input[name=search-key]", "b")
    page.press("Enter")
    page.sees("10 messages, of 22 that were read")
    assert page.run("document.querySelectorAll('.message').length") == 10
    page.click("button", "Go on at offset 22")
    page.sees("2 messages, of 2 that were read")
    page.sees("b11")
    page.run("document.querySelector('input[name=since]').value = '2100-01-01T00:00:00'")
    page.click("button", "Show")
    page.sees("No further message has this key.")
    page.run("document.querySelector('input[name=since]').value = '2001-01-01T00:00:00'")
    page.click("button", "Show")
    page.sees("b0")
    assert stats(http, "orders")["groups"] == []


def test_nothing_is_asked_while_the_page_is_hidden(page, http, url):
    page.log_in(url, ADMIN, ADMIN_PASSWORD)
    page.run("Object.defineProperty(document, 'hidden', {get: () => window.isHidden}); window.isHidden = true;"
             "document.dispatchEvent(new Event('visibilitychange'))")
    page.run("new Promise((done) => setTimeout(done, 300))")  # answers under way arrive
    asked = len(page.requests())
    page.run("new Promise((done) => setTimeout(done, 1300))")
    assert len(page.requests()) == asked
    page.run("window.isHidden = false; document.dispatchEvent(new Event('visibilitychange'))")
    until(lambda: page.run("1") and len(page.requests()) > asked, "it asks again")
