//! Recorded cases as faults: a folder with `upstream.json` and the bytes that it names.
//!
//! Of the format, what concerns answers over HTTP is played: `seq` and `runs`, `status`, `headers`, `body_file`, `raw_file`, `json`,
//! `cuts`, `chunk`, `gap_ms`, `hold_after`, `headers_delay_ms`, `end`. A case that needs more is left out by name. Its request is
//! not sent as it stands; what it asserts beyond the contract is for the tests that know the case.
//!
//! **Invariant**: a case is played as it is written or not at all.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::fault::{Attempt, End, Fault, Manner, Memory, Road, Turn};

/// Longer waits than this are shortened: the program's timers are, too.
const LONGEST_WAIT: u64 = 400;

/// The faults of one case, or of every case below a folder.
pub fn read_all(folder: &Path) -> io::Result<Vec<Fault>> {
    let mut folders = vec![folder.to_owned()];
    if !folder.join("upstream.json").is_file() {
        folders = std::fs::read_dir(folder)?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.join("upstream.json").is_file())
            .collect();
        folders.sort();
    }
    let mut faults = Vec::new();
    for folder in folders {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match read(&folder, &name, &mut faults) {
            Ok(()) => {}
            Err(why) => crate::say(&format!("{name} is left out: {why}")),
        }
    }
    Ok(faults)
}

fn read(folder: &Path, name: &str, faults: &mut Vec<Fault>) -> Result<(), String> {
    let text =
        std::fs::read_to_string(folder.join("upstream.json")).map_err(|error| error.to_string())?;
    let script: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let more = ["strict", "token", "usage", "models"];
    if let Some(more) = more.iter().find(|name| script.get(**name).is_some()) {
        return Err(format!("its `{more}` is not played"));
    }
    let runs = script["runs"].as_array().cloned().unwrap_or_else(|| vec![script.clone()]);
    let mut made = Vec::new();
    for run in &runs {
        let replies = run["seq"].as_array().ok_or("it has no `seq`")?;
        let mut attempts = Vec::new();
        for reply in replies {
            attempts.push(attempt(folder, reply)?);
        }
        if attempts.is_empty() {
            return Err("its `seq` is empty".into());
        }
        for whole in [false, true] {
            made.push((attempts.clone(), whole));
        }
    }
    // The summary's words live as long as the program.
    let kind: &'static str = Box::leak(name.to_owned().into_boxed_str());
    for (attempts, whole) in made {
        let accounts = attempts.len().clamp(1, 3);
        let turn = Turn {
            attempts,
            framed: Vec::new(),
            client: Manner::PLAIN,
            whole,
            close: true,
            padding: 0,
            shuffle: 0,
        };
        faults.push(Fault {
            seed: faults.len() as u64 + 1,
            kind,
            accounts,
            lite: false,
            road: Road::Refused(426),
            memory: Memory::Whole,
            turns: vec![turn],
        });
    }
    Ok(())
}

fn attempt(folder: &Path, reply: &Value) -> Result<Attempt, String> {
    const KNOWN: [&str; 15] = [
        "account",
        "repeat",
        "status",
        "headers",
        "body_file",
        "raw_file",
        "json",
        "cuts",
        "chunk",
        "gap_ms",
        "hold_after",
        "headers_delay_ms",
        "end",
        "hold_ms",
        "per_event_gap_ms",
    ];
    let fields = reply.as_object().ok_or("a reply is no object")?;
    if let Some(unknown) = fields.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("`{unknown}` is not played"));
    }
    let bytes = |name: &str| match reply[name].as_str() {
        Some(file) => std::fs::read(folder.join(file))
            .map(Some)
            .map_err(|_| format!("{file} is made by a script")),
        None => Ok(None),
    };
    let head;
    let body;
    if let Some(raw) = bytes("raw_file")? {
        let at = raw.windows(4).position(|four| four == b"\r\n\r\n").map_or(raw.len(), |at| at + 4);
        head = raw[..at].to_vec();
        body = raw[at..].to_vec();
    } else {
        body = match bytes("body_file")? {
            Some(body) => body,
            None => reply.get("json").map(Value::to_string).unwrap_or_default().into_bytes(),
        };
        let mut text = format!(
            "HTTP/1.1 {} Word\r\nconnection: close\r\n",
            reply["status"].as_u64().unwrap_or(200)
        );
        for (name, value) in reply["headers"].as_object().into_iter().flatten() {
            text.push_str(&format!(
                "{name}: {}\r\n",
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            ));
        }
        head = format!("{text}\r\n").into_bytes();
    }
    let wait = |name: &str| reply[name].as_u64().unwrap_or(0).min(LONGEST_WAIT);
    let mut writes = vec![(wait("headers_delay_ms"), head)];
    let (pieces, gap) = pieces(reply, body);
    writes.extend(pieces.into_iter().map(|piece| (gap, piece)));
    if let Some(after) = reply["hold_after"][0].as_u64() {
        let ms = reply["hold_after"][1].as_u64().unwrap_or(0).min(LONGEST_WAIT);
        if let Some(write) = writes.get_mut(after as usize + 1) {
            write.0 += ms;
        }
    }
    let end = match reply["end"].as_str() {
        Some("reset") => End::Reset,
        Some("hold") => End::Hold,
        Some("close") | None => End::Close,
        Some(other) => return Err(format!("the end `{other}` is not played")),
    };
    Ok(Attempt { writes, end })
}

/// The body in its writes, and the milliseconds between them.
fn pieces(reply: &Value, body: Vec<u8>) -> (Vec<Vec<u8>>, u64) {
    let gap = reply["gap_ms"].as_u64().unwrap_or(0).min(5);
    if let Some(size) = reply["chunk"].as_u64().filter(|size| *size > 0) {
        return (body.chunks(size as usize).map(<[u8]>::to_vec).collect(), gap);
    }
    let mut cuts: Vec<usize> = reply["cuts"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|cut| Some(cut.as_u64()? as usize))
        .collect();
    if cuts.is_empty()
        && (reply.get("hold_after").is_some() || reply.get("per_event_gap_ms").is_some())
    {
        cuts = body
            .windows(2)
            .enumerate()
            .filter(|(_, two)| two == b"\n\n")
            .map(|(at, _)| at + 2)
            .collect();
    }
    cuts.retain(|cut| *cut < body.len());
    cuts.extend([0, body.len()]);
    cuts.sort_unstable();
    (cuts.windows(2).map(|pair| body[pair[0]..pair[1]].to_vec()).collect(), gap)
}
