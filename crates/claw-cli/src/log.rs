//! The operator's log, only when asked for: starting it costs time that a listing should not take. A server always warns.

/// Makes a panic print its place but not its message: the message may hold a secret, and nothing has scrubbed
/// it.
pub(crate) fn hush_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        anstream::eprintln!(
            "clawsmith: internal error at {place} (a bug in Clawsmith); the operation was stopped"
        );
    }));
}

/// Starts it; a server logs warnings where nothing else is said.
pub(crate) fn start(is_server: bool) {
    if let Err(error) = clawsmith::app::log::start(is_server.then_some("warn")) {
        anstream::eprintln!("clawsmith: {error}");
    }
}
