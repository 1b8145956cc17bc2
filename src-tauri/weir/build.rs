//! Builds Weir anew when the page was built anew, since the page's files are embedded when it is compiled.
//!
//! **Invariant**: Weir builds without a built page, and then notices when there is one.

use std::path::Path;

fn main() {
    // Cargo would build anew every time for a path that is not there.
    let watched = if Path::new("../../ui/dist").exists() { "../../ui/dist" } else { "../../ui" };
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={watched}");
}
