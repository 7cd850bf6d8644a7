"""Tests with a real Prometheus: it scrapes a running broker and answers queries. Its promtool checks the formats of
both texts, and every expression of the alerts and the dashboard in deploy/."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.parse
import urllib.request

import pytest

from http_support import HTTP, HttpClient, address_of, basic
from session_support import consumer_of, fill_numbered
from support import ADMIN, ADMIN_PASSWORD, DEADLINE, secret_file, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PROMETHEUS, PROMTOOL = shutil.which("prometheus"), shutil.which("promtool")
needs_prometheus = pytest.mark.skipif(not (PROMETHEUS and PROMTOOL), reason="Debian's package prometheus is not installed")
METRIC = re.compile(r"\b(lightq_[a-z_]+|process_[a-z_]+)\b")


def promtool(*arguments, text=None, cwd=None):
    done = subprocess.run([PROMTOOL, *arguments], input=text, capture_output=True, timeout=DEADLINE, cwd=cwd)
    assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
    return done.stdout.decode()


def listening_ports(process):
    """Returns the TCP ports on which the process listens."""
    own = set()
    for name in os.listdir(f"/proc/{process}/fd"):
        with contextlib.suppress(FileNotFoundError):
            own.update(re.findall(r"socket:\[(\d+)\]", os.readlink(f"/proc/{process}/fd/{name}")))
    lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    return [int(each[1].split(":")[1], 16) for each in fields if each[3] == "0A" and each[9] in own]


class Prometheus:
    def __init__(self, directory, broker):
        scheme, host, port = address_of(broker)
        self.target = f"{host}:{port}"
        shutil.copy(DEPLOY / "prometheus/alerts.yml", directory / "alerts.yml")
        example = (DEPLOY / "prometheus/prometheus.yml").read_text()
        password = secret_file(directory / "password", ADMIN_PASSWORD)
        text = (example.replace("127.0.0.1:5001", self.target).replace("scrape_interval: 15s", "scrape_interval: 200ms\n  evaluation_interval: 200ms")
                .replace("username: prometheus", f"username: {ADMIN}").replace("/etc/prometheus/lightq.password", password))
        (directory / "prometheus.yml").write_text(text)
        promtool("check", "config", str(directory / "prometheus.yml"))
        self.log = directory / "prometheus.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [PROMETHEUS, f"--config.file={directory / 'prometheus.yml'}", f"--storage.tsdb.path={directory / 'data'}",
                 "--web.listen-address=127.0.0.1:0"], stdout=log, stderr=log, cwd=directory)
        ports = until(lambda: self.process.poll() is not None or listening_ports(self.process.pid), lambda: f"its start: {self.log.read_text()}")
        assert self.process.poll() is None, self.log.read_text()
        self.uri = f"http://127.0.0.1:{ports[0]}"
        until(lambda: self.value("up") == 1, lambda: f"the first scrape: {self.api('targets')}")

    def api(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self.uri}/api/v1/{path}?{query}", timeout=DEADLINE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return {"result": []}  # it is starting
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error

    def query(self, expression):
        return self.api("query", query=expression)["result"]

    def value(self, expression):
        result = self.query(expression)
        return float(result[0]["value"][1]) if len(result) == 1 else None

    def await_value(self, expression, expected):
        until(lambda: self.value(expression) == expected, lambda: f"{expression} is {self.query(expression)}, not {expected}")

    def stop(self):
        self.process.terminate()
        self.process.wait(DEADLINE)


@pytest.fixture
def broker(make_broker):
    return make_broker(*HTTP)


def populate(control, session):
    """Fills a topic in files and one in memory. A consumer has four messages of the former: one dies, it is done with
    one, and it keeps two."""
    control.create("orders", "file")
    control.create("fast")
    fill_numbered(session, "orders", 0, 10)
    fill_numbered(session, "fast", 0, 5)
    control.ok("set_group", admin_user_id=ADMIN, admin_password=ADMIN_PASSWORD, topic="orders", group="default", max_attempts=1)
    consumer = consumer_of(control, session, "orders", credit=(4, 1 << 20))
    taken = consumer.receive(4)
    consumer.reject((taken[0].offset, taken[0].offset + 1))
    consumer.acknowledge((taken[2].offset, taken[2].offset + 1))
    return consumer


@needs_prometheus
@pytest.mark.stream
@pytest.mark.clear
def test_prometheus_scrapes_a_broker_and_knows_its_numbers(broker, control, session, tmp_path):
    consumer = populate(control, session)
    prometheus = Prometheus(tmp_path, broker)
    try:
        prometheus.await_value('lightq_topic_messages_in_total{topic="orders"}', 10)
        prometheus.await_value('sum(lightq_topic_messages{state="stored"})', 15)
        prometheus.await_value('lightq_group_outcomes_total{topic="orders",group="default",outcome="acknowledged"}', 1)
        prometheus.await_value('lightq_group_outcomes_total{topic="orders",outcome="failed"}', 1)
        prometheus.await_value('lightq_group_dead_messages_total{topic="orders"}', 1)
        prometheus.await_value('lightq_group_messages{topic="orders",state="parked"}', 1)
        prometheus.await_value('lightq_group_messages{topic="orders",state="in_flight"}', 2)
        prometheus.await_value('sum by (topic) (lightq_group_messages{topic="orders"})', 9)
        prometheus.await_value('lightq_group_ack_holes{topic="orders"}', 1)
        prometheus.await_value('lightq_group_members{topic="orders"}', 1)
        prometheus.await_value('lightq_topic_next_offset{topic="orders"} - lightq_topic_first_offset', 10)
        prometheus.await_value('lightq_topic_next_offset - on(instance,topic) lightq_topic_durable_offset', 0)
        prometheus.await_value('lightq_delivery_seconds_count', 4)
        assert prometheus.value('lightq_append_seconds_count') >= 2
        assert prometheus.value('process_resident_memory_bytes') > 1 << 20
        assert 0 <= prometheus.value('time() - lightq_start_time_seconds') < 3600
        assert prometheus.value('histogram_quantile(0.99, lightq_flush_seconds_bucket)') > 0
        check_expressions(prometheus)
        rules = [rule for group in prometheus.api("rules")["groups"] for rule in group["rules"]]
        until(lambda: all(rule["health"] == "ok" for group in prometheus.api("rules")["groups"] for rule in group["rules"]),
              lambda: f"the evaluation of the rules: {prometheus.api('rules')}")
        assert len(rules) >= 10
        firing = {rule["name"] for rule in rules if rule["state"] == "firing"}
        assert firing <= {"LightqDeadMessages"}, firing
        consumer.session.close()
    finally:
        prometheus.stop()


def dashboard_expressions():
    dashboard = json.loads((DEPLOY / "grafana/lightq.json").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return found + [each["expr"] for each in dashboard["annotations"]["list"]]


def check_expressions(prometheus):
    """Executes each expression of the dashboard as Grafana would. Only counters of rare events may have no series."""
    rare = re.compile(r"lightq_topic_(refused|rejected|dropped)_messages|due_lateness|limits_reached|blocked_seconds|state=\"delayed\"|changes\(")
    until(lambda: prometheus.query('rate(lightq_topic_messages_in_total[1m])'), "a second scrape")
    for expression in dashboard_expressions():
        filled = expression.replace("$__rate_interval", "1m").replace("$instance", prometheus.target).replace("$topic", ".*")
        assert "$" not in filled, filled
        result = prometheus.query(filled)
        assert result or rare.search(expression), f"no series: {filled}"


@needs_prometheus
def test_both_texts_pass_promtool(broker, control, session):
    populate(control, session)
    client = HttpClient(broker, basic())
    for path in ("/metrics", "/metrics?zeros=on", "/metrics?detail=off", "/metrics?topic=orders", "/metrics?topic=none*"):
        answer = client.get(path)
        assert answer.status == 200 and answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        promtool("check", "metrics", text=answer.body)
    answer = client.get("/metrics", Accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    text = answer.body.decode()
    assert text.endswith("\n# EOF\n") and "# UNIT lightq_append_seconds seconds\n" in text
    assert "# TYPE lightq_topic_messages_in counter\n" in text and "lightq_topic_messages_in_total{" in text


def test_what_is_asked_for_is_shown(broker, control, session):
    consumer = populate(control, session)
    client = HttpClient(broker, basic())
    every = client.get("/metrics")
    assert every.value("lightq_topics", kind="shown") == 2
    assert every.value("lightq_connections", kind="consumer") == 1
    assert every.value("lightq_group_messages", topic="orders", group="default", state="ready") == 6
    one = {dict(labels).get("topic") for _, labels in client.get("/metrics?topic=f*").samples()} - {None}
    assert one == {"fast"}
    summed = client.get("/metrics?detail=off")
    assert summed.value("lightq_topics", kind="summed") == 2
    assert summed.value("lightq_topic_messages_in_total", topic="_other") == 15
    assert summed.value("lightq_group_messages", topic="_other", group="_other", state="parked") == 1
    assert {dict(labels).get("topic") for _, labels in summed.samples()} == {None, "_other"}
    zeros = client.get("/metrics?zeros=on")
    assert zeros.value("lightq_topic_dropped_messages_total", topic="orders") == 0
    assert every.value("lightq_topic_dropped_messages_total", topic="orders") is None
    labels = {name for _, labels in zeros.samples() for name, _ in labels}
    assert labels <= {"topic", "group", "state", "outcome", "mode", "kind", "limit", "le", "version"}
    consumer.session.close()


def test_topics_beyond_the_setting_are_summed(make_broker):
    broker = make_broker(*HTTP, "--metrics-topics-max", "2")
    control = broker.control()
    for name in ("a", "b", "c", "d"):
        control.create(name)
    answer = HttpClient(broker, basic()).get("/metrics")
    assert {dict(labels).get("topic") for _, labels in answer.samples()} - {None} == {"a", "b", "_other"}
    assert answer.value("lightq_topics", kind="summed") == 2


@needs_prometheus
def test_the_alerts_and_the_dashboard_fit_the_broker(broker, control, session):
    promtool("check", "rules", str(DEPLOY / "prometheus/alerts.yml"))
    promtool("test", "rules", "alerts_test.yml", cwd=DEPLOY / "prometheus")
    populate(control, session)
    text = HttpClient(broker, basic()).get("/metrics?zeros=on").body.decode()
    known = set(METRIC.findall(re.sub(r'^#.*|\{.*?\}', "", text, flags=re.M)))
    known.add("lightq_group_next_due_timestamp_seconds")  # only while a message waits for a retry
    for path in ("prometheus/alerts.yml", "grafana/lightq.json"):
        used = set(METRIC.findall((DEPLOY / path).read_text()))
        assert used <= known, f"{path}: {used - known}"
    documented = set(METRIC.findall((ROOT / "docs/operations.md").read_text()))
    exported = {re.sub(r"_(bucket|sum|count)$", "", name) if name.endswith(("_seconds_bucket", "_seconds_sum", "_seconds_count")) else name
                for name in known}
    assert exported <= documented, exported - documented
    assert documented <= exported | known, documented - exported
