//! Rules that are given with an approval: creating them, showing their coverage, revoking them.

use std::time::Duration;

use clap::Args;
use claw_core::port::Clock as _;
use claw_core::store::RuleWidth;
use claw_host::SystemClock;
use claw_registry::CallScrubber;
use claw_terminal::{Cell, Table};
use clawsmith::app::words::{lifetime, time};
use clawsmith::app::{RuleFor, Setup, Verdict};
use serde_json::json;

use crate::choice::{Choices, one_of};
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_existing_app;

/// The callers that a rule covers.
const SCOPES: Choices<RuleFor> = &[
    ("session", "The agent that made the call, in this session", RuleFor::Session),
    ("agent", "The agent that made the call, in all its sessions", RuleFor::Agent),
    ("tenant", "Every agent of the tenant", RuleFor::Tenant),
];

/// How much a rule covers.
const WIDTHS: Choices<RuleWidth> = &[
    ("exact", "This very command", RuleWidth::Exact),
    ("paths", "These programs with these options, on any path of the workspace", RuleWidth::Paths),
    ("host", "Every address of this host", RuleWidth::Host),
    ("directory", "This directory and all below it, for file tools and commands alike", RuleWidth::Directory),
];

/// The extent of an approval: this call, or a rule for such calls.
#[derive(Debug, Args)]
pub(crate) struct Kind {
    /// Also remember a rule, so that similar calls need no approval; `approvals show` lists the possible rules.
    #[arg(long)]
    always: bool,
    /// How much the rule covers: one of the widths that `approvals show` lists [default: the narrowest].
    #[arg(long, value_parser = one_of(WIDTHS), requires = "always")]
    width: Option<RuleWidth>,
    /// The callers that the rule covers.
    #[arg(long, value_parser = one_of(SCOPES), default_value = "session", requires = "always")]
    scope: RuleFor,
    /// The rule's lifetime, such as `30m`, `12h` or `7d` [default: until it is revoked].
    #[arg(long, value_name = "TIME", requires = "always", value_parser = lifetime)]
    expires: Option<Duration>,
}

impl Kind {
    /// Returns the answer.
    pub(super) fn verdict(&self) -> Verdict {
        if !self.always {
            return Verdict::Once;
        }
        Verdict::Always { scope: self.scope, lasts: self.expires, width: self.width }
    }
}

/// The rules to show.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Include ended rules.
    #[arg(long)]
    all: bool,
}

impl List {
    pub(super) fn run(&self, session: &mut Session, setup: &Setup, scrubber: &CallScrubber) -> Outcome {
        let now = SystemClock.now();
        let rules = with_existing_app(setup, async |app| Ok(app.rules().await?))?;
        let mut rules = rules.unwrap_or_default();
        rules.retain(|rule| self.all || rule.state(now) == "live");
        let mut shown = serde_json::to_value(&rules)?;
        for (rule, shown) in rules.iter().zip(shown.as_array_mut().into_iter().flatten()) {
            shown["state"] = rule.state(now).into();
        }
        session.shown(&scrubber.json(&shown), |out| {
            if rules.is_empty() {
                return Ok(out.line("no remembered rules")?);
            }
            Ok(out.table(&Table::of(
                &rules,
                &[
                    ("id", &|rule| Cell::strong(rule.new.id)),
                    ("state", &|rule| Cell::new(rule.state(now))),
                    ("for", &|rule| Cell::new(&rule.new.scope)),
                    ("tool", &|rule| Cell::new(&rule.new.tool)),
                    ("covers", &|rule| Cell::strong(scrubber.text(&rule.new.text))),
                    ("uses", &|rule| Cell::new(rule.uses)),
                    ("until", &|rule| Cell::quiet(rule.new.expires.map_or("for good".to_owned(), time))),
                    ("by", &|rule| Cell::quiet(&rule.new.by)),
                ],
            ))?)
        })
    }
}

/// A rule to revoke.
#[derive(Debug, Args)]
pub(crate) struct Revoke {
    /// The rule's id; its first characters are enough if no other id begins with them.
    id: String,
}

impl Revoke {
    pub(super) fn run(&self, session: &mut Session, setup: &Setup) -> Outcome {
        let revoked = with_existing_app(setup, async |app| Ok(app.revoke_rule(&self.id).await?))?.flatten();
        let unknown =
            || Failure::usage(format!("there is no rule `{}`", self.id)).hint("clawsmith approvals rules");
        let rule = revoked.ok_or_else(unknown)?;
        session.told(
            &json!({ "id": rule.new.id, "revoked": rule.revoked }),
            format_args!("revoked: {} ({})", rule.new.text, rule.new.id),
        )
    }
}
