"""A headless Chromium, driven by the DevTools protocol over two pipes: JSON texts that end with a NUL each."""
import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time

from support import DEADLINE

BINARIES = ("chromium-headless-shell", "chromium")
# The broker listens on 127.0.0.1; no other name resolves, so a request to another host fails and is recorded.
FLAGS = ("--headless", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
         "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-component-update",
         "--hide-scrollbars", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, ""), "ArrowDown": (40, ""), "ArrowUp": (38, ""),
        "PageDown": (34, ""), "Space": (32, " ")}


class Browser:
    """One browser process with one tab. Every call waits for its answer."""

    def __init__(self):
        binary = next(filter(None, map(shutil.which, BINARIES)), None)
        assert binary, "there is no Chromium: run  ./scripts/setup test"
        self.directory = tempfile.mkdtemp(prefix="lq-browser-")
        heard, to_browser = os.pipe()
        from_browser, said = os.pipe()

        def ends():  # the browser reads descriptor 3 and writes descriptor 4
            os.dup2(heard, 100)
            os.dup2(said, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        self.process = subprocess.Popen(
            [binary, *FLAGS, f"--user-data-dir={self.directory}", "about:blank"], preexec_fn=ends, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(heard)
        os.close(said)
        self.to_browser, self.from_browser = os.fdopen(to_browser, "wb", buffering=0), from_browser
        os.set_blocking(from_browser, False)
        self.pending, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.getTargets")["targetInfos"][0]["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def close(self):
        with contextlib.suppress(OSError):
            self.to_browser.close()
        try:
            self.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.from_browser)
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- The protocol ---

    def read_message(self, deadline):
        while b"\0" not in self.pending:
            try:
                piece = os.read(self.from_browser, 1 << 20)
                assert piece, "the browser has ended"
                self.pending += piece
            except BlockingIOError:
                assert time.monotonic() < deadline, "the browser does not answer"
                time.sleep(0.002)
        text, _, self.pending = self.pending.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.to_browser.write(json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE
        while True:
            answer = self.read_message(deadline)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    # --- A person at the page ---

    def open(self, url):
        self.call("Page.navigate", url=url)

    def run(self, script):
        """Returns the value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def until(self, script, what=None):
        """Waits until an expression is true in the page; returns its value."""
        deadline = time.monotonic() + DEADLINE
        while True:
            value = self.run(script)
            if value:
                return value
            assert time.monotonic() < deadline, f"not in time: {what or script}; the page: {self.text()[:3000]}"
            time.sleep(0.01)

    def text(self):
        return self.run("document.body.innerText")

    def sees(self, text):
        self.until(f"document.body.innerText.includes({json.dumps(text)})", text)

    def find(self, selector, text=None):
        """Returns an expression of the first visible element that fits, and contains the text."""
        fits = f" && each.innerText.includes({json.dumps(text)})" if text is not None else ""
        return (f"[...document.querySelectorAll({json.dumps(selector)})]"
                f".find((each) => each.checkVisibility(){fits})")

    def click(self, selector, text=None):
        """Clicks with the mouse, at the element's place."""
        found = self.find(selector, text)
        self.until(f"Boolean({found}) && !({found}).disabled", f"{selector} {text}")
        spot = self.run(f"(() => {{ const each = {found}; each.scrollIntoView({{block: 'center'}});"
                        " const box = each.getBoundingClientRect();"
                        " return [box.x + box.width / 2, box.y + box.height / 2]; })()")
        for kind in "mousePressed", "mouseReleased":
            self.call("Input.dispatchMouseEvent", type=kind, x=spot[0], y=spot[1], button="left", clickCount=1)

    def type(self, selector, text):
        """Replaces the text of a field."""
        self.until(f"Boolean({self.find(selector)})", selector)
        self.run(f"(() => {{ const each = {self.find(selector)}; each.focus(); if (each.select) each.select(); }})()")
        self.call("Input.insertText", text=text)

    def press(self, key):
        code, text = KEYS.get(key, (ord(key[0]), key))
        for kind in "keyDown", "keyUp":
            more = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=" " if key == "Space" else key,
                      windowsVirtualKeyCode=code, **more)

    def log_in(self, url, user, password):
        self.open(url)
        self.type("input[name=user]", user)
        self.type("input[name=password]", password)
        self.press("Enter")
        self.until("!document.getElementById('top').hidden && document.getElementById('live').classList.contains('ok')",
                   "logged in")

    @contextlib.contextmanager
    def in_new_documents(self, source):
        """A context in which pages that are opened run a script first."""
        added = self.call("Page.addScriptToEvaluateOnNewDocument", source=source)["identifier"]
        try:
            yield
        finally:
            self.call("Page.removeScriptToEvaluateOnNewDocument", identifier=added)

    def answering(self, where, script):
        """A context in which pages that are opened receive other answers from URLs that contain `where`: `script` is a
        function in the page that returns the content in place of the broker's."""
        source = f"""{{
            const real = window.fetch;
            const change = {script};
            window.fetch = async (url, options) => {{
                const answer = await real(url, options);
                if (!url.includes({json.dumps(where)}) || answer.status === 401) return answer;
                return new Response(JSON.stringify(change(await answer.json())));
            }};
        }}"""
        return self.in_new_documents(source)

    def refusing(self, where):
        """A context in which pages that are opened get no answer from URLs that contain `where`, until the page calls
        `answerAgain()`."""
        source = f"""{{
            const real = window.fetch;
            let isRefusing = true;
            window.answerAgain = () => {{ isRefusing = false; }};
            window.fetch = (url, options) => isRefusing && url.includes({json.dumps(where)}) ? Promise.reject(new TypeError('refused')) : real(url, options);
        }}"""
        return self.in_new_documents(source)

    def choose_file(self, selector, file):
        """Gives a file to a field for files."""
        self.until(f"document.querySelector({json.dumps(selector)}) !== null", selector)
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", files=[str(file)], nodeId=node)

    # --- What has happened in it ---

    def requests(self):
        """Returns the URLs of all requests so far."""
        return [event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"]

    def complaints(self):
        """Returns errors of scripts and of the content security policy."""
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"])
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["source"] in ("security", "javascript"):
                found.append(event["params"]["entry"]["text"])
        return found

    # --- Pictures ---

    def view(self, width, height, scheme="light", scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self):
        """Returns a PNG of the part in sight."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
