use serde_json::json;
use tokio::net::TcpListener;
use weir::turn::catalogs;

use crate::support::bare::{KEY, endpoint};
use crate::support::client::{Got, http, read};
use crate::support::raw::{MODEL, RawBackend, stream};

async fn post(base: &str) -> Got {
    let body = json!({"model": MODEL, "input": "hi", "stream": true});
    read(http().post(format!("{base}/v1/responses")).bearer_auth(KEY).json(&body)).await
}

/// A stream with everything that a careless proxy damages.
const AWKWARD: &str = concat!(
    "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"big\":18446744073709551616,\"small\":1.10}}\n\n",
    "event: response.brand_new\ndata: {\"type\":\"response.brand_new\",\"sequence_number\":1,  \"odd\" : [ 1e400, \"\\u00e9 é 🌊\" ]}\n\n",
    "event: response.output_item.done\ndata: {\"type\":\"response.output_item.done\",\"sequence_number\":2,\"output_index\":0,\"item\":{\"type\":\"never_seen\",\"id\":\"x_1\",\"deep\":{\"a\":0.10}}}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":3,\"response\":{\"id\":\"resp_1\",\"output\":[],\"usage\":{\"input_tokens\":1,\"output_tokens\":2,\"total_tokens\":3}}}\n\n",
);

#[tokio::test]
async fn events_reach_the_client_byte_for_byte() {
    let backend = RawBackend::start(vec![vec![stream(AWKWARD)]]).await;
    let (base, _turns) = endpoint(vec![backend.account("a")]).await;
    let got = post(&base).await;
    assert_eq!(got.text, AWKWARD);
}

#[tokio::test]
async fn line_endings_and_writes_do_not_matter() {
    let body = stream(AWKWARD);
    let split = body.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    for ending in ["\n", "\r\n"] {
        let text = AWKWARD.replace('\n', ending);
        let mut writes = vec![body[..split].to_vec()];
        writes.extend(text.as_bytes().chunks(7).map(<[u8]>::to_vec));
        let backend = RawBackend::start(vec![writes]).await;
        let (base, _turns) = endpoint(vec![backend.account("a")]).await;
        assert_eq!(post(&base).await.text, AWKWARD, "{ending:?}");
    }
}

#[tokio::test]
async fn nothing_follows_the_terminal_event() {
    let more = format!(
        "{AWKWARD}data: [DONE]\n\nevent: response.failed\ndata: {{\"type\":\"response.failed\",\"sequence_number\":4}}\n\n"
    );
    let backend = RawBackend::start(vec![vec![stream(&more)]]).await;
    let (base, _turns) = endpoint(vec![backend.account("a")]).await;
    assert_eq!(post(&base).await.text, AWKWARD);
}

#[tokio::test]
async fn wherever_a_stream_is_cut_the_client_gets_one_ending() {
    // At the end of each event, and inside each.
    let ends: Vec<usize> =
        AWKWARD.match_indices("\n\n").flat_map(|(at, _)| [at - 5, at, at + 2]).collect();
    for cut in [0]
        .into_iter()
        .chain(ends)
        .filter(|cut| AWKWARD.is_char_boundary(*cut) && *cut < AWKWARD.len())
    {
        let backend = RawBackend::start(vec![vec![stream(&AWKWARD[..cut])]]).await;
        let (base, turns) = endpoint(vec![backend.account("a"), backend.account("b")]).await;
        let got = post(&base).await;
        assert_eq!(backend.turns().len(), 1, "cut at {cut}: it may have been worked on");
        if got.status == 200 {
            let events = got.events();
            assert_eq!(events.terminals(), 1, "cut at {cut}: {}", got.text);
            assert!(
                events.last()["type"]
                    .as_str()
                    .is_some_and(|kind| kind == "response.failed" || kind == "response.completed"),
                "cut at {cut}"
            );
        } else {
            assert_eq!((got.status, got.code().as_str()), (502, "stream_lost"), "cut at {cut}");
        }
        turns.tasks.close();
        turns.tasks.wait().await;
        turns.store.flush();
        let rows = turns.store.turns(9).expect("rows");
        assert!(rows.len() == 1 && rows[0].outcome.is_some(), "cut at {cut}: {rows:?}");
    }
}

#[tokio::test]
async fn a_backend_that_cannot_be_reached_is_nobodys_fault_and_is_asked_once() {
    let backend = RawBackend::start(Vec::new()).await;
    let reachable = backend.account("a");
    let (base, turns) = endpoint(vec![reachable.clone()]).await;
    catalogs::ensure(&turns).await;
    // The list is known; now the account's backend is a port on which nothing listens.
    let free =
        TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("an address");
    let dead = weir::accounts::account::Account { base_url: format!("http://{free}"), ..reachable };
    let (dead_base, dead_turns) = endpoint(vec![dead]).await;
    let catalog =
        weir::accounts::catalog::Catalog::read(None, &json!({"models": [{"slug": MODEL}]}))
            .expect("a list");
    dead_turns.pool.set_catalog("a", catalog);
    let got = post(&dead_base).await;
    assert_eq!((got.status, got.code().as_str()), (503, "backend_unreachable"));
    assert!(dead_turns.pool.views()[0].blocked_until.is_none());
    drop(base);
}

#[tokio::test]
async fn an_endpoint_without_accounts_says_what_to_do() {
    let (base, _turns) = endpoint(Vec::new()).await;
    let got = post(&base).await;
    assert_eq!((got.status, got.code().as_str()), (403, "no_account"));
    assert!(got.message().contains("weir serve --practice"));
}

#[tokio::test]
async fn an_account_whose_list_never_comes_holds_up_no_turn() {
    let backend = RawBackend::start(vec![vec![stream(AWKWARD)], vec![stream(AWKWARD)]]).await;
    // Accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = silent.local_addr().expect("an address");
    let mute = weir::accounts::account::Account {
        base_url: format!("http://{at}"),
        ..backend.account("mute")
    };
    let (base, turns) = endpoint(vec![mute, backend.account("good")]).await;
    for _ in 0..2 {
        assert_eq!(post(&base).await.text, AWKWARD);
    }
    // A reading that was waited for to its end would have left its trouble.
    assert!(turns.pool.views()[0].trouble.is_none());
    drop(silent);
}
