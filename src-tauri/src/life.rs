//! The life of the program that the tray stands for: found or started, listened to, lost, ended.
//!
//! One task owns it. It attaches to a `weir serve` on the same data folder, else starts the program inside; where neither
//! is possible it says why and waits to be asked again. A program that goes is looked for and started anew.
//!
//! **Invariant**: at most one program runs inside, and nothing ends this process but being asked to.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, info, warn};
use weir::app::remote::RemoteError;
use weir::app::{App, Config, StartError, folder};
use weir::practice;
use weir::turn::Timers;

use crate::args::Args;
use crate::picture::{Endpoint, Picture};
use crate::program::{Program, Refused};

/// A program that is just starting on the folder is waited for this long.
const STARTING: Duration = Duration::from_secs(3);
/// A program that has just gone may hold its folder and port this long, for its running turns.
const LEAVING: Duration = Duration::from_secs(20);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(250);
/// More than the program inside takes to drain; only a disk that hangs takes longer.
const ENDING: Duration = Duration::from_secs(15);

/// How things stand with the program.
#[derive(Clone, Debug)]
pub(crate) enum Standing {
    Starting,
    Up(Program),
    /// Nothing runs, for the reason of this sentence.
    Down(String),
    Ending,
    /// The task is over; the process may end.
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    TryAgain,
    End,
}

/// What tray and window hold of it.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    asks: mpsc::UnboundedSender<Ask>,
    standing: watch::Receiver<Standing>,
    picture: watch::Sender<Picture>,
    /// The data folder; absent where the system names none.
    folder: Option<PathBuf>,
}

impl Life {
    /// Starts the task.
    pub(crate) fn begin(runtime: &Handle, args: &Args) -> Self {
        let folder = args.data.clone().or_else(|| folder::default_path().ok());
        let (asks, asked) = mpsc::unbounded_channel();
        let (standing, seen) = watch::channel(Standing::Starting);
        let picture = watch::Sender::default();
        let task = Task {
            folder: folder.clone(),
            port: args.port,
            practice: args.practice,
            asked,
            standing,
            picture: picture.clone(),
            said: None,
        };
        runtime.spawn(task.run());
        Self { asks, standing: seen, picture, folder }
    }

    /// What the tray shows, and its changes.
    pub(crate) fn pictures(&self) -> watch::Receiver<Picture> {
        self.picture.subscribe()
    }

    /// Adds what others than the program know.
    pub(crate) fn add(&self, change: impl FnOnce(&mut Picture)) {
        alter(&self.picture, change);
    }

    fn ask(&self, ask: Ask) {
        if self.asks.send(ask).is_err() {
            debug!(?ask, "the program has ended already");
        }
    }

    /// Where there is no program: looks for one again, and starts one if there is none.
    pub(crate) fn try_again(&self) {
        self.ask(Ask::TryAgain);
    }

    /// Lets running turns end, within a bound, and settles when the process may end.
    pub(crate) async fn end(&self) {
        self.ask(Ask::End);
        let mut standing = self.standing.clone();
        drop(standing.wait_for(|now| matches!(now, Standing::Over)).await);
    }

    /// The program; waits while it is being looked for or started.
    ///
    /// # Errors
    /// When there is none, with the sentence that says why.
    pub(crate) async fn program(&self) -> Result<Program, Refused> {
        let mut standing = self.standing.clone();
        let settled = standing.wait_for(|now| !matches!(now, Standing::Starting)).await;
        match settled.as_deref() {
            Ok(Standing::Up(program)) => Ok(program.clone()),
            Ok(Standing::Down(sentence)) => Err(Refused::new("not_running", sentence.clone())),
            _ => Err(Refused::new("ending", "Weir is ending.")),
        }
    }

    /// What clients send as their key.
    ///
    /// # Errors
    /// When it cannot be read, as a sentence.
    pub(crate) fn data_key(&self) -> Result<String, String> {
        let folder =
            self.folder.as_deref().ok_or("This system names no folder for Weir's data.")?;
        let key = folder::read_key(folder, false).map_err(|error| error.to_string())?;
        key.map(|key| key.expose().to_owned())
            .ok_or_else(|| format!("There is no key in {} yet.", folder.display()))
    }
}

fn alter(picture: &watch::Sender<Picture>, change: impl FnOnce(&mut Picture)) {
    picture.send_if_modified(|picture| {
        let before = picture.clone();
        change(picture);
        *picture != before
    });
}

/// A program that was found, or started here.
struct Found {
    program: Program,
    app: Option<App>,
}

/// How listening to a program ended.
enum Parted {
    Lost,
    Asked,
    /// It cannot be listened to at all.
    Unheard(String),
}

struct Task {
    folder: Option<PathBuf>,
    port: u16,
    practice: bool,
    asked: mpsc::UnboundedReceiver<Ask>,
    standing: watch::Sender<Standing>,
    picture: watch::Sender<Picture>,
    /// The last sentence of the log, so that trying in vain does not fill it.
    said: Option<String>,
}

impl Task {
    async fn run(mut self) {
        let mut patience = STARTING;
        loop {
            self.tell(Standing::Starting);
            let found = tokio::select! {
                found = find_or_start(self.folder.clone(), self.port, self.practice, patience) => found,
                () = asked_to_end(&mut self.asked) => break,
            };
            patience = STARTING;
            let sentence = match found {
                Ok(Found { program, app }) => {
                    let parted = self.listen(program).await;
                    if matches!(parted, Parted::Asked) {
                        self.tell(Standing::Ending);
                    }
                    if let Some(app) = app
                        && timeout(ENDING, app.drain()).await.is_err()
                    {
                        warn!("the last rows may not have been written: the disk does not answer");
                    }
                    match parted {
                        Parted::Asked => break,
                        Parted::Lost => {
                            info!("the program that was attached to has ended");
                            patience = LEAVING;
                            continue;
                        }
                        Parted::Unheard(sentence) => sentence,
                    }
                }
                Err(sentence) => sentence,
            };
            if self.down(sentence).await {
                break;
            }
        }
        self.tell(Standing::Over);
    }

    fn tell(&self, standing: Standing) {
        alter(&self.picture, |picture| match &standing {
            // Trying again in vain changes nothing, least of all a menu that is open.
            Standing::Starting if matches!(picture.endpoint, Endpoint::Down(_)) => {}
            Standing::Starting => picture.endpoint = Endpoint::Starting,
            Standing::Down(sentence) => {
                let (at_login, endpoint) = (picture.at_login, Endpoint::Down(sentence.clone()));
                *picture = Picture { endpoint, at_login, ..Picture::default() };
            }
            Standing::Ending | Standing::Over => picture.endpoint = Endpoint::Ending,
            // The first message says where it listens.
            Standing::Up(_) => {}
        });
        self.standing.send_replace(standing);
    }

    /// Says why nothing runs and waits; whether it was asked to end.
    async fn down(&mut self, sentence: String) -> bool {
        if self.said.as_ref() != Some(&sentence) {
            warn!("nothing listens: {sentence}");
            self.said = Some(sentence.clone());
        }
        self.tell(Standing::Down(sentence));
        self.asked.recv().await != Some(Ask::TryAgain)
    }

    /// Follows the program for as long as it runs.
    async fn listen(&mut self, program: Program) -> Parted {
        let attached = program.is_attached();
        let mut messages = match program.watch(None).await {
            Ok(messages) => messages,
            Err(refused) if refused.code == "not_running" => return Parted::Lost,
            Err(refused) => return Parted::Unheard(refused.message),
        };
        let mut up = false;
        loop {
            let message = tokio::select! {
                message = messages.next() => message,
                () = asked_to_end(&mut self.asked) => return Parted::Asked,
            };
            let Some(message) = message else { return Parted::Lost };
            alter(&self.picture, |picture| {
                if let Err(error) = picture.hear(&message, attached) {
                    warn!(%error, "a message of the program could not be read");
                }
            });
            if !up {
                up = true;
                self.said = None;
                info!(attached, "the program runs");
                self.tell(Standing::Up(program.clone()));
            }
        }
    }
}

/// Settles when the process is to end; asking again for a program that is there, or on its way, means nothing.
async fn asked_to_end(asked: &mut mpsc::UnboundedReceiver<Ask>) {
    while asked.recv().await == Some(Ask::TryAgain) {}
}

async fn find_or_start(
    folder: Option<PathBuf>,
    port: u16,
    practice: bool,
    patience: Duration,
) -> Result<Found, String> {
    let until = Instant::now() + patience;
    loop {
        let unanswered = match &folder {
            Some(folder) => match Program::find(folder).await {
                Ok(program) => return Ok(Found { program, app: None }),
                Err(RemoteError::NotRunning) => None,
                Err(other) => Some(other.to_string()),
            },
            None => None,
        };
        let practice = practice.then(practice::Options::default);
        let timers = Timers::default();
        let config = Config { data: folder.clone(), port, practice, timers, log: false };
        let error = match App::start(config).await {
            Ok(app) => {
                return Ok(Found { program: Program::Inside(app.api.clone()), app: Some(app) });
            }
            Err(error) => error,
        };
        let may_pass = match &error {
            StartError::InUse { .. } => true,
            other => patience == LEAVING && other.is_in_use(),
        };
        if !may_pass || Instant::now() >= until {
            return Err(match (&error, unanswered) {
                // It is there and cannot be spoken to, which says more than that it is there.
                (StartError::InUse { .. }, Some(sentence)) => sentence,
                _ => error.to_string(),
            });
        }
        sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests;
