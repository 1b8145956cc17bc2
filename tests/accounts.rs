use std::collections::BTreeSet;

use serde_json::json;
use weir::api::Command;

use crate::support::{Weir, task_request, user};

#[tokio::test]
async fn subagents_that_run_at_once_spread_over_the_accounts() {
    // Each child answers only when all six are in progress, so the choice is made with the others in flight.
    let weir = Weir::start("[[rule]]\nwhen = { prompt = \"single word\" }\nreply = { text = \"alpha\", hold_until_in_flight = 6 }").await;
    let body = task_request("practice-full", json!([user("Reply with the single word alpha")]));
    let child = |n: usize| {
        let request = weir
            .request()
            .header("x-session-id", format!("child-{n}"))
            .header("x-parent-session-id", "parent");
        crate::support::client::read(request.json(&body))
    };
    let answers = futures_util::future::join_all((0..6).map(child)).await;
    assert!(answers.iter().all(|answer| answer.events().terminals() == 1));
    let used: BTreeSet<_> =
        weir.upstream().into_iter().filter_map(|request| request.account).collect();
    assert_eq!(used.len(), 3, "{used:?}");
    weir.finish().await;
}

#[tokio::test]
async fn what_is_left_of_every_account_is_known_before_a_turn_was_served() {
    let weir = Weir::start("").await;
    let accounts = weir.ask(Command::Accounts).await;
    let accounts = accounts["accounts"].as_array().expect("a list");
    let lengths: Vec<Vec<u64>> = accounts
        .iter()
        .map(|account| {
            let windows = account["windows"].as_array().expect("windows").iter();
            windows.filter_map(|window| window["minutes"].as_u64()).collect()
        })
        .collect();
    assert_eq!(lengths, [vec![300, 10_080], vec![10_080], vec![300, 10_080]]);
    weir.finish().await;
}
