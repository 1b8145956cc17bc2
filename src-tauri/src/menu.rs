//! The tray's menu as a pure description.
//!
//! [`describe`] turns what is known of the program into a list of entries with keys; [`crate::tray`] makes a menu of the
//! operating system equal to the list. A key stays with what an entry is about, so that a changed text is told from
//! another entry.
//!
//! **Invariant**: everything that can be done from the tray is in this list, since on Linux a click on the icon only
//! opens the menu; the keys of one list differ.

use crate::picture::{Endpoint, Model, Picture};
use crate::words;

/// One line of the menu.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) line: Line,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Something to read; it cannot be chosen.
    Text(String),
    Do {
        label: String,
        enabled: bool,
    },
    Check {
        label: String,
        checked: bool,
        enabled: bool,
    },
    Sub {
        label: String,
        entries: Vec<Entry>,
    },
    Gap,
}

/// What choosing an entry does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    CopyUrl,
    CopyKey,
    TryAgain,
    /// `mode` is `auto`, `lite` or `full`.
    SetMode {
        model: String,
        mode: String,
    },
    /// Turns the start at login on or off.
    Login,
    /// Shows the window, building it if there is none.
    Open,
    /// Ends the program.
    Quit,
}

const MODES: [&str; 3] = ["auto", "lite", "full"];

impl Action {
    fn key(&self) -> String {
        match self {
            Self::CopyUrl => "copy-url".to_owned(),
            Self::CopyKey => "copy-key".to_owned(),
            Self::TryAgain => "try-again".to_owned(),
            Self::SetMode { model, mode } => format!("mode {mode} {model}"),
            Self::Login => "login".to_owned(),
            Self::Open => "open".to_owned(),
            Self::Quit => "quit".to_owned(),
        }
    }

    /// The action of an entry's key; none for what can only be read.
    pub(crate) fn of(key: &str) -> Option<Self> {
        Some(match key {
            "copy-url" => Self::CopyUrl,
            "copy-key" => Self::CopyKey,
            "try-again" => Self::TryAgain,
            "login" => Self::Login,
            "open" => Self::Open,
            "quit" => Self::Quit,
            key => {
                let (mode, model) = key.strip_prefix("mode ")?.split_once(' ')?;
                Self::SetMode { model: model.to_owned(), mode: mode.to_owned() }
            }
        })
    }
}

/// The menu for what is known of the program; `now` in unix seconds.
pub(crate) fn describe(picture: &Picture, now: i64) -> Vec<Entry> {
    let mut menu = vec![text("heading", &heading(picture))];
    if let Some(notice) = &picture.notice {
        menu.push(text("notice", notice));
    }
    let listening = matches!(picture.endpoint, Endpoint::Listening { .. });
    if matches!(picture.endpoint, Endpoint::Down(_)) {
        menu.push(act(&Action::TryAgain, "Try again", true));
    }
    menu.push(act(&Action::CopyUrl, "Copy base URL", listening));
    menu.push(act(&Action::CopyKey, "Copy key", listening));
    menu.push(gap("accounts"));
    menu.extend(accounts(picture, now));
    if !picture.models.is_empty() {
        menu.push(gap("models"));
        menu.extend(picture.models.iter().map(|one| model(one, listening)));
    }
    menu.push(gap("program"));
    if let Some(checked) = picture.at_login {
        let label = "Start at login".to_owned();
        let line = Line::Check { label, checked, enabled: true };
        menu.push(Entry { key: Action::Login.key(), line });
    }
    menu.push(act(&Action::Open, "Open Weir", true));
    menu.push(act(&Action::Quit, "Quit Weir", picture.endpoint != Endpoint::Ending));
    menu
}

/// Whether Weir listens and where, or why not.
pub(crate) fn heading(picture: &Picture) -> String {
    match &picture.endpoint {
        Endpoint::Starting => "Starting …".to_owned(),
        Endpoint::Listening { base_url, practice, elsewhere } => format!(
            "{}istening at {base_url}{}",
            if *practice { "Practice, l" } else { "L" },
            if *elsewhere { ", started by `weir serve`" } else { "" }
        ),
        Endpoint::Down(sentence) => words::cut(&format!("Not listening. {sentence}")),
        Endpoint::Ending => "Ending, as soon as running turns have ended …".to_owned(),
    }
}

fn accounts(picture: &Picture, now: i64) -> Vec<Entry> {
    if picture.accounts.is_empty() {
        let known = matches!(picture.endpoint, Endpoint::Listening { .. });
        let line = if known { "No account yet" } else { "Accounts are not known" };
        return vec![text("no-account", line)];
    }
    let line = |(place, account)| text(&format!("account {place}"), &words::account(account, now));
    picture.accounts.iter().enumerate().map(line).collect()
}

fn model(model: &Model, listening: bool) -> Entry {
    let mut entries: Vec<Entry> = MODES
        .into_iter()
        .map(|mode| {
            let action = Action::SetMode { model: model.model.clone(), mode: mode.to_owned() };
            let label = if mode == "auto" { words::auto(model) } else { mode.to_owned() };
            let checked = model.mode == mode;
            Entry { key: action.key(), line: Line::Check { label, checked, enabled: listening } }
        })
        .collect();
    if model.accounts == 0 {
        entries.push(text("nobody", "No account offers this model now"));
    }
    let line = Line::Sub { label: words::model(model), entries };
    Entry { key: format!("model {}", model.model), line }
}

fn text(key: &str, text: &str) -> Entry {
    Entry { key: key.to_owned(), line: Line::Text(words::cut(text)) }
}

fn act(action: &Action, label: &str, enabled: bool) -> Entry {
    Entry { key: action.key(), line: Line::Do { label: label.to_owned(), enabled } }
}

fn gap(before: &str) -> Entry {
    Entry { key: format!("gap {before}"), line: Line::Gap }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::picture::tests::SNAPSHOT;

    /// The menu as a reader sees it.
    fn shown(entries: &[Entry]) -> String {
        let line = |entry: &Entry| match &entry.line {
            Line::Text(text) => text.clone(),
            Line::Do { label, enabled } => format!("{} {label}", if *enabled { ">" } else { "-" }),
            Line::Check { label, checked, enabled } => {
                let (left, right) = if *enabled { ('[', ']') } else { ('(', ')') };
                format!("{left}{}{right} {label}", if *checked { 'x' } else { ' ' })
            }
            Line::Sub { label, entries } => {
                let inside = shown(entries).trim_end().replace('\n', "\n    ");
                format!("{label}\n    {inside}")
            }
            Line::Gap => "---".to_owned(),
        };
        entries.iter().map(|entry| line(entry) + "\n").collect()
    }

    fn listening() -> Picture {
        let mut picture = Picture { at_login: Some(false), ..Picture::default() };
        picture.hear(SNAPSHOT, false).expect("a message");
        picture
    }

    #[track_caller]
    fn reads(picture: &Picture, expected: &str) {
        let expected: String = expected
            .trim()
            .lines()
            .map(|line| line.strip_prefix("        ").unwrap_or(line).to_owned() + "\n")
            .collect();
        assert_eq!(shown(&describe(picture, 60)), expected);
    }

    #[test]
    fn a_listening_program_with_its_pool() {
        reads(
            &listening(),
            "Practice, listening at http://127.0.0.1:8788/v1
        > Copy base URL
        > Copy key
        ---
        practice 1 — 5 h 84 % left, resets in 2 h 29 min; week 67 %
        ---
        practice-lite (auto → lite)
            [x] auto → lite
            [ ] lite
            [ ] full
        ---
        [ ] Start at login
        > Open Weir
        > Quit Weir",
        );
    }

    #[test]
    fn a_program_that_cannot_start_says_why_and_offers_to_try_again() {
        let sentence = "Port 8788 is already used by python3 (process 7). Stop it, or choose another port with `--port`.";
        let down = Picture {
            endpoint: Endpoint::Down(sentence.to_owned()),
            at_login: Some(true),
            ..Picture::default()
        };
        reads(
            &down,
            "Not listening. Port 8788 is already used by python3 (process 7). Stop it, or choose another port with `--port`.
        > Try again
        - Copy base URL
        - Copy key
        ---
        Accounts are not known
        ---
        [x] Start at login
        > Open Weir
        > Quit Weir",
        );
    }

    #[test]
    fn accounts_that_cannot_serve_and_models_that_nobody_offers_say_so() {
        let mut picture = listening();
        picture.endpoint = Endpoint::Listening {
            base_url: "http://127.0.0.1:9000/v1".to_owned(),
            practice: false,
            elsewhere: true,
        };
        picture.at_login = None;
        picture.notice =
            Some("practice-lite stays as it is. The database is read-only.".to_owned());
        picture.accounts[0].windows.clear();
        let mut out = picture.accounts[0].clone();
        out.state = "cannot serve".to_owned();
        out.reason = Some("The backend does not accept its token.".to_owned());
        picture.accounts.push(out);
        picture.models[0].mode = "full".to_owned();
        picture.models[0].accounts = 0;
        reads(
            &picture,
            "Listening at http://127.0.0.1:9000/v1, started by `weir serve`
        practice-lite stays as it is. The database is read-only.
        > Copy base URL
        > Copy key
        ---
        practice 1 — usage not reported yet
        practice 1 — cannot serve: The backend does not accept its token.
        ---
        practice-lite (full)
            [ ] auto → lite
            [ ] lite
            [x] full
            No account offers this model now
        ---
        > Open Weir
        > Quit Weir",
        );
    }

    #[test]
    fn nothing_can_be_copied_or_flipped_while_it_ends() {
        let ending = Picture { endpoint: Endpoint::Ending, ..listening() };
        let text = shown(&describe(&ending, 60));
        assert!(text.starts_with("Ending, "), "{text}");
        for refused in ["- Copy base URL", "- Copy key", "(x) auto → lite", "- Quit Weir"] {
            assert!(text.contains(refused), "{refused} in {text}");
        }
    }

    #[test]
    fn keys_differ_and_lead_to_their_action() {
        fn keys(entries: &[Entry], into: &mut Vec<String>) {
            for entry in entries {
                into.push(entry.key.clone());
                if let Line::Sub { entries, .. } = &entry.line {
                    keys(entries, into);
                }
            }
        }
        let mut all = Vec::new();
        keys(&describe(&listening(), 0), &mut all);
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "{all:?}");

        let odd = Action::SetMode { model: "vendor/a model & more".into(), mode: "full".into() };
        assert_eq!(Action::of(&odd.key()), Some(odd));
        for action in [
            Action::CopyUrl,
            Action::CopyKey,
            Action::TryAgain,
            Action::Login,
            Action::Open,
            Action::Quit,
        ] {
            assert_eq!(Action::of(&action.key()), Some(action));
        }
        assert_eq!(Action::of("heading"), None);
        assert_eq!(Action::of("model practice-lite"), None);
    }

    #[test]
    fn a_minute_changes_texts_and_no_key() {
        let (before, after) = (describe(&listening(), 0), describe(&listening(), 600));
        assert_ne!(before, after);
        let keys = |menu: Vec<Entry>| menu.into_iter().map(|entry| entry.key).collect::<Vec<_>>();
        assert_eq!(keys(before), keys(after));
    }
}
