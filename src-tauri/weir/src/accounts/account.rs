//! One login that can pay for a turn.
//!
//! **Invariant**: an account never changes its id, and its token is used with its own base URL only.

use super::secret::Secret;

/// The stable name of an account inside Weir; never an e-mail.
pub type AccountId = String;

/// One login. The backend it was made for is part of it, because a token of one backend is never shown to another.
#[derive(Clone, Debug)]
pub struct Account {
    pub id: AccountId,
    /// What the user calls it.
    pub name: String,
    /// The plan as the backend names it; unknown names are shown as they come.
    pub plan: Option<String>,
    /// Where turns go, without a trailing slash.
    pub base_url: String,
    /// The backend's own id of the account, sent with each request.
    pub backend_account_id: Option<String>,
    pub token: Secret,
}
