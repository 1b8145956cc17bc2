//! Reads the list of models that one account may use.
//!
//! **Invariant**: a list that cannot be read leaves the one known before in place.

use serde_json::Value;
use weir_core::dialect::wire;

use super::headers;
use super::open::Upstream;
use super::stream::error_text;
use crate::accounts::account::Account;
use crate::accounts::catalog::Catalog;

/// The longest a model list may take.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);

impl Upstream {
    /// Errors: a sentence for the user that names the account.
    pub async fn catalog(&self, account: &Account) -> Result<Catalog, String> {
        let name = &account.name;
        let url = format!("{}{}", account.base_url, wire::MODELS_PATH);
        let headers = headers::for_account(account).map_err(|_| {
            format!("The token of account {name} cannot be sent. Sign it in again.")
        })?;
        let request = self
            .client(&account.base_url)
            .get(url)
            .query(&[("client_version", wire::CATALOG_CLIENT_VERSION)])
            .headers(headers)
            .timeout(PATIENCE);
        let answer = request.send().await.map_err(|error| {
            tracing::warn!(error = error_text(&error), account = name, "no model list");
            format!("The model list of account {name} could not be fetched. Check this machine's network.")
        })?;
        let status = answer.status();
        if !status.is_success() {
            return Err(match status.as_u16() {
                401 => {
                    format!("The backend refuses the login of account {name}. Sign it in again.")
                }
                code => format!(
                    "The backend answered {code} when asked for the models of account {name}."
                ),
            });
        }
        let etag =
            answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let body: Option<Value> = answer.json().await.ok();
        body.and_then(|body| Catalog::read(etag, &body)).ok_or_else(|| {
            format!("The model list of account {name} is not one that Weir can read.")
        })
    }
}
