//! The headless program and command line of Weir.

fn main() -> std::process::ExitCode {
    weir::cli::run()
}
