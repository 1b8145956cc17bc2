use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
        .replace("\r\n", "\n")
}

#[test]
fn the_readme_shows_the_configuration_that_the_real_clients_were_run_with() {
    let readme = read("README.md");
    for snippet in ["tests/e2e/snippets/opencode.json", "tests/e2e/snippets/codex.toml"] {
        assert!(
            readme.contains(read(snippet).trim_end()),
            "README.md does not show {snippet} as it is"
        );
    }
}

#[test]
fn every_command_that_the_documents_name_exists() {
    let help = {
        let weir = std::process::Command::new(env!("CARGO_BIN_EXE_weir")).arg("--help").output();
        String::from_utf8(weir.expect("the program runs").stdout).expect("text")
    };
    let commands: Vec<&str> = help
        .split_once("Commands:")
        .expect("a list")
        .1
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"serve"), "{commands:?}");
    for document in ["README.md", "src-tauri/ARCHITECTURE.md"] {
        for named in read(document).split("`weir ").skip(1) {
            let word: String = named.chars().take_while(|c| c.is_ascii_lowercase()).collect();
            // `weir --help` names no command.
            if word.is_empty() {
                continue;
            }
            assert!(commands.contains(&word.as_str()), "{document} names `weir {word}`");
        }
    }
}

#[test]
fn the_map_names_every_part() {
    let map = read("src-tauri/ARCHITECTURE.md");
    for entry in fs::read_dir(root().join("src-tauri/weir/src")).expect("the source").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            assert!(map.contains(&format!("`{name}/`")), "ARCHITECTURE.md does not name {name}/");
        }
    }
}

#[test]
fn the_map_names_no_file_that_is_not_there() {
    let map = read("src-tauri/ARCHITECTURE.md");
    let named = map
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.ends_with(".rs") && !word.contains(' '));
    let roots = [
        "",
        "src-tauri/",
        "src-tauri/weir/",
        "src-tauri/weir/src/",
        "src-tauri/core/src/",
        "src-tauri/core/src/dialect/",
        "src-tauri/faults/src/",
    ];
    for file in named {
        let there = roots.iter().any(|start| {
            root()
                .join(
                    format!("{start}{file}")
                        .replace("src-tauri/core/src/core/src", "src-tauri/core/src"),
                )
                .exists()
        });
        assert!(
            there || root().join("src-tauri").join(file).exists(),
            "ARCHITECTURE.md names {file}"
        );
    }
}
