//! Who holds a port, as far as this machine tells.
//!
//! Another Weir says so itself. On Linux the system says which program holds a socket of the same user.
//!
//! **Invariant**: only ever used to explain a failure; not knowing is a normal answer.

use std::time::Duration;

/// A name for people, or nothing.
pub async fn of(port: u16) -> Option<String> {
    match weir_version(port).await {
        Some(version) => Some(format!("another Weir (version {version})")),
        None => program(port),
    }
}

async fn weir_version(port: u16) -> Option<String> {
    let client =
        reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build().ok()?;
    let health = client.get(format!("http://127.0.0.1:{port}/healthz")).send().await.ok()?;
    let said: serde_json::Value = health.json().await.ok()?;
    (said["product"] == "weir").then(|| said["version"].as_str().map(str::to_owned))?
}

fn program(port: u16) -> Option<String> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|table| listening_inode(table, port))?;
    let wanted = format!("socket:[{inode}]");
    let processes = std::fs::read_dir("/proc").ok()?.flatten();
    let holder = processes.map(|entry| entry.path()).find(|process| {
        let files = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| {
            std::fs::read_link(file.path()).is_ok_and(|link| link.as_os_str() == wanted.as_str())
        })
    })?;
    let name = std::fs::read_to_string(holder.join("comm")).ok()?;
    Some(format!("{} (process {})", name.trim(), holder.file_name()?.to_string_lossy()))
}

/// The inode of the socket that listens on `port` in one of the kernel's tables.
fn listening_inode(table: &str, port: u16) -> Option<String> {
    const LISTEN: &str = "0A";
    let port = format!(":{port:04X}");
    std::fs::read_to_string(table).ok()?.lines().skip(1).find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let ours = fields.get(1)?.ends_with(&port) && *fields.get(3)? == LISTEN;
        ours.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}
