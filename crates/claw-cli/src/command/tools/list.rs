//! `clawsmith tools list`: every tool, and whether this caller may use it.

use std::io;

use clap::Args;
use claw_core::counted::counted;
use claw_registry::Status;
use claw_terminal::{Cell, Out, Table};
use clawsmith::app;
use clawsmith::app::tool_list::ListedTool;

use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::exit_code::Outcome;
use crate::opened::runtime;

/// The tools to list, and their caller.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// List the tools that this build lacks, too.
    #[arg(long)]
    all: bool,
    /// Only tools of this section, by its id or label.
    #[arg(long, value_name = "NAME")]
    section: Option<String>,
    #[command(flatten)]
    caller: CallerArgs,
}

impl List {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = self.caller.load(session)?;
        let caller = self.caller.caller_here(&setup)?;
        let mut list = runtime()?.block_on(setup.tool_list(&caller, self.section.as_deref()))?;
        let all = list.tools.len();
        list.tools.retain(|tool| self.all || !tool.is_absent());
        let value: Vec<_> = list.tools.iter().map(ListedTool::json).collect();
        session.shown(&value, |out| {
            print(out, &list.tools)?;
            if !list.disabled.is_empty() {
                out.prose(format_args!("\ncustom tools that are disabled: {}", list.disabled.join(", ")))?;
            }
            match all - list.tools.len() {
                0 => Ok(()),
                hidden => Ok(out.prose(format_args!(
                    "\nnot in this build: {}; `clawsmith tools list --all` shows them",
                    counted(hidden, "known tool")
                ))?),
            }
        })
    }
}

fn print(out: &mut Out, tools: &[ListedTool]) -> io::Result<()> {
    if tools.is_empty() {
        return out.line("no tool of this section is in this build");
    }
    out.table(&Table::of(
        tools,
        &[
            ("tool", &|tool| Cell::strong(&tool.listing.meta.name)),
            ("section", &|tool| Cell::quiet(&tool.section.id)),
            ("status", &|tool| match &tool.listing.status {
                Status::Ready => Cell::good("ready"),
                Status::Unavailable(_) => Cell::warning("unavailable"),
                Status::NotInBuild => Cell::quiet("not in build"),
            }),
            ("allowed", &|tool| match &tool.verdict {
                Some(verdict) => Cell::yes(verdict.allowed),
                None => Cell::quiet("-"),
            }),
            ("cost", &|tool| Cell::new(tool.listing.meta.cost.name())),
            ("tokens", &|tool| match app::tokens(&tool.listing.meta) {
                Some(tokens) => {
                    Cell::new(format!("{}{}", if tokens.estimated { "~" } else { "" }, tokens.count))
                }
                None => Cell::new("-"),
            }),
            ("effects", &|tool| Cell::new(tool.listing.meta.effects)),
            ("about", &|tool| Cell::new(&tool.listing.meta.about)),
        ],
    ))?;
    let mut reasons = Vec::new();
    for ListedTool { listing, verdict, .. } in tools {
        let name = &listing.meta.name;
        if let Status::Unavailable(reason) = &listing.status {
            reasons.push(format!("{name} is unavailable: {reason}"));
        }
        reasons.extend(listing.note.map(|note| format!("{name}: {note}")));
        if let Some(verdict) = verdict.as_ref().filter(|verdict| !verdict.allowed) {
            reasons.push(format!("{name} is not allowed: {}", verdict.trace));
        }
    }
    if !reasons.is_empty() {
        out.line("")?;
    }
    reasons.iter().try_for_each(|reason| out.prose(reason))
}
