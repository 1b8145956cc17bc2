//! Passes one attempt's events to the client.
//!
//! The backend's opening words are held until there is something a client can see: the commit point. Before it a
//! failure is returned so that the turn may move; after it whatever happens is told to the client in the stream.
//!
//! **Invariant**: an event reaches the client byte for byte, unless a namespace comes off or a terminal event lacks what
//! clients cannot do without.

use http::HeaderMap;
use weir_core::dialect::event::{self, Event, Role};
use weir_core::dialect::refusal;

use super::Shared;
use super::clock::now_s;
use super::courtesy::{Courtesy, Waited};
use super::ending;
use super::journal::{End, Journal, Outcome};
use super::patience::Patience;
use super::progress::Progress;
use super::sink::{Gone, Sink};
use super::verdict;
use crate::accounts::account::AccountId;
use crate::accounts::quota;
use crate::upstream::failure::{Failure, Source};
use crate::upstream::headers;
use crate::upstream::open::Opened;
use crate::upstream::stream::Broken;

/// What became of one attempt.
#[derive(Debug)]
pub enum Relayed {
    /// The turn is over and the client has been told.
    Ended(End),
    /// Nothing reached the client yet.
    Failed(Failure),
}

/// One attempt's way to the client.
pub struct Relay<'a> {
    pub shared: &'a Shared,
    pub account: AccountId,
    pub journal: &'a mut Journal,
    pub sink: &'a mut Sink,
    pub courtesy: &'a mut Courtesy,
    /// Headers of the backend's answer that go with the client's.
    pub headers: HeaderMap,
    pub strip_namespace: bool,
    /// The size of the whole input, also where only the end of it was sent.
    pub input_bytes: usize,
}

impl Relay<'_> {
    pub async fn run(mut self, mut opened: Opened) -> Relayed {
        let mut progress = Progress::new(self.sink.whole());
        let mut patience = Patience::new(self.shared.timers);
        loop {
            let committed = progress.committed();
            let next = patience.next(&mut opened.events, committed, self.courtesy, self.sink).await;
            let done = match next {
                Waited::Got(Some(Ok(data))) => {
                    let done = self.event(&data, &mut progress).await;
                    if progress.works() {
                        patience.heard();
                    }
                    done
                }
                Waited::Got(Some(Err(Broken::TooLong))) => {
                    self.broken(&progress, "event_too_long", "The backend sent one event of more than 32 MiB, which Weir does not pass on.").await
                }
                Waited::Got(Some(Err(Broken::Lost(cause)))) => {
                    tracing::warn!(cause, "the upstream stream broke");
                    self.lost(&progress).await
                }
                Waited::Got(None) => self.lost(&progress).await,
                Waited::Silent if progress.committed() => {
                    self.broken(&progress, "backend_silent", "The backend stopped sending in the middle of the answer. Send the request again.").await
                }
                Waited::Silent => Ok(Some(Relayed::Failed(silent()))),
                Waited::Stopping => Ok(Some(self.stopping(&progress).await)),
                Waited::Gone => Err(Gone),
            };
            match done {
                Ok(None) => {}
                Ok(Some(relayed)) => return relayed,
                Err(Gone) => return Relayed::Ended(cancelled()),
            }
        }
    }

    async fn event(
        &mut self,
        data: &str,
        progress: &mut Progress,
    ) -> Result<Option<Relayed>, Gone> {
        let Some(event) = Event::read(data) else {
            self.pass(progress, None, data).await?;
            if progress.holds_too_much() {
                return self.preamble_too_long(progress).await;
            }
            return Ok(None);
        };
        self.journal.first_event();
        let role = event.role();
        match role {
            Role::Control => self.control(&event),
            Role::Error | Role::Failed | Role::Incomplete if !progress.committed() => {
                // An `incomplete` is a failure only where a quota is its reason.
                let failure = self
                    .failure_of(&event)
                    .filter(|failure| role != Role::Incomplete || failure.source == Source::Limit);
                if let Some(failure) = failure {
                    return Ok(Some(Relayed::Failed(failure)));
                }
            }
            _ => {}
        }
        let stripped = self.without_namespace(&event);
        let event = stripped.as_deref().and_then(Event::read).unwrap_or(event);
        let data = event.raw;
        if !progress.saw(&event) {
            return self.preamble_too_long(progress).await;
        }
        match role {
            Role::Control => self.pass(progress, Some(&event.kind), data).await?,
            Role::Preamble => {
                self.accept();
                self.pass(progress, Some(&event.kind), data).await?;
            }
            Role::Content => {
                self.commit(progress).await?;
                if let Some(item) = event.completed_item().filter(|item| item.is_call()) {
                    self.journal.emitted(&item);
                }
                self.pass(progress, Some(&event.kind), data).await?;
            }
            Role::Completed | Role::Incomplete | Role::Failed | Role::Error => {
                self.commit(progress).await?;
                return self
                    .terminal(&event, role, progress)
                    .await
                    .map(|end| Some(Relayed::Ended(end)));
            }
        }
        Ok(None)
    }

    /// The failure that an event tells, with what it says of the account's windows.
    fn failure_of(&self, event: &Event<'_>) -> Option<Failure> {
        let mut failure = Failure::from_event(&event.failure()?);
        // A connection has no other place for headers.
        if event.raw.contains("\"headers\"")
            && let Ok(said) = serde_json::from_str(event.raw)
        {
            let windows = headers::windows(&headers::of_event(&said));
            self.shared.pool.observe(&self.account, &windows, now_s());
            failure.learn_from(&windows);
        }
        Some(failure)
    }

    async fn preamble_too_long(&mut self, progress: &Progress) -> Result<Option<Relayed>, Gone> {
        let message = "The backend said too much before its answer began. Send the request again.";
        self.broken(progress, "preamble_too_long", message).await
    }

    /// What the backend says beside the answer.
    fn control(&self, event: &Event<'_>) {
        if event.kind == "codex.rate_limits"
            && let Ok(said) = serde_json::from_str(event.raw)
        {
            let now = now_s();
            self.shared.pool.observe(&self.account, &quota::from_event(&said, now), now);
            self.shared.live.touch();
        }
    }

    fn accept(&mut self) {
        if !self.sink.begun() {
            self.sink.accept(std::mem::take(&mut self.headers));
            self.courtesy.wrote();
        }
        self.journal.accepted();
    }

    /// The commit point: what was held goes out, and the turn can move no more.
    async fn commit(&mut self, progress: &mut Progress) -> Result<(), Gone> {
        if let Some(held) = progress.commit() {
            self.accept();
            self.journal.committed();
            self.shared.pool.served(&self.account);
            for frame in held {
                self.sink.write(frame).await?;
            }
        }
        Ok(())
    }

    async fn pass(
        &mut self,
        progress: &mut Progress,
        kind: Option<&str>,
        data: &str,
    ) -> Result<(), Gone> {
        if self.sink.whole() {
            return Ok(());
        }
        if let Some(frame) = progress.hold_or_give(super::progress::frame(kind, data)) {
            self.sink.write(frame).await?;
            self.courtesy.wrote();
        }
        Ok(())
    }

    fn without_namespace(&self, event: &Event<'_>) -> Option<String> {
        if !self.strip_namespace {
            return None;
        }
        let (changed, calls) = event.without_namespace()?;
        calls.into_iter().for_each(|call_id| self.shared.flat_calls.keep(call_id, ()));
        Some(changed)
    }

    async fn terminal(
        &mut self,
        event: &Event<'_>,
        role: Role,
        progress: &mut Progress,
    ) -> Result<End, Gone> {
        let usage = event.usage();
        self.journal.used(usage);
        let end = match role {
            // Without a response there is nothing that a client could take for an answer.
            Role::Completed if event.response.is_some() => End::well(Outcome::Completed),
            Role::Incomplete if event.failure().as_ref().is_none_or(is_a_length) => {
                End::well(Outcome::Incomplete)
            }
            _ => {
                let failure = self.failure_of(event);
                if let Some(failure) = &failure {
                    verdict::tell_the_pool(self.shared, &self.account, failure);
                }
                let late = failure.as_ref().is_none_or(|failure| failure.source != Source::Request);
                if late && progress.all_complete_and_called() {
                    return self
                        .complete(progress, "The backend failed after the last call was complete, so Weir ended the answer; its calls would have been run twice.")
                        .await;
                }
                let (code, message) =
                    failure.map_or_else(unexplained, |failure| (failure.code, failure.message));
                End::theirs(Outcome::Failed, &code, &message)
            }
        };
        if self.sink.whole() {
            self.finish_whole(progress, &end);
            return Ok(end);
        }
        let (kind, data) = match (&end.error, role) {
            (None, Role::Completed) => {
                let estimate = usage.is_none().then(|| progress.estimate(self.input_bytes));
                ("response.completed", ending::completed(event.raw, &event.kind, estimate.as_ref()))
            }
            (None, _) => (event.kind.as_ref(), event.raw.to_owned()),
            (Some(_), Role::Failed) if event.sequence_number.is_some() => {
                ("response.failed", event.raw.to_owned())
            }
            (Some((code, message)), _) => {
                let failed = refusal::failed_event(
                    progress.response_id(),
                    progress.next_sequence(),
                    code,
                    message,
                );
                ("response.failed", failed.to_string())
            }
        };
        self.pass(progress, Some(kind), &data).await?;
        Ok(end)
    }

    fn finish_whole(&mut self, progress: &mut Progress, end: &End) {
        match (&end.error, progress.take_whole()) {
            (None, Some(answer)) => {
                self.journal.emitted_in(&answer);
                self.sink.answer_whole(answer);
            }
            (error, _) => {
                let (code, message) = error.clone().unwrap_or_else(unexplained);
                self.sink.refuse(ending::refused(502, "upstream_error", &code, &message));
            }
        }
    }

    /// The stream ended without a terminal event. What was complete is completed; the rest has failed, in a way that
    /// clients answer by sending the request again.
    async fn lost(&mut self, progress: &Progress) -> Result<Option<Relayed>, Gone> {
        if progress.all_complete() {
            let end = self
                .complete(progress, "The backend closed the stream after the last item without ending the answer, so Weir ended it.")
                .await?;
            return Ok(Some(Relayed::Ended(end)));
        }
        self.broken(
            progress,
            "stream_lost",
            "The backend closed the stream before the answer was complete. Send the request again.",
        )
        .await
    }

    /// The end that the backend did not give to an answer that is complete.
    async fn complete(&mut self, progress: &Progress, why: &str) -> Result<End, Gone> {
        let (completed, answer) = progress.completed_by_weir(self.input_bytes);
        if self.sink.whole() {
            self.sink.answer_whole(answer);
        } else {
            self.sink.write(completed).await?;
        }
        Ok(End::with(Outcome::Completed, "completed_by_weir", why))
    }

    async fn broken(
        &mut self,
        progress: &Progress,
        code: &str,
        message: &str,
    ) -> Result<Option<Relayed>, Gone> {
        if !progress.committed() {
            return Ok(Some(Relayed::Failed(Failure::new(
                Source::Backend,
                false,
                502,
                code,
                message,
            ))));
        }
        let end = End::with(Outcome::Failed, code, message);
        if self.sink.whole() {
            self.sink.refuse(ending::refused(502, "upstream_error", code, message));
        } else {
            let failed = refusal::failed_event(
                progress.response_id(),
                progress.next_sequence(),
                code,
                message,
            );
            self.sink
                .write(super::progress::frame(Some("response.failed"), &failed.to_string()))
                .await?;
        }
        Ok(Some(Relayed::Ended(end)))
    }

    async fn stopping(&mut self, progress: &Progress) -> Relayed {
        let message = "Weir is being closed. Start it and send the request again.";
        match self.broken(progress, "weir_closing", message).await {
            Ok(Some(relayed)) => relayed,
            _ => Relayed::Ended(cancelled()),
        }
    }
}

pub fn cancelled() -> End {
    End::with(Outcome::Cancelled, "client_gone", "The client closed its connection.")
}

/// The reasons for an incomplete answer that clients know how to take; any other makes OpenCode send the turn again
/// without end.
fn is_a_length(said: &event::Failure) -> bool {
    said.reason
        .as_deref()
        .is_none_or(|reason| ["max_output_tokens", "content_filter"].contains(&reason))
}

fn unexplained() -> (String, String) {
    (
        "upstream_error".into(),
        "The backend ended the answer in a way that Weir cannot read. Send the request again."
            .into(),
    )
}

fn silent() -> Failure {
    Failure::new(
        Source::Backend,
        true,
        503,
        "backend_silent",
        "The backend accepted the request and said nothing. Send the request again.",
    )
}
