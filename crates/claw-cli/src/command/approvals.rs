//! `clawsmith approvals`: the questions that calls wait for, answered from another terminal.
//!
//! A call asks in one process and is answered here: the store carries both. What is shown was scrubbed when it
//! was asked and is scrubbed again, with what is secret by now.

pub(crate) mod rules;

use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, Subcommand};
use claw_core::port::{Clock as _, UnixMillis};
use claw_core::store::{Answer, Approval, ApprovalState, StoreError};
use claw_core::{ApprovalId, TenantId};
use claw_host::SystemClock;
use claw_registry::CallScrubber;
use claw_store::Backend;
use serde_json::Value;

use super::ledger::time;
use crate::caller;
use crate::cli::Session;
use crate::compose;
use crate::config::Loaded;
use crate::failure::{Failure, Outcome};
use crate::output::{Cell, Table};

/// How much of an id says which question is meant: its whole time, to the millisecond.
const CLEAR: usize = "019b7611-3c00".len();

/// What to do with questions.
#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the questions that wait for an answer, oldest first.
    #[command(after_help = "Examples:
  clawsmith approvals list
  clawsmith approvals list --json")]
    List,
    /// Show one question: what would be done, by whom, and which rule asks.
    #[command(after_help = "Examples:
  clawsmith approvals show 019b7611-3c00-7b4e-9b0a-52a4c3f1d7e8")]
    Show(Question),
    /// Say yes: the call that waits may run, once and as it was shown. With `--always` a rule is remembered too.
    #[command(
        after_help = "Of the id at least 13 characters are needed: fewer name all questions of about a \
minute, and so perhaps another one than you saw.

Exit code 1 where the question is over already: the first answer stands.

Examples:
  clawsmith approvals approve 019b7611-3c00-7b4e-9b0a-52a4c3f1d7e8
  clawsmith approvals approve 019b7611-3c00 --always
  clawsmith approvals approve 019b7611-3c00 --always --scope agent --expires 7d"
    )]
    Approve(Yes),
    /// Say no: the call that waits is refused.
    #[command(after_help = "Exit code 1 where the question is over already: the first answer stands.

Examples:
  clawsmith approvals deny 019b7611")]
    Deny(Question),
    /// List the rules that were given with a yes.
    #[command(after_help = "Examples:
  clawsmith approvals rules
  clawsmith approvals rules --all --json")]
    Rules(rules::List),
    /// End a rule: what it covered is asked again.
    #[command(after_help = "Examples:
  clawsmith approvals revoke 019b7611")]
    Revoke(rules::Revoke),
}

/// Which question, and what kind of yes.
#[derive(Debug, Args)]
pub(crate) struct Yes {
    #[command(flatten)]
    question: Question,
    #[command(flatten)]
    kind: rules::Kind,
}

/// Which question.
#[derive(Debug, Args)]
pub(crate) struct Question {
    /// Its id, or the beginning of one where only one question that waits begins so.
    id: String,
}

impl Approvals {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let loaded = session.load()?;
        let scrubber = compose::scrubbers(&loaded.config, &session.around)?.for_tenant(&loaded.config.tenant);
        match self {
            Self::List => list(session, &loaded, &scrubber),
            Self::Show(question) => {
                let found = of_store(session, &loaded, async |store| {
                    let Some(found) = question.find(store, &loaded).await? else { return Ok(None) };
                    let always = rules::preview(store, &found).await.map_err(unusable)?;
                    Ok(Some((found, always)))
                })?;
                let (found, always) = found.ok_or_else(|| question.unknown())?;
                show(session, (&found, &always), &scrubber)
            }
            Self::Approve(Yes { question, kind }) => {
                question.answer(session, &loaded, Some(&kind), &scrubber)
            }
            Self::Deny(question) => question.answer(session, &loaded, None, &scrubber),
            Self::Rules(list) => list.run(session, &loaded, &scrubber),
            Self::Revoke(revoke) => revoke.run(session, &loaded),
        }
    }
}

impl Question {
    /// Says yes of a kind, or no.
    fn answer(
        &self,
        session: &mut Session,
        loaded: &Loaded,
        yes: Option<&rules::Kind>,
        scrubber: &CallScrubber,
    ) -> Outcome {
        let by = caller::user_of(&session.around).map_err(|error| Failure::usage(error.to_string()))?;
        let answer = Answer { approve: yes.is_some(), by: by.to_string(), at: SystemClock.now() };
        let answered = of_store(session, loaded, async |store| {
            let tenant = &loaded.config.tenant;
            if yes.is_some() {
                self.must_be_clear(store, tenant).await?;
            }
            let Some(found) = self.find(store, loaded).await? else { return Ok(None) };
            let rule = match yes {
                Some(kind) => kind.rule(&found, &answer.by, answer.at)?,
                None => None,
            };
            let given = rule.as_ref().map(|rule| (rule.id, rule.text.clone(), rule.scope.to_string()));
            let answered = match rule {
                Some(rule) => store.answer_with_rule(tenant, found.id, answer, rule).await,
                None => store.answer(tenant, found.id, answer).await,
            };
            answered.map(|answered| Some((answered, given))).map_err(|error| match error {
                StoreError::ApprovalState { id, state } => {
                    Failure::failed(format!("question `{id}` is {state} already, and that stands"))
                        .hint(format!("clawsmith approvals show {id}"))
                }
                error => unusable(error),
            })
        })?;
        let (answered, given) = answered.ok_or_else(|| self.unknown())?;
        let what = in_short(&answered, scrubber);
        if session.out.json {
            let Approval { id, state, request, .. } = &answered;
            let mut json =
                serde_json::json!({ "id": id, "state": state, "tool": request.tool, "what": what });
            if let Some((id, text, _)) = given {
                json["rule"] = serde_json::json!({ "id": id, "covers": text });
            }
            session.out.json(&json)?;
        } else {
            let Approval { id, state, request, .. } = &answered;
            session.out.line(format_args!("{state}: `{}` ({id})", request.tool))?;
            session.out.foreign(&format!("  {what}"))?;
            if let Some((id, text, scope)) = given {
                session.out.foreign(&format!("remembered for {scope}: {text}"))?;
                session.out.line(format_args!("  to end it: clawsmith approvals revoke {id}"))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Fails where so little of an id is given that it names whatever was asked about that time: who saw one question
    /// must not say yes to another that came in its place.
    async fn must_be_clear(&self, store: &Arc<dyn Backend>, tenant: &TenantId) -> Result<(), Failure> {
        if self.id.len() >= CLEAR {
            return Ok(());
        }
        let waiting = self.waiting(store, tenant).await?;
        if waiting.is_empty() {
            return Err(self.unknown());
        }
        let begin: Vec<String> =
            waiting.iter().map(|one| format!("\n  {}  `{}`", one.id, one.request.tool)).collect();
        Err(Failure::usage(format!(
            "`{}` is too little of an id to say yes to: give at least {CLEAR} characters. These begin so:{}",
            self.id,
            begin.concat()
        ))
        .hint("clawsmith approvals show ID, then clawsmith approvals approve ID"))
    }

    /// The questions that wait and whose ids begin so.
    async fn waiting(&self, store: &Arc<dyn Backend>, tenant: &TenantId) -> Result<Vec<Approval>, Failure> {
        let mut waiting = store.pending(tenant, SystemClock.now()).await.map_err(unusable)?;
        let beginning = self.id.to_lowercase();
        waiting.retain(|approval| !beginning.is_empty() && approval.id.to_string().starts_with(&beginning));
        Ok(waiting)
    }

    /// The question that is meant: any of this id, or the one that waits and begins so.
    async fn find(&self, store: &Arc<dyn Backend>, loaded: &Loaded) -> Result<Option<Approval>, Failure> {
        let tenant = &loaded.config.tenant;
        if let Ok(id) = self.id.parse::<ApprovalId>() {
            return store.approval(tenant, id).await.map_err(unusable);
        }
        let mut waiting = self.waiting(store, tenant).await?;
        match waiting.len() {
            0 | 1 => Ok(waiting.pop()),
            count => Err(Failure::usage(format!("`{}` begins the ids of {count} questions", self.id))
                .hint("clawsmith approvals list, and give more of the id")),
        }
    }

    fn unknown(&self) -> Failure {
        Failure::usage(format!("no question `{}` waits", self.id)).hint("clawsmith approvals list")
    }
}

fn list(session: &mut Session, loaded: &Loaded, scrubber: &CallScrubber) -> Outcome {
    let now = SystemClock.now();
    let waiting = of_store(session, loaded, async |store| {
        store.pending(&loaded.config.tenant, now).await.map(Some).map_err(unusable)
    })?;
    let waiting = waiting.unwrap_or_default();
    if session.out.json {
        let waiting = waiting.iter().map(|one| clean(one, scrubber)).collect::<Result<Vec<_>, _>>()?;
        session.out.json(&waiting)?;
        return Ok(ExitCode::SUCCESS);
    }
    if waiting.is_empty() {
        session.out.line("no question waits")?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["id", "left", "session", "agent", "tool", "effects", "what"]);
    for approval in &waiting {
        let Approval { id, request, .. } = approval;
        table.row([
            Cell::strong(id),
            Cell::quiet(left(request.expires, now)),
            Cell::new(&request.session),
            Cell::new(&request.agent),
            Cell::strong(&request.tool),
            Cell::warning(request.effects),
            Cell::new(in_short(approval, scrubber)),
        ]);
    }
    session.out.table(&table)?;
    Ok(ExitCode::SUCCESS)
}

/// What a question is about, on one line.
fn in_short(approval: &Approval, scrubber: &CallScrubber) -> String {
    let what = scrubber.text(&approval.request.summary);
    let what = what.lines().map(str::trim).collect::<Vec<_>>().join("; ");
    super::ledger::shortened(&what.replace(":; ", ": "))
}

fn show(
    session: &mut Session,
    (approval, always): (&Approval, &[(&'static str, String)]),
    scrubber: &CallScrubber,
) -> Outcome {
    if session.out.json {
        session.out.json(&clean(approval, scrubber)?)?;
        return Ok(ExitCode::SUCCESS);
    }
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
        ("tool", Some(request.tool.to_string())),
        ("effects", Some(request.effects.to_string())),
        ("why", Some(scrubber.text(&request.reason))),
        ("agent", Some(format!("{}{user}, in {}", request.agent, request.session))),
        ("asked", Some(time(request.asked))),
    ];
    for (name, value) in lines {
        if let Some(value) = value {
            session.out.field(name, &value)?;
        }
    }
    for (i, line) in scrubber.text(&request.summary).lines().enumerate() {
        session.out.foreign(&format!("{:<11}{line}", if i == 0 { "what" } else { "" }))?;
    }
    for (name, line) in always {
        session.out.field(name, &scrubber.text(line))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets `ask` ask the store, if there is one: without it nobody has asked anything.
pub(crate) fn of_store<T>(
    session: &Session,
    loaded: &Loaded,
    ask: impl AsyncFnOnce(&Arc<dyn Backend>) -> Result<Option<T>, Failure>,
) -> Result<Option<T>, Failure> {
    compose::with_existing_store(loaded, &session.around, ask).map(Option::flatten)
}

fn clean(approval: &Approval, scrubber: &CallScrubber) -> Result<Value, Failure> {
    Ok(scrubber.json(&serde_json::to_value(approval)?))
}

fn left(expires: UnixMillis, now: UnixMillis) -> String {
    format!("{} s", expires.since(now).as_secs())
}

pub(crate) fn unusable(error: StoreError) -> Failure {
    Failure::failed("the questions cannot be read or answered").because(error).hint("clawsmith db status")
}
