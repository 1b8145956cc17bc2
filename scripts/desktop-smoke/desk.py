"""The desk that the test sits at: programs that are started and ended, conditions that are waited for, checks.

Every wait is for a condition and bounded; every process is ended by its own number.
"""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request

import bus

DEADLINE = 180  # seconds that any single condition may take to come true, on a machine that is busy elsewhere
PROGRAMS = os.environ["WEIR_PROGRAMS"]
WORK = os.environ["WEIR_WORK"]
PICTURES = os.environ["WEIR_PICTURES"]
HEADLESS = f"{PROGRAMS}/weir"
DESKTOP = f"{PROGRAMS}/weir-desktop"

passed, failed, started = 0, 0, []


def check(what, truth, seen=None):
    """Counts; `seen` is shown where it failed."""
    global passed, failed
    if truth:
        passed += 1
        print(f"ok    {what}", flush=True)
    else:
        failed += 1
        print(f"FAIL  {what}" + ("" if seen is None else f"\n      seen: {seen!r}"), flush=True)
    return bool(truth)


def wait(condition, seconds=DEADLINE):
    """What the condition gives once that is true; its last value if that never is."""
    until = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > until:
            return value
        time.sleep(0.1)


class Running:
    """A program that was started; its words are in a file."""

    def __init__(self, name, command, **environment):
        self.name = name
        self.log = f"{WORK}/{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, **environment})
        self.pid = self.process.pid
        started.append(self)

    def lives(self):
        return self.process.poll() is None

    def code(self, seconds=DEADLINE):
        """Its exit code, or None if it does not end."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def stop(self):
        if self.lives():
            self.process.send_signal(signal.SIGTERM)
            if self.code(60) is None:
                self.process.kill()
                self.process.wait()


def stop_all():
    for running in reversed(started):
        running.stop()


class Desktop(Running):
    """The desktop program with its tray."""

    def __init__(self, name, *arguments, **environment):
        super().__init__(name, [DESKTOP, *arguments], **environment)
        self.owner = None

    def menu(self):
        if self.owner is None:
            self.owner = bus.menu_of(self.pid)
        return bus.menu(self.owner) if self.owner else []

    def labels(self):
        return [entry["label"] for entry in self.menu()]

    def heading(self):
        return next(iter(self.labels()), "")

    def heads(self, *words, seconds=DEADLINE):
        """Whether the heading comes to say all these words."""
        return wait(lambda: all(word in self.heading() for word in words), seconds)

    def entry(self, label, below=None):
        """An entry by its label, or the beginning of it; `below` names the submenu that it stands in."""
        inside = below is None
        for entry in self.menu():
            if below is not None and entry["depth"] == 0:
                inside = entry["label"].startswith(below)
            if inside and entry["depth"] == (0 if below is None else 1) and entry["label"].startswith(label):
                return entry
        return None

    def choose(self, label, below=None):
        entry = wait(lambda: self.entry(label, below))
        if entry:
            bus.choose(self.owner, entry["id"])
        return entry

    def address(self):
        """The base URL that the heading shows."""
        return address_in(self.heading())

    def checked(self, label, below=None):
        """Whether the entry has the mark; None where it has none to have, or is not there."""
        entry = self.entry(label, below)
        return entry and entry["checked"]


def address_in(heading):
    return next((word.rstrip(",") for word in heading.split() if word.startswith("http://")), None)


def weir(*arguments):
    """What `weir ARGUMENTS --json` prints."""
    done = subprocess.run([HEADLESS, *arguments, "--json"], capture_output=True, text=True, timeout=DEADLINE)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}


def key(data):
    return subprocess.run([HEADLESS, "key", "--data", data], capture_output=True, text=True, timeout=DEADLINE).stdout.strip()


def mode(data, model):
    """The user's choice for a model, as the command line sees it."""
    rows = weir("mode", "--data", data)
    rows = rows.get("models", []) if isinstance(rows, dict) else rows
    return next((row["mode"] for row in rows if row["model"] == model), None)


def turn(base_url, data, model, word="alpha"):
    """Sends one turn as a client would; its status."""
    body = json.dumps({"model": model, "input": f"Reply with the single word {word}", "stream": False})
    done = subprocess.run(
        ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "120", f"{base_url}/responses",
         "-H", f"Authorization: Bearer {key(data)}", "-H", "Content-Type: application/json", "-d", body],
        capture_output=True, text=True, timeout=DEADLINE)
    return done.stdout


def opencode(base_url, data, model, prompt):
    """The answer of the real OpenCode; how it failed if it did."""
    done = subprocess.run(["node", "tests/e2e/harness/once.mjs", base_url, key(data), model, prompt],
                          capture_output=True, text=True, timeout=DEADLINE)
    return done.stdout.strip() if done.returncode == 0 else done.stderr


def serves(base_url):
    try:
        with urllib.request.urlopen(base_url.removesuffix("/v1") + "/healthz", timeout=30) as answer:
            return json.load(answer)["product"] == "weir"
    except OSError:
        return False


def port_of(base_url):
    return int(base_url.removesuffix("/v1").rsplit(":", 1)[1])


def free(port):
    """Whether the port can be bound."""
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def any_free_port():
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return trial.getsockname()[1]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE).stdout


def windows(pid=None):
    """The visible windows of the program, as X numbers."""
    found = output("xdotool", "search", "--onlyvisible", "--class", "^Weir-desktop$").split()
    return [one for one in found if title(one).startswith("Weir") and (pid is None or owner(one) == pid)]


def title(window):
    return output("xdotool", "getwindowname", window).strip()


def owner(window):
    said = output("xdotool", "getwindowpid", window).strip()
    return int(said) if said.isdigit() else None


def close(window):
    """Closes a window by the keys; those that came before the window had the focus are pressed again."""
    def pressed():
        if window not in windows():
            return True
        output("timeout", "10", "xdotool", "windowactivate", "--sync", window, "key", "--clearmodifiers", "alt+F4")
        return wait(lambda: window not in windows(), 5)
    return wait(pressed)


def minimise(window):
    output("xdotool", "windowminimize", window)
    return wait(lambda: window not in windows())


def picture(name, window="root"):
    """Takes a picture; how many colours it has."""
    path = f"{PICTURES}/{name}.png"
    subprocess.run(["import", "-window", window, path], capture_output=True, timeout=DEADLINE)
    colours = output("identify", "-format", "%k", path)
    return int(colours) if colours.isdigit() else 0


def drawn(window, name):
    """Whether the page is there: one that failed to start is one flat colour."""
    return picture(name, window) >= 64
