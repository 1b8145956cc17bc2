//! What is measured: the upstream itself, nginx as a plain proxy, and Weir.
//!
//! Each is started on a loopback port of its own with all its files in a folder that goes away.
//!
//! **Invariant**: only processes that were started here are ended here.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::sleep;

use crate::client::Way;
use crate::process;
use crate::upstream::Upstream;

/// How often a program is asked whether it listens, and how long in between.
const ASKS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(50);

/// One thing to measure.
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) way: Way,
    /// Its processes; none where nothing stands between client and upstream.
    pub(crate) pids: Vec<u32>,
    pub(crate) upstream: Upstream,
    /// Ended and removed with the target.
    _child: Option<Child>,
    _folder: Option<TempDir>,
}

impl Target {
    /// No proxy at all.
    pub(crate) fn direct(upstream: &Upstream, padding: usize) -> Self {
        let path = "/v1/responses".to_owned();
        let way = Way { address: upstream.address, path, key: "none".into(), padding };
        Self::bare("no proxy", way, upstream)
    }

    /// Something that somebody else started in front of `upstream`, such as another proxy.
    pub(crate) fn given(
        text: &str,
        key: &str,
        upstream: &Upstream,
        padding: usize,
    ) -> Result<Self> {
        let (name, rest) = text.split_once('=').context("a target is NAME=URL or NAME=URL#PID")?;
        let (url, pid) = rest.split_once('#').unwrap_or((rest, ""));
        let (address, base) = at(url)?;
        let path = format!("{base}/responses");
        let way = Way { address, path, key: key.to_owned(), padding };
        let pids = if pid.is_empty() { Vec::new() } else { process::family(pid.parse()?) };
        Ok(Self { pids, ..Self::bare(name, way, upstream) })
    }

    fn bare(name: &str, way: Way, upstream: &Upstream) -> Self {
        let upstream = upstream.clone();
        Self { name: name.to_owned(), way, pids: Vec::new(), upstream, _child: None, _folder: None }
    }

    /// nginx with as little as a proxy for event streams needs.
    pub(crate) async fn nginx(program: &Path, upstream: &Upstream, padding: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let address = free_port().await?;
        let config = folder.path().join("nginx.conf");
        fs::write(&config, nginx_config(folder.path(), address, upstream.address))?;
        let child = Command::new(program)
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let direct = Self::direct(upstream, padding);
        let way = Way { address, ..direct.way.clone() };
        listens(address).await?;
        let pids = process::family(child.id().context("nginx ended at once")?);
        if pids.len() < 2 {
            bail!("nginx has no workers");
        }
        let (_child, _folder) = (Some(child), Some(folder));
        Ok(Self { name: "nginx".into(), way, pids, _child, _folder, ..direct })
    }

    /// `weir serve` with practice accounts that are sent to the fixed upstream.
    pub(crate) async fn weir(
        name: &str,
        program: &Path,
        upstream: &Upstream,
        padding: usize,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut child = Command::new(program)
            .args(["serve", "--practice", "--json", "--port", "0", "--data"])
            .arg(folder.path())
            .args(["--practice-upstream", &upstream.base_url()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", program.display()))?;
        let out = child.stdout.take().context("its output is a pipe")?;
        let line = BufReader::new(out).lines().next_line().await?;
        let line = line.context("weir ended before it was ready; try it by hand")?;
        let ready: serde_json::Value = serde_json::from_str(&line)?;
        let text = |name: &str| ready[name].as_str().unwrap_or_default().to_owned();
        let (address, base) = at(&text("base_url"))?;
        let way = Way { address, path: format!("{base}/responses"), key: text("key"), padding };
        let pids = vec![child.id().context("weir ended at once")?];
        let (_child, _folder) = (Some(child), Some(folder));
        Ok(Self { pids, _child, _folder, ..Self::bare(name, way, upstream) })
    }
}

fn at(url: &str) -> Result<(SocketAddr, String)> {
    let rest = url.strip_prefix("http://").context("only http:// URLs are measured")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let address = host.replace("localhost", "127.0.0.1").parse().context("not an address")?;
    Ok((address, format!("/{}", path.trim_end_matches('/')).trim_end_matches('/').to_owned()))
}

async fn free_port() -> Result<SocketAddr> {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok(listener.local_addr()?)
}

async fn listens(address: SocketAddr) -> Result<()> {
    for _ in 0..ASKS {
        if TcpStream::connect(address).await.is_ok() {
            return Ok(());
        }
        sleep(PAUSE).await;
    }
    bail!("nothing listens at {address}")
}

/// Two workers, as Weir has two threads on two cores; connections are kept on both sides, nothing is buffered or logged.
fn nginx_config(folder: &Path, address: SocketAddr, upstream: SocketAddr) -> String {
    let folder = folder.display();
    // A process of root's hands its workers to another user, who could not write into the folder.
    let user =
        if fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) { "user root;" } else { "" };
    format!(
        r#"daemon off; {user}
worker_processes auto;
worker_rlimit_nofile 16384;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  client_body_buffer_size 1m;
  keepalive_requests 1000000;
  upstream fixed {{ server {upstream}; keepalive 1024; keepalive_requests 1000000; }}
  server {{
    listen {address};
    location / {{
      proxy_pass http://fixed;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
"#
    )
}
