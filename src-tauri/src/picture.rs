//! What is known of the program: all that the tray shows.
//!
//! Messages of the event stream are applied to it as they come; of those only the parts named here are read, so that a
//! newer program behind an older tray does no harm.
//!
//! **Invariant**: a number that was not reported is absent.

use serde::Deserialize;

/// What the tray shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Picture {
    pub(crate) endpoint: Endpoint,
    pub(crate) accounts: Vec<Account>,
    pub(crate) models: Vec<Model>,
    /// Whether Weir starts at login; absent where the system does not say.
    pub(crate) at_login: Option<bool>,
    /// What became of the last choice, where it did not succeed.
    pub(crate) notice: Option<String>,
}

/// Where clients can reach the program, if they can.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Endpoint {
    #[default]
    Starting,
    Listening {
        /// What a client is configured with, such as `http://127.0.0.1:8788/v1`.
        base_url: String,
        /// The answers are scripted.
        practice: bool,
        /// It is another process that listens.
        elsewhere: bool,
    },
    /// Nothing listens, for the reason of this sentence.
    Down(String),
    /// It was asked to end, and running turns may still go on for a moment.
    Ending,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Account {
    pub(crate) name: String,
    /// `ready`, `at its limit` or `cannot serve`.
    pub(crate) state: String,
    /// Why it is not ready, in a sentence.
    pub(crate) reason: Option<String>,
    /// When a limit that the backend told ends, in unix seconds.
    pub(crate) blocked_until: Option<i64>,
    /// Shortest first.
    pub(crate) windows: Vec<Window>,
    /// When a window was last reported, in unix seconds.
    pub(crate) read_at: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(crate) struct Window {
    /// Length in minutes.
    pub(crate) minutes: u64,
    /// Used share in percent, within 0 and 100.
    pub(crate) used_percent: f64,
    /// When it starts anew, in unix seconds.
    pub(crate) resets_at: Option<i64>,
}

impl Window {
    /// Whether it started anew since it was read, so that what was read says nothing any more.
    pub(crate) fn has_reset(&self, now: i64) -> bool {
        self.resets_at.is_some_and(|at| at <= now)
    }

    /// What is left, in percent; a window that started anew is whole.
    pub(crate) fn left(&self, now: i64) -> f64 {
        if self.has_reset(now) { 100.0 } else { (100.0 - self.used_percent).clamp(0.0, 100.0) }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Model {
    pub(crate) model: String,
    /// The user's choice: `auto`, `lite` or `full`.
    pub(crate) mode: String,
    /// What auto would resolve to.
    pub(crate) auto_dialect: String,
    /// How many accounts offer it.
    pub(crate) accounts: usize,
}

/// The parts of a message that are shown here; one that is missing did not change.
#[derive(Deserialize)]
struct Heard {
    status: Option<Status>,
    accounts: Option<Vec<Account>>,
    models: Option<Vec<Model>>,
}

#[derive(Deserialize)]
struct Status {
    base_url: String,
    practice: bool,
}

impl Picture {
    /// Applies one message of the event stream, a snapshot or a delta.
    ///
    /// # Errors
    /// When the text is no such message; nothing is changed then.
    pub(crate) fn hear(&mut self, message: &str, from_elsewhere: bool) -> serde_json::Result<()> {
        let heard: Heard = serde_json::from_str(message)?;
        if let Some(Status { base_url, practice }) = heard.status {
            self.endpoint = Endpoint::Listening { base_url, practice, elsewhere: from_elsewhere };
        }
        if let Some(accounts) = heard.accounts {
            self.accounts = accounts;
        }
        if let Some(models) = heard.models {
            self.models = models;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const SNAPSHOT: &str = r#"{"kind":"snapshot","epoch":"e","number":1,
        "status":{"version":"0.1.0","base_url":"http://127.0.0.1:8788/v1","practice":true,"started_at":1,"in_flight":0},
        "accounts":[{"name":"practice 1","plan":"practice","state":"ready","reason":null,"in_flight":0,
            "windows":[{"minutes":300,"used_percent":16.0,"resets_at":9000},{"minutes":10080,"used_percent":32.4,"resets_at":320000}],"read_at":10}],
        "models":[{"model":"practice-lite","display_name":"Practice Lite","mode":"auto","dialect":"lite","reason":"r",
            "auto_dialect":"lite","lite_in_catalog":true,"accounts":3}],
        "today":{"turns":0,"reported":0},"turns":[]}"#;

    #[test]
    fn a_snapshot_is_read_and_a_delta_changes_what_it_names() {
        let mut picture = Picture::default();
        picture.hear(SNAPSHOT, false).expect("a message");
        assert_eq!(picture.accounts[0].windows[1].left(0), 67.6);
        assert_eq!(picture.models[0].auto_dialect, "lite");

        let before = picture.clone();
        let delta = r#"{"kind":"delta","epoch":"e","number":2,"after":1,"status":null,"accounts":null,"today":null,"turns":[],
            "models":[{"model":"practice-lite","mode":"full","dialect":"full","auto_dialect":"lite","accounts":3,"new field":1}]}"#;
        picture.hear(delta, false).expect("a message");
        assert_eq!(picture.models[0].mode, "full");
        assert_eq!(picture.accounts, before.accounts);
        assert_eq!(picture.endpoint, before.endpoint);
    }

    #[test]
    fn what_is_no_message_changes_nothing() {
        let mut picture = Picture::default();
        picture.hear(SNAPSHOT, false).expect("a message");
        let before = picture.clone();
        assert!(picture.hear(r#"{"accounts":[{"name":1}]}"#, false).is_err());
        assert!(picture.hear("", false).is_err());
        assert_eq!(picture, before);
    }

    #[test]
    fn a_window_that_started_anew_is_whole() {
        let window = Window { minutes: 300, used_percent: 90.0, resets_at: Some(100) };
        assert_eq!(window.left(99), 10.0);
        assert_eq!(window.left(100), 100.0);
        assert_eq!(Window { resets_at: None, ..window }.left(100), 10.0);
    }
}
