//! The models that one account may use, as the backend lists them.
//!
//! An entry is kept as the raw JSON the backend sent, because Codex reads fields that Weir does not know. The few facts
//! that Weir needs are read from it on the way in.
//!
//! **Invariant**: an entry is served as it came unless the user's mode says otherwise.

use serde_json::Value;

/// One account's model list.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The backend's own tag for this list.
    pub etag: Option<String>,
    pub models: Vec<ModelEntry>,
}

#[derive(Clone, Debug)]
pub struct ModelEntry {
    pub slug: String,
    /// The whole entry, unknown fields included.
    pub entry: Value,
}

/// The field whose literal `true` makes a model a Lite model.
pub const USE_RESPONSES_LITE: &str = "use_responses_lite";

impl ModelEntry {
    pub fn display_name(&self) -> Option<&str> {
        self.entry.get("display_name")?.as_str()
    }

    pub fn lite_flag(&self) -> Option<&Value> {
        self.entry.get(USE_RESPONSES_LITE)
    }

    /// The context in tokens after the share that the backend keeps for itself, as `/v1/models` publishes it.
    pub fn effective_context(&self) -> Option<u64> {
        let raw = self.entry.get("context_window")?.as_u64()?;
        let percent = self
            .entry
            .get("effective_context_window_percent")
            .and_then(Value::as_u64)
            .unwrap_or(95)
            .min(100);
        Some(raw * percent / 100)
    }
}

impl Catalog {
    /// Reads `{"models":[…]}`; `{"data":[…]}` and a bare list are met in the field too. Entries without a slug are left
    /// out, since nobody could ask for them.
    pub fn read(etag: Option<String>, body: &Value) -> Option<Self> {
        let list = body.get("models").or_else(|| body.get("data")).unwrap_or(body).as_array()?;
        let models = list
            .iter()
            .filter_map(|entry| {
                let slug = entry.get("slug").or_else(|| entry.get("id"))?.as_str()?;
                Some(ModelEntry { slug: slug.to_owned(), entry: entry.clone() })
            })
            .collect();
        Some(Self { etag, models })
    }

    pub fn model(&self, slug: &str) -> Option<&ModelEntry> {
        self.models.iter().find(|model| model.slug == slug)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_three_shapes_of_a_list_are_read() {
        let entry = json!({"slug": "m", "future_field": {"a": 1}});
        for body in [json!({"models": [entry]}), json!({"data": [entry]}), json!([entry])] {
            let catalog = Catalog::read(None, &body).expect("a list");
            assert_eq!(catalog.model("m").expect("m").entry["future_field"]["a"], 1, "{body}");
        }
        assert!(Catalog::read(None, &json!({"detail": "no"})).is_none());
    }

    #[test]
    fn the_context_is_the_share_that_a_client_may_use() {
        let model = |entry| ModelEntry { slug: "m".into(), entry };
        assert_eq!(model(json!({"context_window": 272000})).effective_context(), Some(258_400));
        assert_eq!(model(json!({})).effective_context(), None);
    }
}
