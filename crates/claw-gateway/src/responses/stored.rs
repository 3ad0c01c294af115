//! A response that was made before: its run, as the session has it.

use clawsmith::app::{Error, is_client_tool};
use clawsmith::message::{Part, Turn};
use clawsmith::store::{Circle, Job, JobState, Message, MessagePage, Role, UsageFilter};

use super::view::{OutputItem, OutputText, ResponseFault, ResponseView, message_item};
use super::{PREFIX, unknown};
use crate::answering::{AnswerItem, call_of};
use crate::api::{Json, Path, Visit};
use crate::client_tools::ToolCall;
use crate::error::ApiError;
use crate::sessions::{agent_in, own_run};

/// How many messages are read at a time, and the most that are looked at.
const READ: usize = 100;
const MOST_LOOKED_AT: usize = 10_000;

pub(crate) async fn get(visit: Visit, Path(id): Path<String>) -> Result<Json<ResponseView>, ApiError> {
    let run = id.strip_prefix(PREFIX).and_then(|run| run.parse().ok()).ok_or_else(|| unknown(&id))?;
    let job = own_run(&visit, run).await.map_err(|_| unknown(&id))?;
    let output = output(&visit, &job).await?;
    let usage = UsageFilter { root: Some(run), ..UsageFilter::default() };
    let usage = visit.app().store().usage(&visit.visitor().tenant, &usage).await.map_err(Error::from)?;
    let (status, error) = match job.state {
        JobState::Pending => ("queued", None),
        JobState::Leased | JobState::Parked => ("in_progress", None),
        JobState::Done => ("completed", None),
        JobState::Cancelled => ("cancelled", None),
        JobState::Dead => {
            let message = job.error.clone().unwrap_or_else(|| "the run failed".to_owned());
            ("failed", Some(ResponseFault { code: "server_error", message }))
        }
    };
    let agent = job.new.session.as_ref().map(|session| agent_in(session.as_str())).transpose()?;
    let model = agent.map_or_else(|| "clawsmith".to_owned(), |agent| format!("agent:{agent}"));
    let created_at = u64::try_from(job.new.accepted.0 / 1000).unwrap_or(0);
    let mut view = ResponseView::new(id, created_at, model);
    (view.status, view.error, view.output) = (status, error, output);
    view.usage = job.state.is_over().then(|| usage.tokens.into());
    Ok(Json(view))
}

/// The messages and calls of a run.
async fn output(visit: &Visit, job: &Job) -> Result<Vec<OutputItem>, ApiError> {
    let mut output: Vec<OutputItem> = Vec::new();
    let scrubber = visit.sessions().deployment().executor.scrubbers().for_tenant(&visit.visitor().tenant);
    for message in messages(visit, job).await? {
        let parts: Vec<Part> =
            serde_json::from_value(scrubber.json(&message.new.content)).unwrap_or_default();
        let turn = Turn { role: message.new.role, parts };
        let words = turn.words();
        if turn.role == Role::Assistant && !words.is_empty() {
            let (id, content) = (message_item(job.new.id, output.len()), vec![OutputText::new(&words)]);
            output.push(OutputItem::Message { id, role: "assistant", status: "completed", content });
        }
        for told in turn.parts.iter().filter_map(call_of) {
            match told {
                AnswerItem::Call { id, tool, args } if is_client_tool(job, &tool) => {
                    output.push(OutputItem::handed(ToolCall::new(job.new.id, id, tool, args)));
                }
                AnswerItem::Call { id, tool, args } => output.push(OutputItem::begun(id, tool, args)),
                AnswerItem::Result { id, text, failed } => {
                    for item in &mut output {
                        item.end(id, &text, failed);
                    }
                }
                AnswerItem::Words(_) | AnswerItem::Handed(_) | AnswerItem::End(_) | AnswerItem::Failed(_) => {
                }
            }
        }
    }
    Ok(output)
}

/// The messages of a run, oldest first.
async fn messages(visit: &Visit, job: &Job) -> Result<Vec<Message>, ApiError> {
    let Some(session) = &job.new.session else { return Ok(Vec::new()) };
    let (app, tenant) = (visit.app(), &visit.visitor().tenant);
    let circle = Circle::Session(session.clone());
    let (mut found, mut before, mut looked_at) = (Vec::new(), u64::MAX >> 1, 0);
    while looked_at < MOST_LOOKED_AT {
        let page = MessagePage { before, limit: READ };
        let page = app.store().said_in(tenant, &circle, session, page).await.map_err(Error::from)?;
        let page = page.unwrap_or_default();
        let Some(first) = page.first() else { break };
        // Nothing of a run is older than its question.
        let is_over = page.len() < READ || first.new.at < job.new.accepted;
        (before, looked_at) = (first.seq, looked_at + page.len());
        found.extend(page.into_iter().rev().filter(|message| message.run == job.new.id));
        if is_over {
            break;
        }
    }
    found.reverse();
    Ok(found)
}
