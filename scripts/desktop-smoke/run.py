"""Everything that the desktop program is tried with, one function after the other."""

import glob
import json
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import bus
import desk
from desk import Desktop, Running, check, wait
from page import Page

LITE = "practice-lite"


def data(name):
    return f"{desk.WORK}/data-{name}"


def practice(name, *more, **environment):
    """The arguments of a start with practice accounts on a folder and a port of its own."""
    return Desktop(name, "--practice", "--port", "0", "--data", data(name), *more, **environment)


def tray_and_menu():
    program = practice("tray", "--hidden")
    listening = program.heads("Practice, listening at http://127.0.0.1:")
    check("the menu says where it listens, and that it is practice", listening, program.labels())
    where = program.owner[0] if program.owner else "?"
    items = wait(lambda: [one for one in bus.registered() or [] if one.startswith(where + "/")])
    check("the icon is registered at the watcher", items, bus.registered())
    check("a hidden start opens no window", not desk.windows())
    wait(lambda: program.entry(LITE))
    labels = program.labels()
    check("an account that served nothing yet says what is left of it",
          any(one.startswith("practice 2 — week 9") for one in labels), labels)
    check("the models are there with what auto resolves to",
          f"{LITE} (auto → lite)" in labels and "practice-full (auto → full)" in labels, labels)
    check("the mode in force has the mark", program.checked("auto", LITE))
    base_url = program.address()

    numbers = lambda: {entry["id"] for entry in program.menu()}
    before = numbers()
    program.choose("full", LITE)
    check("a mode that is chosen in the menu is found in the store", wait(lambda: desk.mode(data("tray"), LITE) == "full"),
          desk.mode(data("tray"), LITE))
    check("the menu shows it", wait(lambda: program.entry(f"{LITE} (full)")), program.labels())
    marks = lambda: [program.checked(one, LITE) for one in ("auto", "lite", "full")]
    check("the mark moves", wait(lambda: marks() == [False, False, True]), marks())
    settled = numbers()
    check("all other items are the same ones as before", len(before) == len(settled) == len(before & settled) + 4,
          (before, settled))
    program.choose("full", LITE)
    time.sleep(1.5)  # There is no event to wait for: nothing may change.
    check("choosing it again leaves the mark", marks() == [False, False, True], marks())
    check("and every item", numbers() == settled)

    status = desk.turn(base_url, data("tray"), LITE)
    turns = desk.weir("turns", "--data", data("tray")).get("turns", [{}])
    check("the next turn is recorded in that form", status == "200" and turns[0].get("dialect") == "full",
          (status, turns[:1]))
    said = lambda: next((one for one in program.labels() if one.startswith("practice 1 — ")), "")
    check("its account says what is left and when it resets",
          wait(lambda: "5 h 8" in said() and "left, resets in 2 h" in said() and "; week " in said()), said())
    program.choose("auto", LITE)
    check("and back to auto", wait(lambda: desk.mode(data("tray"), LITE) == "auto"))

    program.choose("Copy base URL")
    pasted = lambda: desk.output("xclip", "-o", "-selection", "clipboard")
    check("the base URL can be pasted", wait(lambda: pasted() == base_url), pasted())
    program.choose("Copy key")
    check("and the key", wait(lambda: pasted() == desk.key(data("tray"))))

    login = f"{os.environ['HOME']}/.config/autostart/*.desktop"
    program.choose("Start at login")
    text = wait(lambda: "".join(open(one).read() for one in glob.glob(login)))
    check("the start at login is written, hidden and on the same folder",
          "--hidden" in text and f'"{data("tray")}"' in text and "--practice" in text, text)
    check("its mark is set", wait(lambda: program.checked("Start at login")))
    program.choose("Start at login")
    check("and taken back", wait(lambda: not glob.glob(login)))

    picture_of_the_menu(program, items)

    second = Desktop("second", "--data", data("tray"))
    check("a second start ends at once, with code 0", second.code() == 0, second.said())
    shown = wait(lambda: desk.windows(program.pid))
    check("and opens the window of the first", shown)
    check("the page is drawn under LANG=C", shown and wait(lambda: desk.drawn(shown[0], "window")))
    # Its coming back shows that the choice was heard; one that is heard late would open a window after the end of this one.
    check("a window that was put away", shown and desk.minimise(shown[0]))
    program.choose("Open Weir")
    check("comes back when it is asked for", shown and wait(lambda: shown[0] in desk.windows()), desk.windows())
    check("there is one window, however often it is asked for", len(desk.windows()) == 1, desk.windows())
    check("closing destroys it", shown and desk.close(shown[0]) and wait(lambda: not desk.windows()), desk.windows())
    check("its engine goes with it", wait(lambda: not engines(program.pid)), engines(program.pid))
    check("the program stays", program.lives() and desk.serves(base_url))
    program.choose("Open Weir")
    check("the menu opens it again", wait(lambda: desk.windows(program.pid)))

    program.choose("Quit Weir")
    code = program.code()
    check("the menu ends the program, with code 0", code == 0, (code, program.said()))
    check("the port is free again", desk.free(desk.port_of(base_url)))
    check("the note of the running program is gone", not os.path.exists(f"{data('tray')}/running.json"))


def client_after_a_choice():
    """The real OpenCode before and after a mode is chosen in the tray; what went out stands in the rows of its turns."""
    program = practice("client", "--hidden")
    check("the pool is ready for a client", program.heads("listening at") and wait(lambda: program.entry(LITE)), program.labels())
    base_url = program.address()
    seen = set()

    def forms(word):
        """OpenCode's answer, and the forms of the turns that it took."""
        answer = desk.opencode(base_url, data("client"), LITE, f"Reply with the single word {word}")
        rows = lambda: [row for row in desk.weir("turns", "--data", data("client")).get("turns", [])
                        if row["id"] not in seen and row["outcome"] == "completed"]
        fresh = wait(rows)
        seen.update(row["id"] for row in fresh)
        return answer, {row["dialect"] for row in fresh}

    before = forms("alpha")
    check("OpenCode's turns go out lite, as the catalog says", before == ("alpha", {"lite"}), before)
    program.choose("full", LITE)
    check("full is chosen in the tray", wait(lambda: desk.mode(data("client"), LITE) == "full"))
    after = forms("bravo")
    check("OpenCode's next turns go out full", after == ("bravo", {"full"}), after)
    program.choose("Quit Weir")
    check("the program ends after it", program.code() == 0, program.said())


def engines(pid):
    """The web engine's processes that draw pages for a process."""
    return desk.output("pgrep", "-P", str(pid), "-f", "WebKitWebProcess").split()


def picture_of_the_menu(program, items):
    """Opens the menu and a submenu where a user would, and takes the picture."""
    panel = desk.output("xdotool", "search", "--onlyvisible", "--class", "Xfce4-panel").split()
    if not items or not check("the panel is there", panel):
        return
    # Several at once spread over the accounts, so that each has reported something.
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda n: desk.turn(program.address(), data("tray"), LITE, f"word{n}"), range(6)))
    wait(lambda: "not reported" not in "".join(program.labels()))
    bare = desk.picture("panel", "root")
    place = desk.output("xdotool", "getwindowgeometry", "--shell", panel[0])
    corner = dict(line.split("=") for line in place.split() if "=" in line)
    # The tray is the only thing in the panel, so its icon is the first one from the left.
    x, y = int(corner["X"]) + 14, int(corner["Y"]) + int(corner["HEIGHT"]) // 2
    desk.output("xdotool", "mousemove", str(x), str(y), "click", "1")
    check("a click on the icon opens the menu", wait(lambda: desk.picture("menu") > bare + 20))
    desk.output("xdotool", "key", "--delay", "100", "Down", "Down", "Down", "Down", "Right")
    time.sleep(1)  # The submenu is for the picture only.
    open_ones, before = desk.picture("menu"), program.menu()
    text = lambda: [one for one in program.labels() if one.startswith("practice ") and " — " in one]
    old = text()
    # Enough turns for the percentage of whichever account serves them to move by one.
    for n in range(12):
        desk.turn(program.address(), data("tray"), LITE, f"more{n}")
    check("while the menu is open, what is left goes on counting in it", wait(lambda: text() != old), text())
    check("by the same items", [e["id"] for e in program.menu()] == [e["id"] for e in before])
    check("and it stays open", desk.picture("menu-later") > bare + 20 and open_ones > bare + 20)
    desk.output("xdotool", "key", "Escape", "Escape")


def window_over_webdriver():
    port = desk.any_free_port()
    drivers = [Running("webdriver", ["WebKitWebDriver", f"--port={port}"], TAURI_WEBVIEW_AUTOMATION="true")]
    page = Page(port, desk.DESKTOP, ["--practice", "--port", "0", "--data", data("page")])
    try:
        in_the_page(page)
        # A driver has one session at a time.
        port = desk.any_free_port()
        drivers.append(Running("webdriver-2", ["WebKitWebDriver", f"--port={port}"]))
        second_page(port)
    finally:
        status = desk.weir("status", "--data", data("page"))
        with open(f"{data('page')}/running.json") as note:
            program = json.load(note)["pid"]
        page.ask("DELETE", "")
        end(program)
        check("it ends with its driver, and the port is free", wait(lambda: desk.free(desk.port_of(status["base_url"]))))
        for driver in drivers:
            driver.stop()


def in_the_page(page):
    check("the page shows the models", wait(lambda: page.mode(LITE) == "auto"), page.text())
    check("and the accounts", wait(lambda: "practice 1" in page.text()), page.text())
    page.choose(LITE, "full")
    check("a toggle that is flipped in the window is found in the store",
          wait(lambda: desk.mode(data("page"), LITE) == "full"), page.text())
    desk.weir("mode", LITE, "lite", "--data", data("page"))
    check("one that is flipped elsewhere is shown at once", wait(lambda: page.mode(LITE) == "lite"), page.mode(LITE))
    status = desk.weir("status", "--data", data("page"))
    desk.turn(status["base_url"], data("page"), LITE)
    check("a turn appears in the page", wait(lambda: "curl" in page.text()), page.text())
    # A snapshot of many turns is too long for the short way into the page.
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda _: desk.turn(status["base_url"], data("page"), LITE), range(15)))
    page.run("location.reload()")
    check("a page that is loaded again shows all of them", wait(lambda: "16 turns" in page.text()), page.text())
    desk.weir("mode", LITE, "auto", "--data", data("page"))
    check("and goes on hearing", wait(lambda: page.mode(LITE) == "auto"), page.mode(LITE))
    denied = page.run_async(
        "const done = arguments[0];"
        "window.__TAURI_INTERNALS__.invoke('plugin:autostart|enable').then(() => done('allowed'), (why) => done(String(why)))")
    check("the page may call nothing else", "not allowed" in denied, denied)
    refused = page.run_async(
        "const done = arguments[0];"
        "window.__TAURI_INTERNALS__.invoke('call', {command: {command: 'nonsense'}}).then(() => done({}), done)")
    check("an unknown command is refused with a code and a sentence", refused.get("code") == "unknown_command", refused)
    away = page.run("location.href = 'http://127.0.0.1:1/'; return location.href")
    check("the page does not leave its origin", wait(lambda: page.run("return location.href") == away, 2), away)
    picture_of_the_window("webdriver")


def picture_of_the_window(name):
    """The driver's own picture waits for a frame, and a page at rest draws none without the compositor."""
    for window in desk.windows():
        desk.picture(name, window)


def window_without_program():
    """The page says why nothing runs, and shows the program as soon as it does."""
    holder, held = held_port()
    port = desk.any_free_port()
    driver = Running("webdriver-3", ["WebKitWebDriver", f"--port={port}"], TAURI_WEBVIEW_AUTOMATION="true")
    page = Page(port, desk.DESKTOP, ["--practice", "--port", str(held), "--data", data("late")])
    check("the page says why nothing listens", wait(lambda: f"Port {held} is already used by python3" in page.text()),
          page.text())
    picture_of_the_window("trouble")
    holder.close()
    check("once the port is free it shows the pool", wait(lambda: page.mode(LITE) == "auto"), page.text())
    with open(f"{data('late')}/running.json") as note:
        program = json.load(note)["pid"]
    page.ask("DELETE", "")
    end(program)
    check("it ends, and the port is free", wait(lambda: desk.free(held)))
    driver.stop()


def held_port():
    """A socket that holds a port, and the port."""
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    holder.listen()
    return holder, holder.getsockname()[1]


def end(program):
    """Asks a process to end that the driver may have ended already."""
    try:
        os.kill(program, signal.SIGTERM)
    except ProcessLookupError:
        pass


def second_page(port):
    """A browser beside the window shows the same."""
    opened = subprocess.run([desk.HEADLESS, "open", "--print", "--data", data("page")], capture_output=True, text=True,
                            timeout=desk.DEADLINE).stdout.strip()
    page = Page(port)
    try:
        page.ask("POST", "/url", {"url": opened})
        check("a second page shows the same choice", wait(lambda: page.mode(LITE) == desk.mode(data("page"), LITE)),
              page.text())
    finally:
        page.ask("DELETE", "")


def attached():
    serve = Running("serve", [desk.HEADLESS, "serve", "--practice", "--port", "0", "--json", "--data", data("serve")])
    ready = wait(lambda: serve.said().startswith("{") and json.loads(serve.said().splitlines()[0]))
    program = Desktop("attached", "--hidden", "--port", "0", "--data", data("serve"))
    check("it attaches to a running `weir serve`", program.heads(ready["base_url"], "started by `weir serve`"),
          program.labels())
    check("and shows its accounts", wait(lambda: any(one.startswith("practice 3 — ") for one in program.labels())),
          program.labels())
    program.choose("lite", "practice-full")
    check("a mode is set in the other process", wait(lambda: desk.mode(data("serve"), "practice-full") == "lite"))
    program.choose("Quit Weir")
    check("quitting ends the desktop", program.code() == 0, program.said())
    check("and leaves the other running", serve.lives() and desk.serves(ready["base_url"]))

    program = Desktop("heir", "--hidden", "--practice", "--port", "0", "--data", data("serve"))
    program.heads("started by `weir serve`")
    serve.stop()
    base_url = wait(lambda: serves_itself(program))
    check("when the other ends, the desktop serves in its place", base_url, program.labels())
    program.process.terminate()
    check("it ends when the system asks it to, with code 0", program.code() == 0, program.said())
    check("and frees the port", base_url and desk.free(desk.port_of(base_url)))


def serves_itself(program):
    """Its address, once no other program listens for it. The heading is read once: it changes on the way."""
    heading = program.heading()
    base_url = desk.address_in(heading)
    return base_url if base_url and "weir serve" not in heading and desk.serves(base_url) else None


def port_in_use():
    holder, port = held_port()
    program = Desktop("held", "--hidden", "--practice", "--port", str(port), "--data", data("held"))
    check("a port in use: the menu says by whom", program.heads("Not listening.", f"Port {port}", "python3"), program.labels())
    check("and offers to try again", program.entry("Try again"), program.labels())
    check("nothing can be copied meanwhile", not program.entry("Copy base URL")["enabled"])
    program.choose("Try again")
    time.sleep(1.5)  # There is no event to wait for: nothing may change.
    check("trying again in vain changes nothing", "python3" in program.heading() and program.lives(), program.labels())
    program.choose("Open Weir")
    shown = wait(lambda: desk.windows(program.pid))
    check("the window opens all the same", shown and wait(lambda: desk.drawn(shown[0], "held")))
    check("and closes", shown and desk.close(shown[0]) and wait(lambda: not desk.windows()), desk.windows())
    holder.close()
    program.choose("Try again")
    check("once the port is free it works", program.heads(f"listening at http://127.0.0.1:{port}/v1"), program.labels())
    check("the accounts came into the menu", wait(lambda: program.entry("practice 3 — ")), program.labels())
    quitter = Desktop("quitter", "--quit")
    check("`--quit` ends the one that runs", quitter.code() == 0 and program.code() == 0, program.said())


def newer_database():
    os.makedirs(data("newer"))
    made = Running("made", [desk.HEADLESS, "serve", "--practice", "--port", "0", "--json", "--data", data("newer")])
    wait(lambda: "ready" in made.said())
    made.stop()
    import sqlite3
    base = next(one for one in glob.glob(f"{data('newer')}/*.db"))
    with sqlite3.connect(base) as store:
        store.execute("pragma user_version = 9999")
    program = Desktop("newer", "--hidden", "--data", data("newer"), "--port", "0")
    check("a newer database: the menu says so and the program stays up",
          program.heads("Not listening.", "newer") and program.lives(), program.labels())
    program.process.terminate()
    check("and ends when asked", program.code() == 0)


def no_bus():
    program = practice("nobus", DBUS_SESSION_BUS_ADDRESS=f"unix:path={desk.WORK}/nothing")
    shown = wait(lambda: desk.windows(program.pid))
    check("without a session bus the window opens", shown, program.said())
    check("with its page", shown and wait(lambda: desk.drawn(shown[0], "nobus")))
    check("the title says that there is no tray", shown and wait(lambda: "no tray" in desk.title(shown[0])),
          shown and desk.title(shown[0]))
    served = wait(lambda: desk.weir("status", "--data", data("nobus")).get("base_url"))
    check("and it serves", served and desk.serves(served), program.said())
    program.process.terminate()
    check("it ends in order", program.code() == 0, program.said())


def no_library():
    """An empty file where the tray's library is looked for first hides the real one."""
    hidden = f"{desk.WORK}/hidden"
    os.makedirs(hidden)
    for name in ("libayatana-appindicator3", "libappindicator3"):
        for ending in (".so.1", ".so"):
            open(f"{hidden}/{name}{ending}", "w").close()
    program = practice("nolib", "--hidden", LD_LIBRARY_PATH=hidden)
    shown = wait(lambda: desk.windows(program.pid))
    check("without the tray's library the window opens", shown, program.said())
    check("the log names the library", "lacks libayatana-appindicator3" in program.said(), program.said())
    # The window may be there before the endpoint is.
    served = wait(lambda: desk.weir("status", "--data", data("nolib")).get("base_url"))
    check("and it serves", served and desk.serves(served), program.said())
    program.process.terminate()
    check("it ends in order", program.code() == 0, program.said())


def no_display():
    program = practice("nodisplay", DISPLAY=":9999")
    code = program.code()
    check("without a display it says so and ends with code 3", code == 3 and "display" in program.said(), (code, program.said()))


def no_panel():
    program = practice("nopanel", "--hidden")
    shown = wait(lambda: desk.windows(program.pid))
    check("without a panel the window opens, even at login", shown, program.said())
    check("the title and the log say that there is no tray",
          shown and wait(lambda: "no tray" in desk.title(shown[0])) and "no tray" in program.said(), program.said())
    check("the menu is on the bus all the same", program.heads("listening at"))
    program.choose("Quit Weir")
    check("and can end it", program.code() == 0, program.said())


def with_panel():
    manager = Running("openbox", ["openbox"])
    wait(lambda: desk.output("xdotool", "get_num_desktops"))
    no_panel()
    configure_panel()
    panel = Running("panel", ["xfce4-panel", "--disable-wm-check"])
    check("a panel with a tray is there", wait(lambda: bus.registered() is not None), panel.said())
    for one in (tray_and_menu, client_after_a_choice, attached, port_in_use, newer_database, window_over_webdriver,
                window_without_program, no_library, no_bus, no_display):
        print(f"--    {one.__name__.replace('_', ' ')}", flush=True)
        try:
            one()
        except Exception as error:  # The rest is still worth trying.
            check(f"{one.__name__.replace('_', ' ')} runs to its end", False, error)
        for running in desk.started:
            if running not in (manager, panel):
                running.stop()


def configure_panel():
    """A panel that holds a tray and nothing else."""
    folder = f"{os.environ['XDG_CONFIG_HOME']}/xfce4/xfconf/xfce-perchannel-xml"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/xfce4-panel.xml", "w") as file:
        file.write("""<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array"><value type="int" value="1"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/>
      <property name="length" type="uint" value="100"/>
      <property name="size" type="uint" value="30"/>
      <property name="icon-size" type="uint" value="22"/>
      <property name="position-locked" type="bool" value="true"/>
      <property name="plugin-ids" type="array"><value type="int" value="1"/></property>
    </property>
  </property>
  <property name="plugins" type="empty"><property name="plugin-1" type="string" value="systray"/></property>
</channel>
""")


try:
    with_panel()
finally:
    desk.stop_all()
if desk.failed:
    for one in desk.started:
        if isinstance(one, Desktop):
            print(f"What {one.name} said:\n" + "\n".join(one.said().splitlines()[-15:]))
print(f"{desk.passed} passed, {desk.failed} failed")
sys.exit(1 if desk.failed else 0)
