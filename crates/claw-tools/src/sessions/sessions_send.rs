//! `sessions_send`: sends a message into another session of the caller, to be answered there.

use claw_core::tool::{Ask, Call, Cost, Effect, Facts, Group, Meta, Need, Output, Plan, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

/// The longest message.
const MOST_BYTES: usize = 32 * 1024;

#[derive(Default)]
pub(crate) struct SessionsSend;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// Key of the session, as `sessions_list` shows it; not this one.
    session_key: String,
    /// Text to send.
    #[schemars(length(min = 1, max = 32768))]
    message: String,
}

impl Tool for SessionsSend {
    type Args = Args;
    const META: Meta = Meta::new("sessions_send", Group::Sessions)
        .effects(&[Effect::Write, Effect::Message, Effect::Spawn])
        .cost(Cost::Heavy)
        .needs(&[Need::Talks])
        .about(
            "Send a message into another session of `sessions_list`. That session answers it \
             later; read the answer with `sessions_history`.",
        );

    fn plan(&self, _: &Facts, args: &Args) -> Plan {
        Plan::of(&Self::META).asking(Ask::Session { session: args.session_key.clone(), sends: true })
    }

    async fn run(&self, call: &Call, args: Args) -> Result<Output, ToolError> {
        let session = super::session(&args.session_key)?;
        let text = args.message.trim();
        if text.is_empty() {
            return Err(ToolError::invalid("the message is empty").try_instead("say something"));
        }
        if text.len() > MOST_BYTES {
            let message = format!("a message of {} bytes is longer than {MOST_BYTES}", text.len());
            return Err(ToolError::invalid(message).try_instead("put it into a file and name the file"));
        }
        let posted = call.talks()?.send(&session, text).await?;
        let before = match posted.before {
            0 => "it is the next to be answered there".to_owned(),
            before => format!("{before} wait there before it"),
        };
        let text = format!("message #{} of session {session} is accepted; {before}", posted.seq);
        Ok(Output::text(text).with_details(json!({ "session": session, "posted": posted })))
    }
}

#[cfg(test)]
mod tests;
