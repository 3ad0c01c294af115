//! Spans of calls, for a collector. A call that is part of a run has its span in the trace of that run; any other is a trace of its
//! own.

use std::sync::Arc;

use claw_core::port::{Attribute, Span, SpanId, TraceId, Traces, UnixMillis};
use claw_core::tool::Caller;
use claw_schema::validate;

use crate::execute::Arguments;
use crate::reply::{CallError, Reply};
use crate::scrub::CallScrubber;

/// The place of a call's span, and what it says besides the reply.
#[derive(Debug)]
pub struct CallSpan<'a> {
    /// The trace.
    pub trace: TraceId,
    /// The span that the call is part of; `None` if it is a trace of its own.
    pub parent: Option<SpanId>,
    /// Time at which the call began.
    pub start: UnixMillis,
    /// The model's id of the call, if a model made it.
    pub model_id: Option<&'a str>,
    /// The arguments; `None` if traces carry no content. Then they carry no results either.
    pub arguments: Option<&'a str>,
}

impl CallSpan<'_> {
    /// Builds the span of a call that was handled; `None` if it waits for an approval: it has its span when it is made.
    pub fn ended(self, reply: &Reply, scrubber: &CallScrubber) -> Option<Span> {
        let kind = match &reply.outcome {
            Ok(_) => None,
            Err(CallError::Refused(_)) => Some("refused"),
            Err(CallError::Failed(_)) => Some("failed"),
            Err(CallError::Waiting(_)) => return None,
        };
        let text = |text: &str| Attribute::Text(scrubber.said(text));
        let mut attributes = vec![
            ("gen_ai.operation.name", text("execute_tool")),
            ("gen_ai.tool.name", text(&reply.tool)),
            ("gen_ai.tool.type", text("function")),
            ("clawsmith.call", text(&reply.call.to_string())),
        ];
        attributes.extend(self.model_id.map(|id| ("gen_ai.tool.call.id", text(id))));
        attributes.extend(kind.map(|kind| ("error.type", text(kind))));
        if let Some(arguments) = self.arguments {
            attributes.push(("gen_ai.tool.call.arguments", text(arguments)));
            attributes.push(("gen_ai.tool.call.result", text(&reply.model_text())));
        }
        let error = reply.outcome.as_ref().err().map(|error| match self.arguments {
            Some(_) => scrubber.said(&error.to_string()),
            // The message may quote what was called with.
            None => format!("the call was {}", kind.unwrap_or("failed")),
        });
        Some(Span {
            trace: self.trace,
            id: SpanId::of(*reply.call.as_bytes()),
            parent: self.parent,
            name: scrubber.said(&format!("execute_tool {}", reply.tool)),
            is_client: false,
            start: self.start,
            took: reply.took,
            attributes,
            error,
        })
    }
}

/// A call outside of any run that has begun, and whose span is wanted.
pub(crate) struct CallTrace {
    traces: Arc<dyn Traces>,
    start: UnixMillis,
    arguments: Option<String>,
}

impl CallTrace {
    /// Notes the start of a call; its arguments too, if spans carry content and they are within the limits.
    pub(crate) fn begin(
        traces: &Arc<dyn Traces>,
        start: UnixMillis,
        args: &Arguments,
        most_bytes: usize,
    ) -> Self {
        let arguments = traces.with_content().then(|| match args {
            Arguments::Text(text) if text.len() <= most_bytes => text.clone(),
            Arguments::Json(args) if validate::measure(args, most_bytes).is_ok() => args.to_string(),
            Arguments::Text(_) | Arguments::Json(_) => String::new(),
        });
        Self { traces: Arc::clone(traces), start, arguments }
    }

    /// Tells of the call.
    pub(crate) fn end(self, caller: &Caller, reply: &Reply, scrubber: &CallScrubber) {
        let place = CallSpan {
            trace: TraceId::of(*reply.call.as_bytes()),
            parent: None,
            start: self.start,
            model_id: None,
            arguments: self.arguments.as_deref(),
        };
        let Some(mut span) = place.ended(reply, scrubber) else { return };
        let text = |text: &str| Attribute::Text(scrubber.said(text));
        span.attributes.extend([
            ("gen_ai.agent.id", text(caller.agent.as_str())),
            ("gen_ai.conversation.id", text(caller.session.as_str())),
            ("clawsmith.tenant", text(caller.tenant.as_str())),
            ("clawsmith.channel", text(&caller.channel)),
        ]);
        self.traces.ended(span);
    }
}
