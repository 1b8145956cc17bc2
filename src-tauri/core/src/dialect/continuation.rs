//! What a request on a held WebSocket may leave out because the socket has seen it.
//!
//! The backend keeps the last response of a socket with everything before it. A request that repeats all of that and goes on
//! needs to send only what is new, which is cheaper to send and finds the backend's cache warm. The whole history is always a
//! right answer, so every doubt ends there, with the reason for the person who pays for it.
//!
//! **Invariant**: what is left out equals, item by item, what the backend has; reasons name fields and never their values.

use std::fmt;
use std::sync::Arc;

use super::body::Body;
use super::equality::{self, Writer};
use super::item::Item;
use super::refusal::word;
use super::same::{self, Fields, Name};

/// Fields in which two requests of one conversation may differ: they are about this request and not about its meaning.
const FREE: [&str; 5] =
    ["access_programs", "client_metadata", "generate", "previous_response_id", "stream_options"];

/// What one socket has seen: the last request that completed on it, and the items that the backend wrote in answer.
///
/// Cheap to clone: the items are shared.
#[derive(Clone)]
pub struct Seen {
    /// The request's fields without the input and without those that may differ, as a JSON object.
    properties: Arc<str>,
    sent: Vec<Item>,
    output: Vec<Item>,
    response_id: String,
}

impl Seen {
    /// `sent` is the prepared request with its whole input, also when only the end of it went over the wire. `output` are the
    /// completed items in the order of the answer, as the backend wrote them. A `response_id` that is empty leaves nothing to
    /// continue.
    pub fn new(sent: &Body, output: Vec<Item>, response_id: String) -> Self {
        Self {
            properties: properties(sent).into(),
            sent: sent.items().to_vec(),
            output,
            response_id,
        }
    }

    /// What `previous_response_id` must name to continue.
    pub fn response_id(&self) -> &str {
        &self.response_id
    }

    /// How many items the backend holds: the input and the answer to it.
    pub fn items(&self) -> usize {
        self.sent.len() + self.output.len()
    }

    fn written(&self) -> impl Iterator<Item = (&Item, Writer)> {
        let sent = self.sent.iter().map(|item| (item, Writer::Client));
        sent.chain(self.output.iter().map(|item| (item, Writer::Backend)))
    }
}

impl fmt::Debug for Seen {
    /// Prints counts only: prompts are private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seen({} items sent, {} answered)", self.sent.len(), self.output.len())
    }
}

/// How a request goes out on a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Only the input items from index `from` on, with `previous_response_id`: see [`incremental`].
    Incremental { from: usize },
    /// Everything.
    Full(Why),
}

/// Why everything had to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nothing has completed on this socket yet.
    First,
    /// This top-level field is another one than before.
    PropertyChanged(String),
    /// An input item is not the one that the backend has at this place.
    PrefixDiffers {
        /// The item's place in the new input, from zero.
        index: usize,
        /// Its `type`, or "item" when it has none that can be shown.
        kind: String,
        /// The first field that differs, as a path: `arguments`, `content/0/text`.
        field: String,
    },
    /// The input ends before what the backend has does.
    Shorter,
    /// The input is what the backend has. That such a request may be sent empty is not known, so it is not.
    NothingNew,
}

impl Why {
    /// The reason in words, for the window and the journal.
    pub fn sentence(&self) -> String {
        match self {
            Self::First => "nothing has completed on this connection yet".to_owned(),
            Self::PropertyChanged(field) => format!("`{field}` changed"),
            Self::PrefixDiffers { index, kind, field } => {
                format!("item {index} ({kind}) differs in `{field}`")
            }
            Self::Shorter => "the input is shorter than what the backend has seen".to_owned(),
            Self::NothingNew => "the input adds nothing to what the backend has seen".to_owned(),
        }
    }
}

/// Compares a prepared request with what a socket has seen.
pub fn step(seen: Option<&Seen>, next: &Body) -> Step {
    let Some(seen) = seen.filter(|seen| !seen.response_id.is_empty()) else {
        return Step::Full(Why::First);
    };
    if let Some(field) = changed(&seen.properties, &properties(next)) {
        return Step::Full(Why::PropertyChanged(field));
    }
    match repeated(seen, next.items()) {
        Ok(from) if from == next.items().len() => Step::Full(Why::NothingNew),
        Ok(from) => Step::Incremental { from },
        Err(why) => Step::Full(why),
    }
}

/// The body of an incremental frame: `input` cut to what is new, `previous_response_id` set, everything else as it is.
pub fn incremental(next: &Body, from: usize, response_id: &str) -> Body {
    let mut body = next.clone();
    let from = from.min(body.items().len());
    body.items_mut().drain(..from);
    body.set("previous_response_id", response_id);
    body
}

/// How many of the `next` items repeat what the socket has seen, which must be all of that.
///
/// Thoughts of the answer that came without ciphertext may be missing, since a client has no use for them. One that returns
/// any keeps them all, so for it the missing one is a change; and what carries the thought's id is no other item.
fn repeated(seen: &Seen, next: &[Item]) -> Result<usize, Why> {
    let keeps_until = next.iter().rposition(equality::is_open_thought);
    let mut place = 0;
    for (item, writer) in seen.written() {
        let theirs = next.get(place);
        let difference = theirs.map(|theirs| equality::difference(item, theirs, writer));
        if difference == Some(None) {
            place += 1;
            continue;
        }
        if writer == Writer::Backend
            && equality::is_open_thought(item)
            && keeps_until.is_none_or(|last| last < place)
            && !theirs.is_some_and(|theirs| equality::has_id_of(item, theirs))
        {
            continue;
        }
        return Err(match (theirs, difference.flatten()) {
            (Some(theirs), Some(field)) => {
                let kind = match theirs.kind() {
                    "" => "item",
                    kind => word(kind, "item"),
                };
                Why::PrefixDiffers { index: place, kind: kind.to_owned(), field }
            }
            _ => Why::Shorter,
        });
    }
    Ok(place)
}

fn properties(body: &Body) -> String {
    let mut rest = body.clone();
    rest.items_mut().clear();
    for field in FREE {
        rest.remove(field);
    }
    String::from_utf8(rest.to_bytes()).expect("a body is written as text")
}

/// The first field that changed, the model before all others, for it explains them.
fn changed(seen: &str, next: &str) -> Option<String> {
    if seen == next {
        return None;
    }
    let (Some(ours), Some(theirs)) = (Fields::of(seen), Fields::of(next)) else {
        return Some("?".to_owned());
    };
    let differs = |name: &&Name<'_>| same::difference_of(ours.at(name), theirs.at(name)).is_some();
    if same::difference_of(ours.get("model"), theirs.get("model")).is_some() {
        return Some("model".to_owned());
    }
    ours.names(&theirs)
        .filter(|name| name.text() != "input")
        .find(differs)
        .map(|name| same::below(name.text(), ""))
}

#[cfg(test)]
mod cases;
#[cfg(test)]
mod properties;
