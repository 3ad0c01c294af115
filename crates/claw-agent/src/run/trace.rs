//! Spans of a run, its questions to the model and its calls, if traces are wanted.
//!
//! Ids are made of what is stored, so that a run that waited for an approval, or changed its process, goes on in the same trace:
//! the trace is the root run, the first span of a run is the run, the span of an answer is its first call, and that of a call is
//! the call. A run that goes on after a break has a further span below its first.

use std::sync::Arc;
use std::time::Instant;

use claw_core::message::{Args, Part, Turn, Wanted};
use claw_core::port::{
    Answer, Attribute, ModelError, Question, Span, SpanId, Stop, TraceId, Traces, UnixMillis,
};
use claw_core::store::Job;
use claw_core::{CallId, MessageId};
use claw_registry::{CallScrubber, CallSpan, Reply};

use super::{Run, Went};
use crate::{Deployment, RunError};

/// Where the spans of one attempt at a run belong.
#[derive(Clone)]
pub(super) struct Tracing {
    traces: Arc<dyn Traces>,
    scrubber: CallScrubber,
    trace: TraceId,
    /// The span of this attempt, and the one that it is part of.
    own: SpanId,
    parent: Option<SpanId>,
}

/// A span that has begun.
pub(super) struct Begun {
    start: UnixMillis,
    instant: Instant,
}

impl Tracing {
    /// The place of an attempt at a run; `None` if no traces are wanted.
    pub(super) fn of(deployment: &Deployment, job: &Job, attempt: u32) -> Option<Self> {
        let traces = Arc::clone(deployment.traces.as_ref()?);
        let scrubber = deployment.executor.scrubbers().for_tenant(&job.new.tenant);
        let run = SpanId::of(*job.new.id.as_bytes());
        let above = job.new.lineage.map(|lineage| SpanId::of(*lineage.parent.as_bytes()));
        let (own, parent) = match attempt {
            ..=1 => (run, above),
            _ => (SpanId::of(*MessageId::new().as_bytes()), Some(run)),
        };
        Some(Self { traces, scrubber, trace: TraceId::of(*job.new.root().as_bytes()), own, parent })
    }

    fn text(&self, text: &str) -> Attribute {
        Attribute::Text(self.scrubber.said(text))
    }

    /// A provider's message may quote what it was asked.
    fn fault(&self, error: &ModelError) -> String {
        if self.traces.with_content() { error.to_string() } else { error.fault.to_string() }
    }

    fn end(&self, mut span: Span) {
        span.name = self.scrubber.said(&span.name);
        span.error = span.error.map(|error| self.scrubber.said(&error));
        self.traces.ended(span);
    }
}

impl Run<'_> {
    /// Begins a span; `None` if no traces are wanted.
    pub(super) fn begin(&self) -> Option<Begun> {
        self.tracing.as_ref()?;
        Some(Begun { start: self.deployment.clock.now(), instant: Instant::now() })
    }

    /// Tells of an attempt at the run.
    pub(super) fn trace_run(&self, begun: Option<Begun>, went: &Result<Went, RunError>) {
        let (Some(tracing), Some(begun)) = (&self.tracing, begun) else { return };
        let agent = self.caller.agent.as_str();
        let state = match went {
            Ok(Went::Ended) => "ended",
            Ok(Went::Parked(_)) => "parked",
            Err(_) => "failed",
        };
        let card = self.model.card();
        let mut attributes = vec![
            ("gen_ai.operation.name", tracing.text("invoke_agent")),
            ("gen_ai.agent.id", tracing.text(agent)),
            ("gen_ai.conversation.id", tracing.text(self.caller.session.as_str())),
            ("gen_ai.provider.name", tracing.text(&card.provider)),
            ("gen_ai.request.model", tracing.text(&card.model)),
            ("clawsmith.tenant", tracing.text(self.caller.tenant.as_str())),
            ("clawsmith.run", tracing.text(&self.lease.job.to_string())),
            ("clawsmith.run.attempt", Attribute::Number(self.lease.attempt.into())),
            ("clawsmith.run.state", tracing.text(state)),
        ];
        let error = went.as_ref().err().map(|error| match error {
            RunError::Model(error) => tracing.fault(error),
            error => error.to_string(),
        });
        if error.is_some() {
            attributes.push(("error.type", tracing.text("run_failed")));
        }
        tracing.end(Span {
            trace: tracing.trace,
            id: tracing.own,
            parent: tracing.parent,
            name: format!("invoke_agent {agent}"),
            is_client: false,
            start: begun.start,
            took: begun.instant.elapsed(),
            attributes,
            error,
        });
    }

    /// Tells of a question to the model; without an answer, nobody waited for it any more.
    pub(super) fn trace_answer(
        &self,
        begun: Option<Begun>,
        answer: Option<(&Question, &Result<Answer, ModelError>)>,
    ) {
        let (Some(tracing), Some(begun)) = (&self.tracing, begun) else { return };
        let card = self.model.card();
        let mut attributes = vec![
            ("gen_ai.operation.name", tracing.text("chat")),
            ("gen_ai.provider.name", tracing.text(&card.provider)),
            ("gen_ai.request.model", tracing.text(&card.model)),
            ("gen_ai.conversation.id", tracing.text(self.caller.session.as_str())),
        ];
        let mut id = SpanId::of(*MessageId::new().as_bytes());
        let error = match answer {
            Some((question, Ok(answer))) => {
                id = calls(&answer.parts).next().map_or(id, span_of);
                attributes.extend(answered(tracing, answer));
                if tracing.traces.with_content() {
                    attributes.push(("gen_ai.input.messages", tracing.text(&json(&question.turns))));
                    attributes.push(("gen_ai.output.messages", tracing.text(&json(&answer.parts))));
                }
                None
            }
            Some((_, Err(error))) => {
                attributes.push(("error.type", tracing.text(&error.fault.to_string().replace(' ', "_"))));
                Some(tracing.fault(error))
            }
            None => {
                attributes.push(("error.type", tracing.text("cancelled")));
                Some("the request was cancelled".to_owned())
            }
        };
        tracing.end(Span {
            trace: tracing.trace,
            id,
            parent: Some(tracing.own),
            name: format!("chat {}", card.model),
            is_client: true,
            start: begun.start,
            took: begun.instant.elapsed(),
            attributes,
            error,
        });
    }

    /// Tells of a call that the executor has handled. It is part of the answer that asked for it.
    pub(super) fn trace_call(&self, begun: &Begun, wanted: &Wanted, reply: &Reply) {
        let Some(tracing) = &self.tracing else { return };
        let arguments = tracing.traces.with_content().then(|| match &wanted.args {
            Args::Json(args) => args.to_string(),
            Args::Broken { text, .. } => text.clone(),
        });
        let place = CallSpan {
            trace: tracing.trace,
            parent: Some(self.asked_by(wanted.call).unwrap_or(tracing.own)),
            start: begun.start,
            model_id: Some(&wanted.model_id),
            arguments: arguments.as_deref(),
        };
        if let Some(span) = place.ended(reply, &tracing.scrubber) {
            tracing.traces.ended(span);
        }
    }

    /// The span of the answer that asked for a call.
    fn asked_by(&self, call: CallId) -> Option<SpanId> {
        let of_call = |turn: &&Turn| turn.calls().any(|wanted| wanted.call == call);
        let turn = self.history.of_run().iter().find(of_call)?;
        calls(&turn.parts).next().map(span_of)
    }
}

fn answered(tracing: &Tracing, answer: &Answer) -> Vec<(&'static str, Attribute)> {
    let tokens = answer.tokens;
    let stop = match answer.stop {
        Stop::Done => "stop",
        Stop::Calls => "tool_calls",
        Stop::Length => "length",
        Stop::Refused => "content_filter",
    };
    vec![
        ("gen_ai.response.model", tracing.text(&answer.model)),
        ("gen_ai.response.finish_reasons", Attribute::Texts(vec![stop.to_owned()])),
        (
            "gen_ai.usage.input_tokens",
            Attribute::Number(tokens.input + tokens.cache_read + tokens.cache_write),
        ),
        ("gen_ai.usage.output_tokens", Attribute::Number(tokens.output)),
        ("gen_ai.usage.cache_read.input_tokens", Attribute::Number(tokens.cache_read)),
        ("gen_ai.usage.cache_creation.input_tokens", Attribute::Number(tokens.cache_write)),
    ]
}

fn calls(parts: &[Part]) -> impl Iterator<Item = CallId> {
    parts.iter().filter_map(|part| match part {
        Part::Call(wanted) => Some(wanted.call),
        _ => None,
    })
}

fn span_of(call: CallId) -> SpanId {
    SpanId::of(*call.as_bytes())
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
