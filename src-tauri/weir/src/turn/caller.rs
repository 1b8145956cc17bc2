//! Who asks: derived once by the endpoint, frozen for the turn.
//!
//! **Invariant**: sockets, the choice of an account and the journal use nothing else of a request's headers.

use http::HeaderMap;

#[derive(Clone, Debug)]
pub struct Caller {
    /// The kind of client: `codex`, `opencode`, `openai-sdk` or what its user agent begins with.
    pub client: String,
    /// Itself a Codex client, whose identity and Lite bodies are passed on.
    pub codex: bool,
    /// The conversation this turn belongs to.
    pub conversation: String,
    /// The client said so itself, in a header, as an agent does that keeps to a conversation.
    pub named: bool,
    /// The conversation that started this one.
    pub parent: Option<String>,
    /// Conversations that share a session: a soft affinity.
    pub group: Option<String>,
    /// The request's headers, of which [`crate::upstream::headers`] passes a few on.
    pub headers: HeaderMap,
}

impl Caller {
    /// The name of the session, under which the backend keeps the cache.
    pub fn session(&self) -> &str {
        self.group.as_deref().unwrap_or(&self.conversation)
    }
}
