//! The operator's log, on standard error and only when asked for: starting it costs time that a listing
//! should not take. A server always warns.

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

/// Starts it if `CLAWSMITH_LOG` or `RUST_LOG` says what to log; a server logs warnings where neither does.
pub(crate) fn start(is_server: bool) {
    let set = |name: &str| std::env::var(name).ok().filter(|filter| !filter.trim().is_empty());
    let usual = is_server.then(|| "warn".to_owned());
    let Some(filter) = set("CLAWSMITH_LOG").or_else(|| set("RUST_LOG")).or(usual) else { return };
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
