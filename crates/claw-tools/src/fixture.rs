//! The fixture of tool tests: a call by `ana` through agent `main`, at a fixed time.

mod graph;
mod remembering;
mod skills;
mod talking;

use std::sync::Arc;

use claw_core::port::{Clock, Ports, UnixMillis};
use claw_core::tool::{Call, CallParts, Caller, ErrorKind, Output, Progress, Spec, Tool, ToolError};
use claw_core::{AgentId, CallId, SessionKey, UserId};
use serde::Deserialize as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub(crate) use self::graph::OneGraph;
pub(crate) use self::remembering::Remembering;
pub(crate) use self::skills::OneSkill;
pub(crate) use self::talking::Talking;

/// Sunday 2026-11-15, 08:30 UTC.
pub(crate) const NOW: UnixMillis = UnixMillis(1_794_731_400_000);

struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> UnixMillis {
        NOW
    }
}

/// A caller and the ports of one call; tests change the parts that they are about.
pub(crate) struct Fixture {
    pub(crate) caller: Caller,
    pub(crate) ports: Ports,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        let agent = AgentId::new("main").unwrap();
        let session = SessionKey::new("cli:ana").unwrap();
        let mut caller = Caller::new(agent, session, "/home/ana/project");
        caller.user = Some(UserId::new("ana").unwrap());
        Self { caller, ports: Ports::new(Arc::new(FixedClock)) }
    }

    pub(crate) async fn run<T: Tool + Default>(self, args: Value) -> Result<Output, ToolError> {
        let args = T::Args::deserialize(args).unwrap();
        let call = Call::new(CallParts {
            id: CallId::new(),
            model_id: None,
            facts: Arc::new(self.caller.facts(T::META.name.as_str())),
            caller: Arc::new(self.caller),
            cancel: CancellationToken::new(),
            progress: Progress::silent(),
            ports: self.ports,
        });
        T::default().run(&call, args).await
    }
}

/// The text that the model reads after success.
#[track_caller]
pub(crate) fn text(result: Result<Output, ToolError>) -> String {
    result.unwrap().model_text()
}

/// The text that the model reads after a failure of this kind.
#[track_caller]
pub(crate) fn failure(result: Result<Output, ToolError>, kind: ErrorKind) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind, kind, "{error}");
    error.for_model()
}

/// The argument schema that the model is sent.
pub(crate) fn schema<T: Tool>() -> String {
    serde_json::to_string_pretty(&Spec::of::<T::Args>(&T::META).parameters).unwrap()
}
