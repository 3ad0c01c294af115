//! Programs with credentials that run nothing: each prints its variable.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use claw_core::port::{HostRan, ProgramHost, ProgramRun, Ran, Registered, RunContext, UnixMillis};
use claw_core::store::{ProgramCard, ProgramPlace, ProgramSettings, StoreError};
use claw_core::tool::{ErrorKind, Sight, Target, ToolError};
use claw_core::{AgentId, ProgramName, TenantId};

/// A fake host of programs, for one agent of one tenant.
#[derive(Debug)]
pub struct FakePrograms {
    tenant: TenantId,
    agent: AgentId,
    value: String,
    programs: Mutex<Registered>,
    identity: Mutex<String>,
    runs: Mutex<Vec<Vec<String>>>,
}

impl FakePrograms {
    /// Programs of an agent, each of which has this value as its credential.
    pub fn new(tenant: TenantId, agent: AgentId, value: impl Into<String>) -> Self {
        Self {
            tenant,
            agent,
            value: value.into(),
            programs: Mutex::default(),
            identity: Mutex::new("as it was".to_owned()),
            runs: Mutex::default(),
        }
    }

    /// Registers a program, in place of all others, which refuses these arguments.
    pub fn register(&self, name: &str, deny_args: &[&str]) {
        let name = ProgramName::new(name).expect("a name of a program");
        let mut settings = ProgramSettings::new(format!("/usr/bin/{name}"));
        settings.deny_args = deny_args.iter().map(ToString::to_string).collect();
        let place = ProgramPlace { tenant: self.tenant.clone(), agent: None, name };
        let card = ProgramCard { place, settings, variables: vec!["TOKEN".to_owned()], at: UnixMillis(1) };
        *self.programs.lock().unwrap() = vec![Arc::new(card)].into();
    }

    /// Changes the identity of every program's file.
    pub fn swap(&self, identity: &str) {
        identity.clone_into(&mut self.identity.lock().unwrap());
    }

    /// Returns the words of the runs so far.
    pub fn runs(&self) -> Vec<Vec<String>> {
        self.runs.lock().unwrap().clone()
    }
}

#[async_trait]
impl ProgramHost for FakePrograms {
    async fn programs(&self, tenant: &TenantId, agent: &AgentId) -> Result<Registered, StoreError> {
        let its = *tenant == self.tenant && *agent == self.agent;
        Ok(if its { Arc::clone(&self.programs.lock().unwrap()) } else { Registered::default() })
    }

    async fn look(&self, _: &RunContext, run: &ProgramRun) -> Result<Vec<Sight>, ToolError> {
        let target = Target::Program { name: run.word.clone(), directory: run.directory.clone() };
        let identity = Some(self.identity.lock().unwrap().clone());
        let credential = Some(run.program.place.name.as_str().into());
        Ok(vec![Sight {
            target,
            path: Some(run.program.settings.binary.clone()),
            identity,
            credential,
            writable: false,
        }])
    }

    async fn run(&self, context: &RunContext, run: &ProgramRun) -> Result<HostRan, ToolError> {
        if self.look(context, run).await? != context.sights {
            return Err(ToolError::new(ErrorKind::Conflict, "it changed since the call was judged"));
        }
        context.secrets.add(self.value.as_str());
        let words = std::iter::once(&run.word).chain(&run.arguments).cloned().collect();
        self.runs.lock().unwrap().push(words);
        let output = format!("the token is {}\n", self.value);
        context.progress.tell(&output);
        Ok(Ran { exit: Some(0), output, ..Ran::default() }.into())
    }
}
