//! The whole contract with the window and the command line: [`Command`] in, [`Reply`] out.
//!
//! Every way to look at Weir or to change it is a command here; transports only carry them ([`http`]).
//!
//! **Invariant**: a command never carries a client's data key's rights: whoever can send one holds the control key.

pub mod http;
pub mod probe;
pub mod view;
pub mod watch;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use weir_core::dialect::mode::ServingMode;

use crate::endpoint::sessions::Sessions;
use crate::store::{CallRow, DayUsage, StoreError, TurnRow};
use crate::turn::{Shared, catalogs};
use view::{AccountRow, ModelRow, Status};

/// What can be asked.
#[derive(Clone, Debug, Deserialize, Serialize, ts_rs::TS)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    Status,
    Models,
    /// An address of the page that is good once.
    Open,
    /// What each model used on each of the latest local days.
    Usage {
        days: Option<usize>,
    },
    SetMode {
        model: String,
        #[ts(type = "Mode")]
        mode: ServingMode,
    },
    Accounts,
    Turns {
        limit: Option<usize>,
    },
    /// One turn with its calls; any unique beginning of its id will do.
    Turn {
        id: String,
    },
    /// Sends three small turns in each dialect and compares; this uses quota.
    Probe {
        model: String,
    },
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Reply {
    Status(Status),
    Opened { url: String },
    Usage { usage: Vec<DayUsage> },
    Models { models: Vec<ModelRow> },
    Model { model: ModelRow },
    Accounts { accounts: Vec<AccountRow> },
    Turns { turns: Vec<TurnRow> },
    Turn(Box<OneTurn>),
    Probe(probe::Report),
}

/// A turn with its calls in emitted order.
#[derive(Clone, Debug, Serialize, ts_rs::TS)]
pub struct OneTurn {
    pub turn: TurnRow,
    pub calls: Vec<CallRow>,
}

/// Why a command was not carried out: a code to branch on, a sentence to read.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    pub code: &'static str,
    pub message: String,
}

/// What a dispatcher works on.
#[derive(Clone, Debug)]
pub struct Api {
    pub turns: Arc<Shared>,
    pub base_url: String,
    pub practice: bool,
    pub started_at: i64,
    /// This start of the program, for watchers.
    pub epoch: String,
    pub sessions: Arc<Sessions>,
    /// Ends the event streams, so that the program can.
    pub closing: CancellationToken,
}

/// The most turns that one reply lists.
const TURNS_LIMIT: usize = 1_000;

pub async fn dispatch(api: &Api, command: Command) -> Result<Reply, Refusal> {
    match command {
        Command::Status => Ok(Reply::Status(view::status(api))),
        Command::Open => {
            let ticket = api.sessions.ticket();
            let origin = api.base_url.trim_end_matches("/v1");
            Ok(Reply::Opened { url: format!("{origin}/#ticket={}", ticket.expose()) })
        }
        Command::Usage { days } => {
            let days = days.unwrap_or(30);
            Ok(Reply::Usage { usage: stored(api, move |store| store.usage_by_day(days)).await? })
        }
        Command::Accounts => {
            catalogs::ensure(&api.turns).await;
            Ok(Reply::Accounts { accounts: view::accounts(api) })
        }
        Command::Models => {
            catalogs::ensure(&api.turns).await;
            Ok(Reply::Models { models: view::models(api) })
        }
        Command::SetMode { model, mode } => set_mode(api, model, mode).await,
        Command::Turns { limit } => {
            let limit = limit.unwrap_or(50).min(TURNS_LIMIT);
            let turns = stored(api, move |store| store.turns(limit)).await?;
            Ok(Reply::Turns { turns })
        }
        Command::Turn { id } => match stored(api, move |store| store.turn(&id)).await? {
            Some((turn, calls)) => Ok(Reply::Turn(Box::new(OneTurn { turn, calls }))),
            None => Err(Refusal {
                code: "unknown_turn",
                message:
                    "No turn, or more than one, has an id that begins so. `weir turns` lists them."
                        .into(),
            }),
        },
        Command::Probe { model } => {
            known(api, &model).await?;
            probe::run(&api.turns, &model).await.map(Reply::Probe)
        }
    }
}

async fn set_mode(api: &Api, model: String, mode: ServingMode) -> Result<Reply, Refusal> {
    // A choice for a model that has left the catalog can still be taken back.
    if mode != ServingMode::Auto {
        known(api, &model).await?;
    }
    let (turns, name) = (Arc::clone(&api.turns), model.clone());
    let written = tokio::task::spawn_blocking(move || turns.modes.set(&name, mode)).await;
    written.map_err(|_| unreadable())?.map_err(|error| {
        tracing::error!(%error, "a mode could not be written");
        Refusal {
            code: "not_written",
            message: format!(
                "The choice could not be written to the database, so nothing changed: {error}"
            ),
        }
    })?;
    tracing::info!(model, %mode, "serving mode set");
    api.turns.live.touch();
    Ok(Reply::Model { model: view::model(api, &model) })
}

/// Refuses a model that no account lists, which is most often a slip of the pen.
async fn known(api: &Api, model: &str) -> Result<(), Refusal> {
    catalogs::ensure(&api.turns).await;
    let models = api.turns.pool.models();
    if models.iter().any(|(entry, _)| entry.slug == model) {
        return Ok(());
    }
    let list: Vec<&str> = models.iter().map(|(entry, _)| entry.slug.as_str()).collect();
    let message = if list.is_empty() {
        "No account's list of models could be read. `weir accounts` says why.".to_owned()
    } else {
        format!("No account of the pool offers `{model}`. It offers: {}.", list.join(", "))
    };
    Err(Refusal { code: "unknown_model", message })
}

async fn stored<T: Send + 'static>(
    api: &Api,
    read: impl FnOnce(&crate::store::Store) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Refusal> {
    let store = api.turns.store.clone();
    let read = tokio::task::spawn_blocking(move || {
        store.flush();
        read(&store)
    });
    read.await.map_err(|_| unreadable())?.map_err(|error| {
        if matches!(error, StoreError::Ambiguous(_)) {
            return Refusal { code: "ambiguous_turn", message: error.to_string() };
        }
        tracing::error!(%error, "the history could not be read");
        unreadable()
    })
}

fn unreadable() -> Refusal {
    Refusal {
        code: "history_unreadable",
        message: "The history could not be read. The log says why.".into(),
    }
}
