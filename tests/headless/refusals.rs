//! What keeps the program from starting: each ends with 3 and one sentence, and changes nothing.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::path::Path;

use tokio::net::TcpListener;

use super::{Serving, run};

/// Every file of a folder, byte for byte.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file"));
    files
        .map(|file| {
            let bytes = std::fs::read(file.path()).expect("a readable file");
            (file.file_name().to_string_lossy().into_owned(), bytes)
        })
        .collect()
}

/// A folder on which Weir has run.
async fn used() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    Serving::start(folder.path()).await.stop().await;
    folder
}

const SERVE: [&str; 4] = ["serve", "--practice", "--port", "0"];

#[tokio::test]
async fn a_second_program_on_one_folder_names_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = Serving::start(folder.path()).await;
    let origin = first.base_url.trim_end_matches("/v1").to_owned();
    let pid = format!("process {}", first.pid());
    let second = run(folder.path(), &SERVE).await;
    second.refused(3, &["already runs", &origin, &pid, "--data"]);
    // The first has not noticed.
    assert_eq!(first.calls_at_once("practice-full").await, 3);
    assert_eq!(run(folder.path(), &["status"]).await.code, Some(0));
    first.stop().await;
}

/// C112: never another port than the one that clients know, and a name for who has it.
#[tokio::test]
async fn a_port_that_somebody_has_names_who() {
    let folder = tempfile::tempdir().expect("a folder");
    let stranger = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = stranger.local_addr().expect("an address").port().to_string();
    let serve = ["serve", "--practice", "--port", &port];
    let refused = run(folder.path(), &serve).await;
    let process = format!("process {}", std::process::id());
    let who = if proc_tells(&port) { process.as_str() } else { "another program" };
    refused.refused(3, &[&format!("Port {port} is already used by "), who, "--port"]);
    assert!(!folder.path().join("data/running.json").exists());

    // Free again, it is taken at the next try.
    drop(stranger);
    let serving = Serving::with(folder.path(), &["--port", &port], &[]).await;
    assert_eq!(serving.port().to_string(), port);
    serving.stop().await;
}

/// A stranger on one family is enough: a client could reach it under our name.
#[tokio::test]
async fn a_port_that_somebody_has_on_the_other_family_is_taken_too() {
    let Ok(stranger) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let port = stranger.local_addr().expect("an address").port().to_string();
    let refused = run(folder.path(), &["serve", "--practice", "--port", &port]).await;
    refused.refused(3, &[&format!("Port {port} is already used by ")]);
}

/// Whether the system says which process listens on a port: it lists the socket, and lets us see our own.
fn proc_tells(port: &str) -> bool {
    let port = format!(":{:04X}", port.parse::<u16>().expect("a port"));
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let line = table
        .lines()
        .find(|line| line.split_whitespace().nth(1).is_some_and(|at| at.ends_with(&port)));
    let inode = line.and_then(|line| line.split_whitespace().nth(9));
    let files = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let mut links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    inode.is_some_and(|inode| {
        links.any(|link| link.as_os_str() == format!("socket:[{inode}]").as_str())
    })
}

#[tokio::test]
async fn a_port_that_another_weir_has_says_so() {
    let (one, two) =
        (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let first = Serving::start(one.path()).await;
    let port = first.port().to_string();
    let refused = run(two.path(), &["serve", "--practice", "--port", &port]).await;
    refused.refused(3, &[&format!("Port {port} "), "another Weir (version ", "--port"]);
    first.stop().await;
}

#[tokio::test]
async fn a_newer_database_is_left_as_it_is() {
    let folder = used().await;
    let data = folder.path().join("data");
    let database = rusqlite::Connection::open(data.join("weir.db")).expect("a database");
    database.pragma_update(None, "user_version", 999).expect("written");
    drop(database);
    let before = contents(&data);
    run(folder.path(), &SERVE).await.refused(3, &["newer Weir", "999", "Update Weir"]);
    assert_eq!(contents(&data), before);
    // Other commands do not touch it either.
    let set = run(folder.path(), &["mode", "practice-lite", "full"]).await;
    set.refused(1, &["newer Weir", "Update Weir"]);
    assert_eq!(contents(&data), before);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_as_it_is() {
    let folder = used().await;
    let data = folder.path().join("data");
    for name in ["weir.db-wal", "weir.db-shm"] {
        drop(std::fs::remove_file(data.join(name)));
    }
    std::fs::write(data.join("weir.db"), "no database at all").expect("written");
    let before = contents(&data);
    run(folder.path(), &SERVE).await.refused(3, &["weir.db"]);
    assert_eq!(contents(&data), before);
}

#[tokio::test]
async fn a_damaged_key_is_named_and_never_replaced() {
    for (name, text) in [
        ("data.key", ""),
        ("data.key", "weir_"),
        ("data.key", "\u{0}\u{1}\u{2}garbage"),
        ("control.key", "weir_0123456789abcdef0123456789abcdef"),
        ("control.key", "weirctl_short"),
    ] {
        let folder = used().await;
        let path = folder.path().join("data").join(name);
        std::fs::write(&path, text).expect("written");
        run(folder.path(), &SERVE).await.refused(3, &[name, "does not hold a key"]);
        assert_eq!(std::fs::read_to_string(&path).expect("there"), text);
        if name == "data.key" {
            run(folder.path(), &["key"]).await.refused(1, &[name, "does not hold a key"]);
        }
        // The folder is free again for a program that finds a key.
        std::fs::remove_file(&path).expect("there");
        Serving::start(folder.path()).await.stop().await;
    }
}

#[tokio::test]
async fn a_scenario_with_a_mistake_names_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mistake.toml");
    let serve = ["serve", "--practice", "--port", "0", "--scenario", path.to_str().expect("UTF-8")];
    for (text, says) in [
        ("pace = 0.0\n\n[[rule]]\nreply = { txt = 'x' }\n", "line 4"),
        ("pace = 0.0\npace = 1.0\n", "line 2"),
        ("\n[[rule]\n", "line 2"),
    ] {
        std::fs::write(&path, text).expect("written");
        run(folder.path(), &serve).await.refused(3, &[says, "mistake.toml"]);
    }
    std::fs::remove_file(&path).expect("there");
    run(folder.path(), &serve).await.refused(3, &["cannot be read", "mistake.toml"]);
    assert!(!folder.path().join("data").exists(), "nothing was made");
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a file");
    std::fs::write(&file, "not a folder").expect("written");
    for path in [file.clone(), file.join("below")] {
        let path = path.to_str().expect("UTF-8");
        let serve = ["--data", path, "serve", "--practice", "--port", "0"];
        run(folder.path(), &serve).await.refused(3, &[path, "--data"]);
        run(folder.path(), &["--data", path, "key"]).await.refused(1, &[path]);
    }
    assert_eq!(std::fs::read_to_string(&file).expect("there"), "not a folder");
}

/// A practice token is worth nothing, a prompt is: a backend that stands in must be on this machine.
#[tokio::test]
async fn a_stand_in_backend_elsewhere_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let foreign = [
        "https://127.0.0.1:443",
        "http://192.0.2.1:80",
        "http://127.0.0.1:80@192.0.2.1/",
        "http://127.0.0.1.example:80",
        "http://localhost:80",
    ];
    for url in foreign {
        let ended = run(folder.path(), &[&SERVE[..], &["--practice-upstream", url]].concat()).await;
        assert_eq!(ended.code, Some(2), "{url}: {ended:?}");
    }
    let url = ["serve", "--port", "0", "--practice-upstream", "http://127.0.0.1:9"];
    assert_eq!(run(folder.path(), &url).await.code, Some(2), "without practice accounts");
    assert!(!folder.path().join("data").exists(), "nothing was begun");
}
