//! `clawsmith approvals`: pending approvals, answered from another terminal.
//!
//! A call asks in one process and is answered here: the store carries both. The request was scrubbed when it
//! was stored and is scrubbed again when shown, with the secrets known by now.

mod rules;

use std::collections::HashSet;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{Approval, ApprovalState};
use claw_host::SystemClock;
use claw_registry::CallScrubber;
use claw_terminal::{Cell, Table, tell};
use clawsmith::app::question::approval_state;
use clawsmith::app::words::time;
use clawsmith::app::{Answered, InputValues, RulePreview, Setup, Verdict};
use serde_json::json;

use super::tools::approve;
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::{with_app, with_existing_app};

/// The interval between checks for new approvals.
const EVERY: Duration = Duration::from_millis(300);

/// The operations on approvals.
#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List pending approvals, oldest first.
    List,
    /// Show an approval: the action, the caller, and the rule that requires approval.
    Show(Question),
    /// Approve: the waiting call may run, once and as it was shown. With `--always` a rule is remembered too.
    Approve(Yes),
    /// Deny: the waiting call is refused.
    Deny(No),
    /// Give the values that an MCP server asks for: they are checked, and sent to that server alone.
    Answer(Values),
    /// Dismiss a request of an MCP server for values, without answering it.
    Dismiss(Question),
    /// Wait for approvals, and answer each here as it comes.
    Watch,
    /// List the rules that were remembered with an approval.
    Rules(rules::List),
    /// Revoke a rule: calls that it covered need approval again.
    Revoke(rules::Revoke),
}

/// An approval to grant, once or as a rule.
#[derive(Debug, Args)]
pub(crate) struct Yes {
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    kind: rules::Kind,
}

/// An approval to deny, with the reason.
#[derive(Debug, Args)]
pub(crate) struct No {
    #[command(flatten)]
    question: Question,
    /// The reason; the model is told.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// A request for input, and the values for it.
#[derive(Debug, Args)]
pub(crate) struct Values {
    #[command(flatten)]
    question: Question,
    /// Values by the names of their fields.
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
    /// Send values even if they look like secrets.
    #[arg(long)]
    allow_secrets: bool,
}

/// An approval.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// The approval's id. For a pending approval, the first characters are enough if no other id begins with them.
    id: String,
}

impl Approvals {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let scrubber = setup.scrubbers()?.for_tenant(setup.tenant());
        match self {
            Self::List => list(session, &setup, &scrubber),
            Self::Show(question) => {
                let found = with_existing_app(&setup, async |app| {
                    let Some(found) = app.find_approval(&question.id).await? else { return Ok(None) };
                    let preview = app.preview_rule(&found).await?;
                    Ok(Some((found, preview)))
                })?;
                let (found, preview) = found.flatten().ok_or_else(|| question.unknown())?;
                show(session, &found, preview.as_ref(), &scrubber)
            }
            Self::Approve(Yes { question, kind }) => {
                question.answer(session, &setup, kind.verdict(), &scrubber)
            }
            Self::Deny(No { question, reason }) => {
                question.answer(session, &setup, Verdict::Deny { reason }, &scrubber)
            }
            Self::Answer(Values { question, values, allow_secrets }) => {
                let values = InputValues { allow_secrets, ..InputValues::of_pairs(&values)? };
                question.answer(session, &setup, Verdict::Values(values), &scrubber)
            }
            Self::Dismiss(question) => question.answer(session, &setup, Verdict::Dismiss, &scrubber),
            Self::Watch => watch(session, &setup),
            Self::Rules(list) => list.run(session, &setup, &scrubber),
            Self::Revoke(revoke) => revoke.run(session, &setup),
        }
    }
}

impl Question {
    fn answer(
        &self,
        session: &mut Session,
        setup: &Setup,
        verdict: Verdict,
        scrubber: &CallScrubber,
    ) -> Outcome {
        let by = session.user(None)?;
        let answered =
            with_existing_app(setup, async |app| Ok(app.answer(&self.id, verdict, by.as_str()).await?))?;
        let Answered { approval, rule } = answered.flatten().ok_or_else(|| self.unknown())?;
        let what = in_short(&approval, scrubber);
        let Approval { id, state, request, .. } = &approval;
        let mut value = json!({ "id": id, "state": state, "tool": request.tool, "what": what });
        if let Some(rule) = &rule {
            value["rule"] = json!({ "id": rule.id, "covers": rule.text });
        }
        session.shown(&value, |out| {
            out.line(format_args!("{state}: `{}` ({id})", request.tool))?;
            out.foreign(&format!("  {what}"))?;
            if let Some(rule) = rule {
                out.foreign(&format!("remembered for {}: {}", rule.scope, rule.text))?;
                out.line(format_args!("  to revoke the rule: clawsmith approvals revoke {}", rule.id))?;
            }
            Ok(())
        })
    }

    fn unknown(&self) -> Failure {
        Failure::usage(format!("no approval `{}` is pending", self.id)).hint("clawsmith approvals list")
    }
}

fn list(session: &mut Session, setup: &Setup, scrubber: &CallScrubber) -> Outcome {
    let now = SystemClock.now();
    let waiting = with_existing_app(setup, async |app| Ok(app.pending_approvals().await?))?;
    let waiting = waiting.unwrap_or_default();
    session.shown(&scrubber.json(&serde_json::to_value(&waiting)?), |out| {
        if waiting.is_empty() {
            return Ok(out.line("No approvals pending.")?);
        }
        Ok(out.table(&Table::of(
            &waiting,
            &[
                ("id", &|one| Cell::strong(one.id)),
                ("left", &|one| Cell::quiet(left(one.request.expires, now))),
                ("session", &|one| Cell::new(&one.request.session)),
                ("agent", &|one| Cell::new(&one.request.agent)),
                ("tool", &|one| Cell::strong(&one.request.tool)),
                ("effects", &|one| Cell::warning(one.request.effects)),
                ("what", &|one| Cell::new(in_short(one, scrubber))),
            ],
        ))?)
    })
}

/// Summarizes an approval on one line.
fn in_short(approval: &Approval, scrubber: &CallScrubber) -> String {
    let what = scrubber.text(&approval.request.summary);
    let what = what.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    clawsmith::app::words::in_short(&what.replace(":; ", ": "))
}

fn show(
    session: &mut Session,
    approval: &Approval,
    preview: Option<&RulePreview>,
    scrubber: &CallScrubber,
) -> Outcome {
    let (now, request) = (SystemClock.now(), &approval.request);
    let state = match approval_state(approval, now) {
        ApprovalState::Pending => format!("pending, {} left", left(request.expires, now)),
        state => state.to_string(),
    };
    let user = request.user.as_ref().map(|user| format!(" for {user}")).unwrap_or_default();
    let lines = [
        ("id", Some(approval.id.to_string())),
        ("state", Some(state)),
        ("answer by", approval.answered_by.as_ref().map(|by| scrubber.text(by))),
        ("because", approval.reason.as_ref().map(|reason| scrubber.text(reason))),
        ("tool", Some(request.tool.to_string())),
        ("effects", Some(request.effects.to_string())),
        ("why", Some(scrubber.text(&request.reason))),
        ("agent", Some(format!("{}{user}, in {}", request.agent, request.session))),
        ("asked", Some(time(request.asked))),
    ];
    session.shown(&scrubber.json(&serde_json::to_value(approval)?), |out| {
        out.fields(lines)?;
        for (i, line) in scrubber.text(&request.summary).lines().enumerate() {
            out.foreign(&format!("{:<11}{line}", if i == 0 { "what" } else { "" }))?;
        }
        for (i, line) in preview.map(RulePreview::lines).unwrap_or_default().iter().enumerate() {
            out.field(if i == 0 { "always" } else { "" }, &scrubber.text(line))?;
        }
        Ok(())
    })
}

fn left(expires: UnixMillis, now: UnixMillis) -> String {
    format!("{} s", expires.since(now).as_secs())
}

/// Puts approvals to the person as they come, until Ctrl-C.
fn watch(session: &mut Session, setup: &Setup) -> Outcome {
    let by = session.user(None)?;
    with_app(setup, async |app| {
        if !session.out.json {
            tell("Waiting for approvals; Ctrl-C to stop.");
        }
        let mut seen = HashSet::new();
        loop {
            for approval in app.pending_approvals().await? {
                if !seen.insert(approval.id) {
                    continue;
                }
                match session.out.json {
                    true => session.out.json_line(&approval)?,
                    false => approve::put(app, approval, by.to_string()).await,
                }
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                _ = tokio::signal::ctrl_c() => return Ok(ExitCode::SUCCESS),
            }
        }
    })
}
