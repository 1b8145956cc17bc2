use std::fs;
use std::path::Path;

use ts_rs::{Config, TS};
use weir::accounts::quota::Window;
use weir::api::view::{AccountRow, ModelRow, Status, Today, TurnView};
use weir::api::watch::{Delta, Message, Snapshot};
use weir::api::{Command, OneTurn, probe};
use weir::store::{CallRow, DayUsage, TurnRow};

const HEAD: &str = "// The contract with the program, written by `WEIR_WRITE_CONTRACT=1 cargo test contract`. Do not edit.\n\
// Units stand in the names: `_ms` milliseconds, `_s` seconds, `_bytes` bytes. A number that is not known is null.\n\n\
export type Mode = \"auto\" | \"lite\" | \"full\";\n\n\
export type Dialect = \"lite\" | \"full\";\n";

fn written() -> String {
    let config = Config::new().with_large_int("number");
    let declarations = [
        Command::decl(&config),
        Status::decl(&config),
        ModelRow::decl(&config),
        Window::decl(&config),
        AccountRow::decl(&config),
        TurnRow::decl(&config),
        CallRow::decl(&config),
        TurnView::decl(&config),
        OneTurn::decl(&config),
        Today::decl(&config),
        DayUsage::decl(&config),
        probe::TrialRow::decl(&config),
        probe::Report::decl(&config),
        Snapshot::decl(&config),
        Delta::decl(&config),
        Message::decl(&config),
    ];
    declarations
        .iter()
        .fold(HEAD.to_owned(), |text, declaration| format!("{text}\nexport {declaration}\n"))
}

#[test]
fn the_page_reads_what_the_program_writes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/src/contract.ts");
    if std::env::var_os("WEIR_WRITE_CONTRACT").is_some() {
        fs::write(&path, written()).expect("written");
    }
    let there = fs::read_to_string(&path).expect("the contract").replace("\r\n", "\n");
    assert_eq!(there, written(), "run `WEIR_WRITE_CONTRACT=1 cargo test contract`");
}
