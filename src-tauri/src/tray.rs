//! The icon in the tray and its menu, kept equal to their description.
//!
//! [`Tray::show`] compares the description with what is there: a changed text or check mark is set on the item that is
//! there, an item comes or goes only where its key does. So a menu that is open stays open.
//!
//! **Invariant**: nothing is touched that is already as described, and no word is added here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::anyhow;
use tauri::image::Image;
use tauri::menu::{CheckMenuItem, IsMenuItem, Menu, MenuItem, PredefinedMenuItem, Submenu};
use tauri::tray::{TrayIcon, TrayIconBuilder};
use tauri::{AppHandle, Wry};

use crate::difference::{Step, same, steps};
use crate::icon::{self, Bars, Look};
use crate::menu::{self, Action, Entry, Line};
use crate::picture::Picture;
use crate::system::{ICON_SIZE, LOOK};

/// What is in the tray now.
pub(crate) struct Tray {
    icon: TrayIcon,
    bars: Bars,
    heading: String,
    menu: Menu<Wry>,
    items: Vec<Item>,
}

/// An entry that is there, as it was last set.
struct Item {
    entry: Entry,
    there: There,
}

enum There {
    Plain(MenuItem<Wry>),
    Check(CheckMenuItem<Wry>),
    /// The entries of a submenu are the items here, and not those of its entry.
    Sub(Submenu<Wry>, Vec<Item>),
    Gap(PredefinedMenuItem<Wry>),
}

impl Tray {
    /// Puts the icon into the tray; `perform` is called on the main thread for each choice.
    ///
    /// # Errors
    /// When the operating system refuses the menu or the icon, or lacks the library for it.
    pub(crate) fn place(
        app: &AppHandle,
        picture: &Picture,
        now: i64,
        perform: impl Fn(&AppHandle, &str, Action) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let menu = Menu::new(app)?;
        let mut items = Vec::new();
        settle(app, &Parent::Menu(&menu), &mut items, &menu::describe(picture, now))?;
        let bars = Bars::of(picture, now);
        let heading = menu::heading(picture);
        let icon = TrayIconBuilder::with_id("weir")
            .tooltip(&heading)
            .icon(image(bars))
            .icon_as_template(LOOK == Look::Template)
            .menu(&menu)
            .on_menu_event(move |app, event| {
                if let Some(action) = Action::of(event.id().as_ref()) {
                    perform(app, event.id().as_ref(), action);
                }
            });
        // On Linux the library behind the tray is looked for only now, and a missing one panics.
        let icon = catch_unwind(AssertUnwindSafe(|| icon.build(app)))
            .map_err(|_| anyhow!("this system lacks libayatana-appindicator3"))??;
        Ok(Self { icon, bars, heading, menu, items })
    }

    /// Shows another picture. Call it on the main thread.
    ///
    /// # Errors
    /// When the operating system refuses a change.
    pub(crate) fn show(
        &mut self,
        app: &AppHandle,
        picture: &Picture,
        now: i64,
    ) -> tauri::Result<()> {
        let wanted = menu::describe(picture, now);
        settle(app, &Parent::Menu(&self.menu), &mut self.items, &wanted)?;
        let bars = Bars::of(picture, now);
        if bars != self.bars {
            self.icon.set_icon_with_as_template(Some(image(bars)), LOOK == Look::Template)?;
            self.bars = bars;
        }
        let heading = menu::heading(picture);
        if heading != self.heading {
            self.icon.set_tooltip(Some(&heading))?;
            self.heading = heading;
        }
        Ok(())
    }

    /// The operating system turned a check mark over because its entry was chosen.
    pub(crate) fn turned(&mut self, key: &str) {
        turn(&mut self.items, key);
    }
}

fn image(bars: Bars) -> Image<'static> {
    Image::new_owned(icon::draw(bars, ICON_SIZE, LOOK), ICON_SIZE, ICON_SIZE)
}

fn turn(items: &mut [Item], key: &str) {
    for item in items {
        match (&mut item.there, &mut item.entry.line) {
            (There::Sub(_, children), _) => turn(children, key),
            (_, Line::Check { checked, .. }) if item.entry.key == key => *checked = !*checked,
            _ => {}
        }
    }
}

/// Where items are put.
enum Parent<'a> {
    Menu(&'a Menu<Wry>),
    Sub(&'a Submenu<Wry>),
}

impl Parent<'_> {
    fn insert(&self, item: &dyn IsMenuItem<Wry>, place: usize) -> tauri::Result<()> {
        match self {
            Self::Menu(menu) => menu.insert(item, place),
            Self::Sub(menu) => menu.insert(item, place),
        }
    }

    fn remove(&self, item: &dyn IsMenuItem<Wry>) -> tauri::Result<()> {
        match self {
            Self::Menu(menu) => menu.remove(item),
            Self::Sub(menu) => menu.remove(item),
        }
    }
}

/// Makes the items of one menu as wanted.
fn settle(
    app: &AppHandle,
    parent: &Parent<'_>,
    items: &mut Vec<Item>,
    wanted: &[Entry],
) -> tauri::Result<()> {
    let there = items.iter().map(|item| same(&item.entry)).collect();
    for step in steps(there, &wanted.iter().map(same).collect::<Vec<_>>()) {
        match step {
            Step::Remove(place) => parent.remove(items.remove(place).there.as_item())?,
            Step::Insert(place) => {
                let item = build(app, &wanted[place])?;
                parent.insert(item.there.as_item(), place)?;
                items.insert(place, item);
            }
            Step::Keep(place) => items[place].alter(app, &wanted[place])?,
        }
    }
    Ok(())
}

fn build(app: &AppHandle, entry: &Entry) -> tauri::Result<Item> {
    let key = entry.key.as_str();
    let there = match &entry.line {
        Line::Text(text) => {
            There::Plain(MenuItem::with_id(app, key, plain(text), false, None::<&str>)?)
        }
        Line::Do { label, enabled } => {
            There::Plain(MenuItem::with_id(app, key, plain(label), *enabled, None::<&str>)?)
        }
        Line::Check { label, checked, enabled } => There::Check(CheckMenuItem::with_id(
            app,
            key,
            plain(label),
            *enabled,
            *checked,
            None::<&str>,
        )?),
        Line::Sub { label, entries } => {
            let sub = Submenu::with_id(app, key, plain(label), true)?;
            let mut children = Vec::new();
            settle(app, &Parent::Sub(&sub), &mut children, entries)?;
            There::Sub(sub, children)
        }
        Line::Gap => There::Gap(PredefinedMenuItem::separator(app)?),
    };
    Ok(Item { entry: entry.clone(), there })
}

impl Item {
    /// Sets what differs; the entry is of the same kind.
    fn alter(&mut self, app: &AppHandle, to: &Entry) -> tauri::Result<()> {
        match (&mut self.there, &self.entry.line, &to.line) {
            (There::Plain(item), Line::Text(old), Line::Text(new)) if old != new => {
                item.set_text(plain(new))?;
            }
            (
                There::Plain(item),
                Line::Do { label: old, enabled: was },
                Line::Do { label, enabled },
            ) => {
                if old != label {
                    item.set_text(plain(label))?;
                }
                if was != enabled {
                    item.set_enabled(*enabled)?;
                }
            }
            (
                There::Check(item),
                Line::Check { label: old, checked: was_checked, enabled: was },
                Line::Check { label, checked, enabled },
            ) => {
                if old != label {
                    item.set_text(plain(label))?;
                }
                if was_checked != checked {
                    item.set_checked(*checked)?;
                }
                if was != enabled {
                    item.set_enabled(*enabled)?;
                }
            }
            (There::Sub(sub, children), _, Line::Sub { entries, .. }) => {
                settle(app, &Parent::Sub(sub), children, entries)?;
            }
            _ => {}
        }
        self.entry = to.clone();
        Ok(())
    }
}

impl There {
    fn as_item(&self) -> &dyn IsMenuItem<Wry> {
        match self {
            Self::Plain(item) => item,
            Self::Check(item) => item,
            Self::Sub(sub, _) => sub,
            Self::Gap(gap) => gap,
        }
    }
}

/// A menu takes `&` for the mark of a letter to be chosen by; two of them are one that is shown.
fn plain(text: &str) -> String {
    text.replace('&', "&&")
}
