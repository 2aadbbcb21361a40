//! Flags, logging and the exit code. Everything else is in the library.

use std::io::IsTerminal;
use std::process::ExitCode;

use lakehead::shell::{self, Args};
use mimalloc::MiMalloc;
use tracing_subscriber::EnvFilter;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

// Limit: virtual, and used only as deep as statements are nested: 50 000 terms and 20 000 brackets fit.
const STACK_BYTES: usize = 512 * 1024 * 1024;

fn main() -> ExitCode {
    let args = match Args::parse_line(std::env::args_os()) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are errors to clap, and so is a reader that goes away meanwhile to us.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1));
        }
    };
    start_log(args.log.as_deref());
    let shell = std::thread::Builder::new().name("shell".to_owned()).stack_size(STACK_BYTES);
    match shell.spawn(move || shell::run(&args)).map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(_)) | Err(_) => ExitCode::FAILURE,
    }
}

/// Logs warnings to standard error, or what the flag or `RUST_LOG` says. Nothing is logged into a prompt unless asked for.
fn start_log(level: Option<&str>) {
    // The replication client logs what it also returns, which we tell in our own words.
    let default = if std::io::stdin().is_terminal() { "off" } else { "warn,pgwire_replication=off" };
    let filter = match level {
        Some(level) => EnvFilter::new(level),
        None => EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default)),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}
