//! The operator's log, on standard error and only on request: starting it costs time that a listing should
//! not take.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// Makes a panic print its place but not its message: the message may hold a secret, and nothing has scrubbed
/// it.
pub(crate) fn hush_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        anstream::eprintln!("clawsmith: a mistake of ours at {place}; what was being done has stopped");
    }));
}

/// Starts it if `CLAWSMITH_LOG` or `RUST_LOG` sets a filter.
pub(crate) fn start() {
    let set = |name: &str| std::env::var(name).ok().filter(|filter| !filter.trim().is_empty());
    let Some(filter) = set("CLAWSMITH_LOG").or_else(|| set("RUST_LOG")) else { return };
    let filter = match EnvFilter::try_new(&filter) {
        Ok(filter) => filter,
        Err(error) => {
            anstream::eprintln!(
                "clawsmith: the log filter `{filter}` cannot be read ({error}); nothing is logged"
            );
            return;
        }
    };
    // Fails only where a log was started before, which then stands.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}
