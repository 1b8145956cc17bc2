//! A client of the endpoint: sends, reads to the end, keeps everything.

use serde_json::Value;

/// An answer that was read to its end.
#[derive(Debug)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) text: String,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The code of an error envelope.
    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn events(&self) -> Events {
        assert_eq!(self.status, 200, "{}", self.text);
        Events::read(&self.text)
    }
}

/// The events of a stream, in order.
#[derive(Debug)]
pub(crate) struct Events(pub(crate) Vec<Value>);

impl Events {
    fn read(text: &str) -> Self {
        let blocks =
            text.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
        let data = blocks.map(|block| {
            let lines = block.lines().filter_map(|line| line.strip_prefix("data: "));
            lines.collect::<Vec<_>>().join("\n")
        });
        Self(data.map(|data| serde_json::from_str(&data).unwrap_or(Value::String(data))).collect())
    }

    pub(crate) fn kinds(&self) -> Vec<&str> {
        self.0.iter().map(|event| event["type"].as_str().unwrap_or("?")).collect()
    }

    pub(crate) fn last(&self) -> &Value {
        self.0.last().expect("at least one event")
    }

    /// The items that were completed, in order.
    pub(crate) fn items(&self) -> Vec<Value> {
        let done = self.0.iter().filter(|event| event["type"] == "response.output_item.done");
        done.map(|event| event["item"].clone()).collect()
    }

    pub(crate) fn calls(&self) -> Vec<Value> {
        self.items().into_iter().filter(|item| item["type"] == "function_call").collect()
    }

    /// How many terminal events there are; a good stream has one, at its end.
    pub(crate) fn terminals(&self) -> usize {
        let terminal = ["response.completed", "response.failed", "response.incomplete", "error"];
        self.kinds().iter().filter(|kind| terminal.contains(kind)).count()
    }
}

pub(crate) fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().expect("an HTTP client")
}

pub(crate) async fn read(request: reqwest::RequestBuilder) -> Got {
    let answer = request.send().await.expect("an answer");
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let text = answer.text().await.expect("a whole body");
    Got { status, headers, text }
}
