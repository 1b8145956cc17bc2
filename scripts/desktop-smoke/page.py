"""The window's page, driven by WebDriver: plain HTTP to WebKitWebDriver, which starts the program itself."""

import json
import urllib.error
import urllib.request

import desk


class Page:
    def __init__(self, port, program=None, arguments=()):
        """A session of the driver on this port, with a program's window or else the driver's own browser."""
        self.base = f"http://127.0.0.1:{port}"
        desk.wait(lambda: self.ask("GET", "/status", quiet=True))
        options = {"binary": program, "args": list(arguments)} if program else {}
        opened = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}})
        self.base += f"/session/{opened['sessionId']}"

    def ask(self, method, path, body=None, quiet=False):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from error
        except OSError:
            if quiet:
                return None
            raise

    def run(self, script, *arguments):
        """The value of a script in the page."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script, *arguments):
        """The same for one that calls its last argument with the value."""
        return self.ask("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def text(self):
        return self.run("return document.body.innerText")

    def mode(self, model):
        """The mode that the page shows for a model."""
        return self.run(
            "const found = document.querySelector(`input[name='mode-${arguments[0]}']:checked`);"
            "return found && found.value", model)

    def choose(self, model, mode):
        self.run("document.querySelector(`input[name='mode-${arguments[0]}'][value='${arguments[1]}']`).click()",
                 model, mode)
