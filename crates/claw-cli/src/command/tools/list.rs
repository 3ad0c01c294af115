//! `clawsmith tools list`: every tool, and whether this caller may use it.

use std::io;

use clap::Args;
use claw_core::nearest::nearest;
use claw_core::tool::Section;
use claw_policy::pipeline::{Subject, Verdict};
use claw_registry::{Listing, Status};
use claw_terminal::{Cell, Out, Table};
use clawsmith::app;
use serde_json::json;

use crate::caller::CallerArgs;
use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::{runtime, with_existing_app};

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

/// A listed tool and the policy's verdict; `None` for a tool that this build lacks.
type Line = (Listing, Option<Verdict>);

impl List {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = self.caller.load(session)?;
        let policy = runtime()?.block_on(setup.enforced_policy())?;
        let caller = self.caller.caller_here(&setup)?;
        let stored = with_existing_app(&setup, async |app| {
            let cards = app.of_tenant(&caller.tenant).custom_tools().await?;
            let disabled = cards.into_iter().filter(|card| !card.definition.enabled);
            let disabled: Vec<_> = disabled.map(|card| card.place.name.to_string()).collect();
            Ok((app.registry_of(&caller).await?, disabled))
        })?;
        let (registry, disabled) = stored.unwrap_or_else(|| (setup.registry(), Vec::new()));
        let tools = registry.tool_set();
        let decision = policy.decide(&tools, &Subject::from(&caller));
        let mut sections = registry.list_by_section();
        if let Some(wanted) = &self.section {
            sections = chosen(sections, wanted)?;
        }
        let absent = |line: &Listing| line.status == Status::NotInBuild;
        let hidden = sections.iter().flat_map(|(_, lines)| lines).filter(|line| absent(line)).count();
        let sections: Vec<(Section, Vec<Line>)> = sections
            .into_iter()
            .map(|(section, lines)| {
                let kept = lines.into_iter().filter(|line| self.all || !absent(line));
                let verdict = |line: Listing| {
                    let verdict = decision.get(line.meta.name.as_str()).cloned();
                    (line, verdict)
                };
                (section, kept.map(verdict).collect::<Vec<_>>())
            })
            .filter(|(_, lines)| !lines.is_empty())
            .collect();
        let of_section = |(section, lines): &(Section, Vec<Line>)| -> Vec<_> {
            lines.iter().map(|line| as_json(section, line)).collect()
        };
        let value: Vec<_> = sections.iter().flat_map(of_section).collect();
        session.shown(&value, |out| {
            print(out, &sections)?;
            if !disabled.is_empty() {
                out.prose(format_args!("\ncustom tools that are disabled: {}", disabled.join(", ")))?;
            }
            if hidden > 0 && !self.all {
                out.prose(format_args!(
                    "\n{hidden} more tools are known and not in this build; `clawsmith tools list --all` shows them"
                ))?;
            }
            Ok(())
        })
    }
}

fn chosen(
    sections: Vec<(Section, Vec<Listing>)>,
    wanted: &str,
) -> Result<Vec<(Section, Vec<Listing>)>, Failure> {
    let is = |section: &Section| section.id == wanted || section.label.eq_ignore_ascii_case(wanted);
    let names: Vec<String> = sections.iter().map(|(section, _)| section.id.to_string()).collect();
    let chosen: Vec<_> = sections.into_iter().filter(|(section, _)| is(section)).collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let failure = Failure::usage(format!("there is no section `{wanted}`"));
    Err(match nearest(wanted, names.iter().map(String::as_str)) {
        Some(near) => failure.hint(format!("clawsmith tools list --section {near}")),
        None => failure.hint(format!("one of {}", names.join(", "))),
    })
}

fn print(out: &mut Out, sections: &[(Section, Vec<Line>)]) -> io::Result<()> {
    let mut table =
        Table::new(["tool", "section", "status", "allowed", "cost", "tokens", "effects", "about"]);
    let mut reasons = Vec::new();
    for (section, lines) in sections {
        for (listing, verdict) in lines {
            let meta = &listing.meta;
            let status = match &listing.status {
                Status::Ready => Cell::good("ready"),
                Status::Unavailable(reason) => {
                    reasons.push(format!("{} is unavailable: {reason}", meta.name));
                    Cell::warning("unavailable")
                }
                Status::NotInBuild => Cell::quiet("not in build"),
            };
            reasons.extend(listing.note.map(|note| format!("{}: {note}", meta.name)));
            let allowed = match verdict {
                Some(verdict) if verdict.allowed => Cell::good("yes"),
                Some(verdict) => {
                    reasons.push(format!("{} is not allowed: {}", meta.name, verdict.trace));
                    Cell::bad("no")
                }
                None => Cell::quiet("-"),
            };
            let tokens = app::tokens(meta).map_or_else(
                || "-".to_owned(),
                |tokens| format!("{}{}", if tokens.estimated { "~" } else { "" }, tokens.count),
            );
            table.row([
                Cell::strong(&meta.name),
                Cell::quiet(&section.id),
                status,
                allowed,
                Cell::new(meta.cost.name()),
                Cell::new(tokens),
                Cell::new(meta.effects),
                Cell::new(&meta.about),
            ]);
        }
    }
    if table.is_empty() {
        return out.line("no tool of this section is in this build");
    }
    out.table(&table)?;
    if !reasons.is_empty() {
        out.line("")?;
    }
    reasons.iter().try_for_each(|reason| out.prose(reason))
}

fn as_json(section: &Section, (listing, verdict): &Line) -> serde_json::Value {
    let tokens = app::tokens(&listing.meta);
    json!({
        "name": listing.meta.name,
        "section": section,
        "about": listing.meta.about,
        "status": listing.status,
        "note": listing.note,
        "effects": listing.meta.effects,
        "cost": listing.meta.cost,
        "aliases": listing.meta.aliases,
        "tokens": tokens.as_ref().map(|tokens| tokens.count),
        "tokens_estimated": tokens.as_ref().map(|tokens| tokens.estimated),
        "allowed": verdict.as_ref().map(|verdict| verdict.allowed),
        "reason": verdict.as_ref().map(|verdict| verdict.trace.to_string()),
    })
}
