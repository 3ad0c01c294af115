//! `clawsmith tools show`: everything about one tool.

use std::io;

use clap::Args;
use claw_registry::Status;
use claw_terminal::{Cell, Out, Table};
use clawsmith::app;
use clawsmith::app::tool_view::{ArgumentView, ToolView};

use super::custom;
use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::exit_code::Outcome;
use crate::opened::runtime;

/// The tool to show, and its caller.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The tool's name, or an alias.
    name: String,
    #[command(flatten)]
    caller: CallerArgs,
}

impl Show {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = self.caller.load(session)?;
        if let Some(shown) = custom::show(session, &setup, &self.name, &self.caller)? {
            return Ok(shown);
        }
        let caller = self.caller.caller_here(&setup)?;
        let tool = runtime()?.block_on(setup.tool_view(&caller, &self.name))?;
        session.shown(&tool.json()?, |out| {
            facts(out, &tool)?;
            Ok(tool.arguments().iter().try_for_each(|arguments| table(out, arguments))?)
        })
    }
}

fn facts(out: &mut Out, ToolView { meta, status, verdict, .. }: &ToolView) -> io::Result<()> {
    let names = |list: Vec<String>| if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    let status = match status {
        Status::Ready => "ready".to_owned(),
        Status::Unavailable(reason) => format!("unavailable: {reason}"),
        Status::NotInBuild => "known, but not in this build".to_owned(),
    };
    let allowed = verdict
        .as_ref()
        .map(|verdict| format!("{}: {}", if verdict.allowed { "yes" } else { "no" }, verdict.trace));
    let tokens = app::tokens(meta)
        .map(|tokens| format!("{}{}", tokens.count, if tokens.estimated { " (estimated)" } else { "" }));
    let lines = [
        ("status", Some(status)),
        ("allowed", allowed),
        ("section", Some(meta.heading().label.into_owned())),
        ("groups", Some(names(meta.groups().map(|group| format!("group:{group}")).collect()))),
        ("effects", Some(meta.effects.to_string())),
        ("cost", Some(meta.cost.name().to_owned())),
        ("needs", Some(names(meta.needs.iter().map(|need| need.name().to_owned()).collect()))),
        ("aliases", Some(names(meta.aliases.iter().map(|alias| (*alias).to_owned()).collect()))),
        ("timeout", meta.timeout_secs.map(|seconds| format!("{seconds} s"))),
        ("tokens", tokens),
    ];
    out.heading(meta.title())?;
    out.prose(&meta.about)?;
    out.line("")?;
    let given = lines.into_iter().filter_map(|(name, value)| Some((name, value?)));
    given.into_iter().try_for_each(|(name, value)| out.line(format_args!("{name:<9}{value}")))
}

fn table(out: &mut Out, arguments: &[ArgumentView]) -> io::Result<()> {
    out.line("")?;
    out.heading("arguments")?;
    if arguments.is_empty() {
        return out.line("none");
    }
    out.table(&Table::of(
        arguments,
        &[
            ("name", &|one| Cell::strong(&one.name)),
            ("type", &|one| Cell::new(&one.kind)),
            ("required", &|one| if one.is_required { Cell::warning("yes") } else { Cell::quiet("no") }),
            ("about", &|one| Cell::new(&one.about)),
        ],
    ))
}
