//! The task that owns a turn.
//!
//! **Invariant**: every way out of [`drive`] closes the journal with the outcome that the client was told.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use http::HeaderMap;
use tokio::time::Instant;
use weir_core::dialect::body::Body;
use weir_core::dialect::mode::Decision;
use weir_core::dialect::prepare::{Prepared, prepare};
use weir_core::dialect::wire;

use super::caller::Caller;
use super::clock::now_s;
use super::courtesy::{Courtesy, Waited};
use super::decide::{carried, decide, of_trial};
use super::ending::Bad;
use super::journal::{End, Journal};
use super::loops::Ended;
use super::relay::{Relay, Relayed, cancelled};
use super::sink::Sink;
use super::{Order, Shared, catalogs, verdict};
use crate::accounts::account::AccountId;
use crate::accounts::choose::Nobody;
use crate::accounts::pool::{Ask, Lease};
use crate::upstream::failure::{Failure, Source};
use crate::upstream::headers::Names;
use crate::upstream::open::{Opened, Outgoing, Sent};
use crate::upstream::sockets::Key;

/// The field under which the backend keeps a prompt's beginning.
const CACHE_KEY: &str = "prompt_cache_key";

/// How often a turn may move to another account before the commit point.
const MOVES: usize = 2;

pub async fn drive(shared: Arc<Shared>, order: Order, mut sink: Sink) {
    let mut courtesy = Courtesy::new(shared.timers, shared.stop.clone());
    // A probe repeats itself on purpose.
    let asks = order.trial.is_none();
    let pass =
        asks.then(|| shared.loops.begin(&order.caller, &order.body, Instant::now())).transpose();
    let ready = courtesy.attend(&mut sink, shared.timers.silence, catalogs::ensure(&shared)).await;
    let decision = match &order.trial {
        Some(trial) => of_trial(trial),
        None => decide(&shared, order.body.model()),
    };
    let mut journal =
        Journal::open(&shared, &order.caller, &order.body, order.request_bytes, &decision);
    let (end, pass) = match (ready, pass) {
        (Waited::Gone, pass) => (cancelled(), pass.ok().flatten()),
        (_, Err(looping)) => (Bad::request(&looping).tell(&mut sink).await, None),
        (_, Ok(pass)) => {
            let end = run(&shared, order, &decision, &mut journal, &mut sink, &mut courtesy).await;
            (end, pass)
        }
    };
    if let Some(pass) = pass {
        shared.loops.end(pass, ended(&journal, &end), Instant::now());
    }
    journal.close(&end);
    shared.live.touch();
}

/// Whether the client may ask the same again at once.
fn ended(journal: &Journal, end: &End) -> Ended {
    let told_to_wait =
        end.error.as_ref().is_some_and(|(code, _)| code == wire::USAGE_LIMIT_REACHED);
    if !journal.worked_on() || told_to_wait {
        return Ended::Free;
    }
    if end.error.is_none() { Ended::Well } else { Ended::Badly }
}

async fn run(
    shared: &Arc<Shared>,
    order: Order,
    decision: &Decision,
    journal: &mut Journal,
    sink: &mut Sink,
    courtesy: &mut Courtesy,
) -> End {
    let model = order.body.model().to_owned();
    let stripped = |call_id: &str| shared.flat_calls.get(call_id).is_some();
    let mut asked = order.body;
    // The client's own key is never touched; a client without one would get no cache at all.
    if asked.get(CACHE_KEY).is_none() {
        asked.set(CACHE_KEY, order.caller.session());
    }
    let prepared = match prepare(asked, decision, &stripped) {
        Ok(prepared) => prepared,
        Err(refusal) => return Bad::request(&refusal).tell(sink).await,
    };
    if prepared.mended > 0 {
        tracing::info!(items = prepared.mended, "mended a history that the backend would refuse");
    }
    let lane = lane(&prepared.body);
    let mut tried: Vec<AccountId> = Vec::new();
    let mut last: Option<Failure> = None;
    let pin = order.trial.as_ref().and_then(|trial| trial.account.as_deref());
    loop {
        let ask = asking(&model, decision, &order.caller, pin, &tried);
        let lease = match shared.pool.lease(&ask, now_s()) {
            Ok(lease) => lease,
            Err(nobody) => {
                let bad = match (&last, &nobody) {
                    // Whoever is left is at a limit: the pool knows the earliest reset, a single account does not.
                    (Some(failure), nobody)
                        if failure.source != Source::Limit
                            || !matches!(nobody, Nobody::Exhausted { .. }) =>
                    {
                        Bad::failure(failure, &model, decision)
                    }
                    _ => Bad::nobody(&nobody, &model, decision, &known(shared)),
                };
                return bad.tell(sink).await;
            }
        };
        journal.leased(&lease.account.name, &lease.reason);
        let key = Key {
            account: lease.account.id.clone(),
            conversation: order.caller.conversation.clone(),
            lane,
        };
        let attempt = Attempt {
            shared,
            lease: &lease,
            prepared: &prepared,
            // A trial compares two forms of one request, so nothing else may differ between its turns.
            key: order.trial.is_none().then_some(&key),
            caller: &order.caller,
        };
        match attempt.send(journal, sink, courtesy).await {
            Relayed::Ended(end) => return end,
            Relayed::Failed(failure) => {
                verdict::tell_the_pool(shared, &lease.account.id, &failure);
                tried.push(lease.account.id.clone());
                if failure.retryable && tried.len() > MOVES && failure.source == Source::Limit {
                    let rest = asking(&model, decision, &order.caller, pin, &tried);
                    let bad = match shared.pool.lease(&rest, now_s()) {
                        Ok(_) => Bad::still_others(),
                        Err(nobody) => Bad::nobody(&nobody, &model, decision, &known(shared)),
                    };
                    return bad.tell(sink).await;
                }
                if !failure.retryable || tried.len() > MOVES {
                    return Bad::failure(&failure, &model, decision).tell(sink).await;
                }
                journal.attempt_failed(&failure.code);
                last = Some(failure);
            }
        }
    }
}

fn asking<'a>(
    model: &'a str,
    decision: &Decision,
    caller: &'a Caller,
    pin: Option<&'a str>,
    tried: &'a [AccountId],
) -> Ask<'a> {
    Ask { model, carried: carried(decision), conversation: &caller.conversation, tried, pin }
}

/// The same prepared body with one account.
struct Attempt<'a> {
    shared: &'a Arc<Shared>,
    lease: &'a Lease,
    prepared: &'a Prepared,
    key: Option<&'a Key>,
    caller: &'a Caller,
}

impl Attempt<'_> {
    async fn send(
        &self,
        journal: &mut Journal,
        sink: &mut Sink,
        courtesy: &mut Courtesy,
    ) -> Relayed {
        let shared = self.shared;
        let account = &self.lease.account;
        let outgoing = Outgoing {
            account,
            client_headers: &self.client_headers(),
            names: Names { session: self.caller.session(), thread: &self.caller.conversation },
            dialect: self.prepared.dialect,
            body: &self.prepared.body,
            key: self.key,
        };
        let mut sent = Sent::nothing();
        let opening = shared.upstream.open(outgoing, &mut sent);
        let waited = courtesy.attend(sink, shared.timers.silence, opening).await;
        journal.sent(&sent, self.prepared.body.items().len());
        let opened = match waited {
            Waited::Got(Ok(opened)) => opened,
            Waited::Got(Err(failure)) => return Relayed::Failed(failure),
            Waited::Gone => return Relayed::Ended(cancelled()),
            Waited::Silent => {
                return Relayed::Failed(Failure::new(
                    Source::Backend,
                    true,
                    503,
                    "backend_silent",
                    "The backend did not answer. Send the request again.",
                ));
            }
            Waited::Stopping => {
                return Relayed::Failed(Failure::new(
                    Source::Machine,
                    false,
                    503,
                    "weir_closing",
                    "Weir is being closed. Start it and send the request again.",
                ));
            }
        };
        self.take_note(&opened);
        let relay = Relay {
            shared,
            account: account.id.clone(),
            journal,
            sink,
            courtesy,
            headers: opened.passed_on.clone(),
            strip_namespace: self.prepared.strip_namespace,
            input_bytes: self.prepared.body.size(),
        };
        relay.run(opened).await
    }

    /// The client's headers without a routing state that another account gave.
    fn client_headers(&self) -> HeaderMap {
        let mut headers = self.caller.headers.clone();
        let state = headers.get(wire::TURN_STATE_HEADER).and_then(|state| state.to_str().ok());
        let giver = state.and_then(|state| self.shared.turn_states.get(state));
        if giver.as_ref() != Some(&self.lease.account.id) {
            headers.remove(wire::TURN_STATE_HEADER);
        }
        headers
    }

    fn take_note(&self, opened: &Opened) {
        let state =
            opened.passed_on.get(wire::TURN_STATE_HEADER).and_then(|state| state.to_str().ok());
        if let Some(state) = state {
            self.shared.turn_states.keep(state.to_owned(), self.lease.account.id.clone());
        }
        self.shared.pool.observe(&self.lease.account.id, &opened.windows, now_s());
        if let Some(etag) = &opened.models_etag {
            catalogs::refresh_if_changed(self.shared, &self.lease.account, etag);
        }
    }
}

/// Turns of one conversation that can continue each other: those for one model, with tools or without.
fn lane(body: &Body) -> u64 {
    let tools = body.get("tools").is_some_and(|tools| tools.get() != "[]")
        || body.items().first().is_some_and(|item| item.kind() == wire::ADDITIONAL_TOOLS);
    let mut hasher = DefaultHasher::new();
    (body.model(), tools).hash(&mut hasher);
    hasher.finish()
}

fn known(shared: &Shared) -> Vec<String> {
    shared.pool.models().into_iter().map(|(model, _)| model.slug).collect()
}
