use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Which parts of `weir` a part may use. What is not listed it must not know.
const LEVELS: [(&str, &[&str]); 9] = [
    ("accounts", &[]),
    ("store", &[]),
    ("practice", &[]),
    ("upstream", &["accounts"]),
    ("turn", &["accounts", "store", "upstream"]),
    ("endpoint", &["accounts", "store", "upstream", "turn"]),
    ("api", &["accounts", "store", "upstream", "turn", "endpoint"]),
    ("app", &["accounts", "store", "upstream", "turn", "endpoint", "api", "practice"]),
    ("cli", &["accounts", "store", "upstream", "turn", "endpoint", "api", "app", "practice"]),
];

/// Crates that only these parts may name.
const KEPT_APART: [(&str, &[&str]); 5] = [
    ("axum", &["endpoint", "api", "app", "practice"]),
    ("rusqlite", &["store"]),
    ("reqwest", &["upstream", "endpoint", "app", "cli"]),
    ("clap", &["cli"]),
    ("tokio", &["turn", "endpoint", "api", "app", "cli", "practice", "upstream"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a text file");
            files.push((path, text));
        }
    }
    files.sort();
    files
}

/// The program's own code, without the tests at the end of a file.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

fn is_test_file(path: &Path) -> bool {
    path.file_stem().is_some_and(|name| name == "tests" || name == "cases" || name == "properties")
}

#[test]
fn a_part_uses_only_the_levels_below_it() {
    let levels = BTreeMap::from(LEVELS);
    let source = root().join("src-tauri/weir/src");
    let mut wrong = Vec::new();
    for (path, text) in rust_files(&source) {
        let inside = path.strip_prefix(&source).expect("below the source");
        let part = inside.components().next().expect("a part").as_os_str().to_string_lossy();
        let part = part.trim_end_matches(".rs");
        let Some(allowed) = levels.get(part) else { continue };
        if is_test_file(&path) {
            continue;
        }
        for used in code(&text).split("crate::").skip(1) {
            let used: String = used.chars().take_while(char::is_ascii_lowercase).collect();
            if levels.contains_key(used.as_str())
                && used != part
                && !allowed.contains(&used.as_str())
            {
                wrong.push(format!("{} uses {used}", inside.display()));
            }
        }
        for (library, parts) in KEPT_APART {
            let named = code(&text).contains(&format!("{library}::"));
            if named && !parts.contains(&part) {
                wrong.push(format!("{} names {library}", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_pure_parts_stay_pure() {
    let mut wrong = Vec::new();
    for (path, text) in rust_files(&root().join("src-tauri/core/src")) {
        for word in
            ["std::fs", "std::net", "std::time", "tokio", "async fn", "std::env", "std::thread"]
        {
            if code(&text).contains(word) && !is_test_file(&path) {
                wrong.push(format!("{} names {word}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_module_says_what_it_is_and_every_part_what_always_holds() {
    let mut wrong = Vec::new();
    for source in ["src-tauri/core/src", "src-tauri/weir/src", "src-tauri/src"] {
        for (path, text) in rust_files(&root().join(source)) {
            let first: Vec<&str> =
                text.lines().take_while(|line| line.starts_with("//!")).collect();
            let command = path.parent().is_some_and(|folder| folder.ends_with("cli"));
            let entry = path.file_name().is_some_and(|name| name == "main.rs");
            if first.is_empty() {
                wrong.push(format!("{} does not say what it is", path.display()));
            } else if !is_test_file(&path)
                && !command
                && !entry
                && !first.iter().any(|line| line.contains("**Invariant**"))
            {
                wrong.push(format!("{} names no invariant", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nothing_is_put_off() {
    let mut wrong = Vec::new();
    for folder in ["src-tauri", "tests"] {
        for (path, text) in rust_files(&root().join(folder)) {
            if path.ends_with("tidy.rs") {
                continue;
            }
            for mark in ["todo!(", "unimplemented!(", "TODO", "FIXME", "XXX", "#[ignore", "dbg!("] {
                if text.contains(mark) {
                    wrong.push(format!("{} has {mark}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn files_hold_one_idea() {
    let mut sizes = Vec::new();
    for source in ["src-tauri/core/src", "src-tauri/weir/src", "src-tauri/src"] {
        for (path, text) in rust_files(&root().join(source)) {
            if !is_test_file(&path) {
                sizes.push((code(&text).lines().count(), path));
            }
        }
    }
    sizes.sort();
    let long: Vec<_> = sizes.iter().filter(|(lines, _)| *lines > 400).collect();
    assert!(long.len() * 10 <= sizes.len(), "more than one file in ten is long: {long:#?}");
    let (longest, path) = sizes.last().expect("files");
    assert!(*longest <= 600, "{} has {longest} lines", path.display());
}

#[test]
fn code_for_one_system_stays_in_few_files() {
    let mut files = Vec::new();
    for source in ["src-tauri/weir/src", "src-tauri/src"] {
        for (path, text) in rust_files(&root().join(source)) {
            // `cfg(unix)` alone is tried here; what stands for the other systems is not.
            let marks =
                ["cfg(windows", "cfg(not(", "target_os = \"macos\"", "cfg_attr(all(windows"];
            if marks.iter().any(|mark| text.contains(mark)) {
                files.push(path);
            }
        }
    }
    assert!(files.len() <= 3, "{files:#?}");
}
