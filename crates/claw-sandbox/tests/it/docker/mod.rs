//! Commands in containers of a real engine, and the attacks on them. `scripts/with-docker.sh` brings the engine.

mod children;
mod escape;
mod files;
mod kit;
mod left_behind;
mod pool;
mod shell;

pub(crate) use left_behind::own_if_asked;
