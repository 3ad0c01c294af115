//! A server's requests for input, put to the person behind a call.

use claw_core::port::{InputAnswer, InputForm, InputRequest};
use claw_core::tool::{Call, ToolError};
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest as WireRequest, InputRequests,
    InputResponses,
};
use serde_json::Value;

use crate::handler::Watcher;

/// Puts a server's request to the person behind a call.
pub(crate) async fn ask(
    call: &Call,
    server: &str,
    params: ElicitRequestParams,
) -> Result<ElicitResult, ToolError> {
    let (message, form) = match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let schema = serde_json::to_value(requested_schema).unwrap_or_default();
            (message, InputForm::Form { schema })
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => (message, InputForm::Url { url }),
        _ => return Ok(ElicitResult::new(ElicitationAction::Decline)),
    };
    let has_values = matches!(form, InputForm::Form { .. });
    let answer = call.inputs()?.ask(InputRequest { server: server.to_owned(), message, form }).await?;
    Ok(match answer {
        InputAnswer::Accepted(values) if has_values => {
            ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values))
        }
        InputAnswer::Accepted(_) => ElicitResult::new(ElicitationAction::Accept),
        InputAnswer::Declined => ElicitResult::new(ElicitationAction::Decline),
        InputAnswer::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
    })
}

/// Answers the requests that stand in a result of the newer protocol, in the order of their names. The error says which of
/// them is not answered here.
pub(crate) async fn answer_all(
    call: &Call,
    server: &str,
    watcher: &Watcher,
    requests: InputRequests,
) -> Result<InputResponses, ToolError> {
    let mut responses = InputResponses::new();
    for (name, request) in requests {
        let answer = match request {
            WireRequest::Elicitation(request) => {
                serde_json::to_value(ask(call, server, request.params).await?)
            }
            WireRequest::ListRoots(_) => serde_json::to_value(watcher.roots()),
            _ => {
                let message = format!(
                    "MCP server `{server}` requested the use of a model (sampling), which was declined"
                );
                return Err(ToolError::failed(message));
            }
        };
        responses.insert(name, answer.unwrap_or_default());
    }
    Ok(responses)
}
