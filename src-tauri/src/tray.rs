//! The icon in the tray and its menu.
//!
//! [`describe`] turns what is known of the program into a list of entries; [`draw`] turns the list into a menu of the
//! operating system. Only the first decides anything, so that tests need no display.
//!
//! **Invariant**: `draw` adds no entry and no word of its own.

use tauri::menu::{IsMenuItem, Menu, MenuItem, PredefinedMenuItem};
use tauri::tray::TrayIconBuilder;
use tauri::{AppHandle, Wry};

use crate::program::Program;

/// What an entry of the menu does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Shows the window, building it if there is none.
    Open,
    /// Ends the program.
    Quit,
}

impl Action {
    const ALL: [Self; 2] = [Self::Open, Self::Quit];

    fn id(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Quit => "quit",
        }
    }

    fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.id() == id)
    }
}

/// One line of the menu, from top to bottom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Something to read; it cannot be chosen.
    Text(String),
    /// Something to do.
    Do(Action, &'static str),
    /// A line between groups.
    Gap,
}

/// The menu for what is known of the program.
pub(crate) fn describe(program: &Program) -> Vec<Entry> {
    let heading = match &program.base_url {
        Some(url) => format!("Listening at {url}"),
        None => "Not listening".to_owned(),
    };
    vec![
        Entry::Text(heading),
        Entry::Gap,
        Entry::Do(Action::Open, "Open Weir"),
        Entry::Gap,
        Entry::Do(Action::Quit, "Quit Weir"),
    ]
}

/// Puts the icon into the tray with this menu; `perform` is called on the main thread for each choice.
///
/// # Errors
/// When the operating system refuses the menu or the icon.
pub(crate) fn draw(
    app: &AppHandle,
    entries: &[Entry],
    perform: impl Fn(&AppHandle, Action) + Send + Sync + 'static,
) -> tauri::Result<()> {
    let menu = Menu::new(app)?;
    for entry in entries {
        menu.append(item(app, entry)?.as_ref())?;
    }
    let mut icon = TrayIconBuilder::with_id("weir").tooltip("Weir").menu(&menu).on_menu_event(
        move |app, event| {
            if let Some(action) = Action::of(event.id().as_ref()) {
                perform(app, action);
            }
        },
    );
    if let Some(picture) = app.default_window_icon() {
        icon = icon.icon(picture.clone());
    }
    icon.build(app)?;
    Ok(())
}

fn item(app: &AppHandle, entry: &Entry) -> tauri::Result<Box<dyn IsMenuItem<Wry>>> {
    Ok(match entry {
        Entry::Text(text) => Box::new(MenuItem::new(app, text, false, None::<&str>)?),
        Entry::Do(action, label) => {
            Box::new(MenuItem::with_id(app, action.id(), label, true, None::<&str>)?)
        }
        Entry::Gap => Box::new(PredefinedMenuItem::separator(app)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tauri::WebviewUrl;

    fn menu(base_url: Option<&str>) -> Vec<Entry> {
        describe(&Program {
            base_url: base_url.map(str::to_owned),
            page: WebviewUrl::App("index.html".into()),
        })
    }

    #[test]
    fn the_menu_opens_with_the_address() {
        let listening = menu(Some("http://127.0.0.1:8788/v1"));
        assert_eq!(listening[0], Entry::Text("Listening at http://127.0.0.1:8788/v1".to_owned()));
    }

    #[test]
    fn a_missing_address_is_said_and_not_invented() {
        assert_eq!(menu(None)[0], Entry::Text("Not listening".to_owned()));
    }

    #[test]
    fn quitting_is_the_last_entry_and_every_action_has_one() {
        let entries = menu(None);
        assert_eq!(entries.last(), Some(&Entry::Do(Action::Quit, "Quit Weir")));
        for action in Action::ALL {
            let times = entries.iter().filter(|e| matches!(e, Entry::Do(a, _) if *a == action));
            assert_eq!(times.count(), 1, "{action:?}");
            assert_eq!(Action::of(action.id()), Some(action));
        }
    }
}
