//! The subcommands, one file each.

/// Declares a list of subcommands, each of which runs by itself.
macro_rules! subcommands {
    ($(#[$about:meta])* $visible:vis enum $name:ident { $($(#[$of:meta])* $variant:ident($command:ty),)+ }) => {
        $(#[$about])*
        #[derive(Debug, clap::Subcommand)]
        $visible enum $name {
            $($(#[$of])* $variant($command),)+
        }

        impl $name {
            /// Runs the chosen one.
            pub(crate) fn run(self, session: &mut $crate::cli::Session) -> $crate::exit_code::Outcome {
                match self {
                    $(Self::$variant(command) => command.run(session),)+
                }
            }
        }
    };
}

pub(crate) mod agent;
pub(crate) mod api_keys;
pub(crate) mod approvals;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod credentials;
pub(crate) mod db;
pub(crate) mod doctor;
pub(crate) mod graph;
pub(crate) mod ledger;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod onboard;
pub(crate) mod policy;
mod prompt;
pub(crate) mod runs;
pub(crate) mod sandbox;
pub(crate) mod scrub;
pub(crate) mod secrets;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod shell;
pub(crate) mod skills;
pub(crate) mod tools;
pub(crate) mod tour;
pub(crate) mod undo;
pub(crate) mod users;
pub(crate) mod web;

pub(crate) use subcommands;
