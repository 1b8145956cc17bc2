//! The practice catalog: two models, one for each dialect, and what a scenario adds.
//!
//! Entries carry every field without which a Codex client drops the model, and display names say "practice".
//!
//! **Invariant**: the ETag changes exactly when an account's list does.

use serde_json::{Value, json};

use super::accounts::hex;
use super::errors::Refusal;
use super::request::Ask;
use super::script::{Model, Scenario};

/// The models of one server.
#[derive(Clone, Debug)]
pub(super) struct Catalog {
    models: Vec<Model>,
}

impl Catalog {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut models =
            vec![Model::new("practice-full", false), Model::new("practice-lite", true)];
        for added in &scenario.models {
            models.retain(|model| model.slug != added.slug);
            models.push(added.clone());
        }
        for model in &mut models {
            model.lite_ok |= scenario.lite_ok.contains(&model.slug);
        }
        Self { models }
    }

    fn of<'a>(&'a self, account: &'a str) -> impl Iterator<Item = &'a Model> {
        self.models.iter().filter(move |model| {
            model.accounts.is_empty() || model.accounts.iter().any(|name| name == account)
        })
    }

    /// Whether this account serves the model in the request's lane.
    pub(super) fn admit(&self, account: &str, ask: Ask<'_>) -> Result<(), Refusal> {
        let Some(model) = self.of(account).find(|model| model.slug == ask.model()) else {
            return Err(Refusal::unknown_model(ask.model()));
        };
        match (ask.lite(), model.lite_ok || model.use_responses_lite, model.full_ok) {
            (true, false, _) => Err(Refusal::not_for_lite()),
            (false, _, false) => Err(Refusal::model_not_found(&model.slug)),
            _ => Ok(()),
        }
    }

    /// The body of `/models` and its ETag.
    pub(super) fn listing(&self, account: &str) -> (Value, String) {
        let entries = (1..).zip(self.of(account)).map(|(priority, model)| entry(model, priority));
        let body = json!({ "models": entries.collect::<Vec<_>>() });
        let etag = format!("W/\"practice-{}\"", hex(&[body.to_string().as_bytes()], 8));
        (body, etag)
    }
}

fn entry(model: &Model, priority: u32) -> Value {
    let dialect = if model.use_responses_lite { "Lite" } else { "full" };
    let levels = [("low", "Quick"), ("medium", "Balanced"), ("high", "Thorough")];
    let levels = levels.map(|(effort, description)| {
        json!({ "effort": effort, "description": format!("{description} (practice: all the same)") })
    });
    json!({
        "slug": model.slug,
        "display_name": format!("{} (practice, no model answers)", model.slug),
        "description": format!("Weir's practice upstream. Its catalog entry says {dialect}."),
        "default_reasoning_level": "medium",
        "supported_reasoning_levels": levels,
        "shell_type": "unified_exec",
        "visibility": "list",
        "supported_in_api": true,
        "priority": priority,
        "minimal_client_version": "0.98.0",
        "additional_speed_tiers": [],
        "service_tiers": [],
        "available_in_plans": ["practice"],
        "availability_nux": null,
        "upgrade": null,
        "base_instructions": "You are the practice upstream of Weir. No model answers.",
        "supports_reasoning_summaries": true,
        "default_reasoning_summary": "none",
        "support_verbosity": true,
        "default_verbosity": "low",
        "apply_patch_tool_type": "freeform",
        "web_search_tool_type": "text",
        "truncation_policy": { "mode": "tokens", "limit": 10_000 },
        // True for Lite models as well: the backend's own entries say so.
        "supports_parallel_tool_calls": true,
        "supports_image_detail_original": false,
        "context_window": 272_000,
        "max_context_window": 272_000,
        "auto_compact_token_limit": null,
        "effective_context_window_percent": 95,
        "experimental_supported_tools": [],
        "input_modalities": ["text", "image"],
        "supports_search_tool": false,
        "use_responses_lite": model.use_responses_lite,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUIRED: &[&str] = &[
        "slug",
        "display_name",
        "supported_reasoning_levels",
        "shell_type",
        "visibility",
        "supported_in_api",
        "priority",
        "support_verbosity",
        "truncation_policy",
        "experimental_supported_tools",
    ];

    #[test]
    fn entries_are_complete_and_say_practice() {
        let (body, _) = Catalog::new(&Scenario::default()).listing("practice 1");
        let models = body["models"].as_array().expect("a list");
        let lite = |at: usize| (&models[at]["slug"], &models[at]["use_responses_lite"]);
        assert_eq!(lite(0), (&json!("practice-full"), &json!(false)));
        assert_eq!(lite(1), (&json!("practice-lite"), &json!(true)));
        for model in models {
            assert!(REQUIRED.iter().all(|field| model.get(field).is_some()), "{model}");
            assert!(model["display_name"].as_str().is_some_and(|name| name.contains("practice")));
        }
    }

    #[test]
    fn lanes_and_accounts() {
        let scenario = Scenario::from_toml(
            "lite_ok = ['both']\n[[model]]\nslug = 'both'\n[[model]]\nslug = 'only'\nuse_responses_lite = true\n\
             full_ok = false\naccounts = ['b']",
        )
        .expect("a good scenario");
        let catalog = Catalog::new(&scenario);
        let status = |account: &str, model: &str, marker| {
            let body = json!({ "model": model });
            catalog.admit(account, Ask { body: &body, marker }).err().map(|refusal| refusal.status)
        };
        let lite = Some("true");
        assert_eq!(status("a", "practice-full", None), None);
        assert_eq!(status("a", "practice-full", lite), Some(400));
        assert_eq!(status("a", "practice-lite", None), None);
        assert_eq!(status("a", "practice-lite", lite), None);
        assert_eq!(status("a", "both", lite), None);
        assert_eq!(status("a", "only", lite), Some(400), "not this account's model");
        assert_eq!(status("b", "only", lite), None);
        assert_eq!(status("b", "only", None), Some(404));
        assert_ne!(catalog.listing("a").1, catalog.listing("b").1);
    }
}
