"""The tray as another program sees it: over the session bus, through gdbus.

A menu is a list of entries, each a dictionary of its id, depth, label and states.
"""

import re
import subprocess

WATCHER = ("org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher")
ITEM = "/org/ayatana/NotificationItem"


def call(name, path, method, *arguments):
    """The reply as Python values, or None when nobody replies."""
    command = ["gdbus", "call", "--session", "--timeout", "60", "--dest", name, "--object-path", path,
               "--method", method, "--", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    return Variant(done.stdout).read() if done.returncode == 0 else None


def registered():
    """The items that the watcher knows, each 'name/path'; None without a watcher."""
    reply = call(*WATCHER, "org.freedesktop.DBus.Properties.Get", WATCHER[0], "RegisteredStatusNotifierItems")
    return None if reply is None else reply[0]


def item(name, path, wanted):
    reply = call(name, path, "org.freedesktop.DBus.Properties.Get", "org.kde.StatusNotifierItem", wanted)
    return None if reply is None else reply[0]


def menu_of(pid):
    """The (name, path) of the menu of a process's tray icon, or None."""
    names = call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.ListNames")
    for name in names[0] if names else []:
        if not name.startswith(":"):
            continue
        owner = call("org.freedesktop.DBus", "/org/freedesktop/DBus",
                     "org.freedesktop.DBus.GetConnectionUnixProcessID", name)
        if not owner or owner[0] != pid:
            continue
        seen = subprocess.run(["gdbus", "introspect", "--session", "--recurse", "--only-properties", "--dest", name,
                               "--object-path", ITEM], capture_output=True, text=True, timeout=90).stdout
        found = re.search(r"(/org/ayatana/\S*)/Menu\b", seen)
        if found:
            return name, found[1] + "/Menu"
    return None


def menu(owner):
    """The entries of a menu from top to bottom, those of a submenu below it and one deeper."""
    reply = call(*owner, "com.canonical.dbusmenu.GetLayout", "0", "-1", "[]")
    if reply is None:
        return []
    entries = []

    def walk(node, depth):
        number, properties, children = node
        if depth >= 0:
            entries.append({
                "id": number,
                "depth": depth,
                "label": properties.get("label", "").replace("__", "_"),
                "enabled": properties.get("enabled", True),
                "checked": properties.get("toggle-state") == 1 if "toggle-type" in properties else None,
                "gap": properties.get("type") == "separator",
            })
        for child in children:
            walk(child, depth + 1)

    walk(reply[1], -1)
    return entries


def choose(owner, number):
    call(*owner, "com.canonical.dbusmenu.Event", str(number), "clicked", "<int32 0>", "0")


class Variant:
    """Reads the text in which gdbus prints values."""

    TOKEN = re.compile(r"""\s*(?:@\S+\s+|(?:u?int(?:16|32|64)|byte|double|objectpath|signature)\s+)*
        ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[()\[\]{}<>,:]|[^\s()\[\]{}<>,:]+)""", re.VERBOSE)

    def __init__(self, text):
        self.tokens = [match[1] for match in self.TOKEN.finditer(text)]
        self.at = 0

    def read(self):
        token = self.next()
        if token == "<":
            value = self.read()
            self.next()
            return value
        if token in "([":
            return self.sequence(")" if token == "(" else "]")
        if token == "{":
            pairs = {}
            while self.tokens[self.at] != "}":
                key = self.read()
                self.next()
                pairs[key] = self.read()
                if self.tokens[self.at] == ",":
                    self.next()
            self.next()
            return pairs
        if token[0] in "'\"":
            return re.sub(r"\\(u[0-9a-f]{4}|.)", self.unescape, token[1:-1])
        if token in ("true", "false"):
            return token == "true"
        return int(token, 0) if re.fullmatch(r"[-+]?(0x[0-9a-f]+|\d+)", token) else token

    def sequence(self, end):
        values = []
        while self.tokens[self.at] != end:
            values.append(self.read())
            if self.tokens[self.at] == ",":
                self.next()
        self.next()
        return values

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    @staticmethod
    def unescape(match):
        code = match[1]
        return chr(int(code[1:], 16)) if len(code) == 5 else {"n": "\n", "t": "\t"}.get(code, code)
