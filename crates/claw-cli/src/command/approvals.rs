//! `clawsmith approvals`: pending approvals, answered from another terminal.
//!
//! A call asks in one process and is answered here: the store carries both. The request was scrubbed when it
//! was stored and is scrubbed again when shown, with the secrets known by now.

pub(crate) mod rules;
mod watch;

use clap::{Args, Subcommand};
use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{Approval, ApprovalState};
use claw_host::SystemClock;
use claw_registry::CallScrubber;
use claw_terminal::{Cell, Table};
use clawsmith::app::words::time;
use clawsmith::app::{Answered, InputValues, RulePreview, Setup, Verdict};
use serde_json::map::Entry;
use serde_json::{Map, Value, json};

use crate::cli::Session;
use crate::failure::{Failure, Outcome};
use crate::opened::with_existing_app;

/// The operations on approvals.
#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List pending approvals, oldest first.
    List,
    /// Show an approval: the action, the caller, and the rule that asks.
    Show(Question),
    /// Approve: the waiting call may run, once and as it was shown. With `--always` a rule is remembered too.
    Approve(Yes),
    /// Deny: the waiting call is refused.
    Deny(No),
    /// Give the values that an MCP server asks for: they are checked, and sent to that server alone.
    Answer(Values),
    /// Dismiss a request of an MCP server for values: neither given nor declined.
    Dismiss(Question),
    /// Wait for approvals, and answer each here as it comes.
    Watch,
    /// List the rules that were given with an approval.
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
    /// Send values that look like secrets all the same.
    #[arg(long)]
    allow_secrets: bool,
}

impl Values {
    fn read(self) -> Result<(Question, InputValues), Failure> {
        let Self { question, values: given, allow_secrets } = self;
        let mut values = Map::new();
        for pair in given {
            let Some((name, value)) = pair.split_once('=') else {
                return Err(Failure::usage(format!("`{pair}` names no field")).hint("write NAME=VALUE"));
            };
            let value = Value::from(value);
            match values.entry(name) {
                Entry::Vacant(place) => drop(place.insert(value)),
                Entry::Occupied(mut place) => match place.get_mut() {
                    Value::Array(several) => several.push(value),
                    first => *first = Value::Array(vec![first.take(), value]),
                },
            }
        }
        Ok((question, InputValues { values, allow_secrets }))
    }
}

/// An approval.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// The approval's id, or an unambiguous beginning of one that is pending.
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
                show(session, (&found, preview.as_ref()), &scrubber)
            }
            Self::Approve(Yes { question, kind }) => {
                question.answer(session, &setup, kind.verdict(), &scrubber)
            }
            Self::Deny(No { question, reason }) => {
                question.answer(session, &setup, Verdict::Deny { reason }, &scrubber)
            }
            Self::Answer(values) => {
                let (question, values) = values.read()?;
                question.answer(session, &setup, Verdict::Values(values), &scrubber)
            }
            Self::Dismiss(question) => question.answer(session, &setup, Verdict::Dismiss, &scrubber),
            Self::Watch => watch::run(session, &setup),
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
                out.line(format_args!("  to end it: clawsmith approvals revoke {}", rule.id))?;
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
    (approval, preview): (&Approval, Option<&RulePreview>),
    scrubber: &CallScrubber,
) -> Outcome {
    let (now, request) = (SystemClock.now(), &approval.request);
    let state = match approval.state {
        ApprovalState::Pending if request.expires > now => {
            format!("pending, {} left", left(request.expires, now))
        }
        // Nobody was there to close it.
        ApprovalState::Pending | ApprovalState::Approved if request.expires <= now => "expired".to_owned(),
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
        for (name, line) in preview.map(rules::preview_lines).unwrap_or_default() {
            out.field(name, &scrubber.text(&line))?;
        }
        Ok(())
    })
}

fn left(expires: UnixMillis, now: UnixMillis) -> String {
    format!("{} s", expires.since(now).as_secs())
}
