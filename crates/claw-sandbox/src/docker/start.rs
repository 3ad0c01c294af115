//! Starting a command in a container that is not waited for.

use claw_core::port::{Child, Program, RunContext, Start};
use claw_core::tool::{ErrorKind, ToolError};

use super::access::{cannot_hold, reading};
use super::aftermath::Aftermath;
use super::child::Starting;
use super::container::Container;
use super::flow::WINDOW;
use super::shell::{PLACE, refused};
use super::this_program::Own;
use super::wire::Order;
use super::{DockerCommand, DockerError, DockerShell};

impl DockerShell {
    /// Starts the command in the judged sandbox, with its extra grants.
    pub(super) async fn started(&self, context: &RunContext, start: &Start) -> Result<Child, ToolError> {
        let own = Own::find().await.map_err(refused)?;
        let image = self.engine.image(&self.options.image).await.map_err(refused)?;
        let judged = self.container_of(context, &own, image.clone(), &[]).await.map_err(refused)?;
        self.compare(context, &judged)?;
        let context = &RunContext { network: context.network || start.network, ..context.clone() };
        let container =
            self.container_of(context, &own, image.clone(), &start.paths).await.map_err(refused)?;
        let mut command = match &start.program {
            Program::Script(script) => DockerCommand::script(script),
            Program::Argv(argv) => DockerCommand::argv(argv),
        };
        (command.terminal, command.apart) = (start.terminal, start.apart && start.terminal.is_none());
        let starting = async {
            match self.start_in(context, own.clone(), &container, command.clone()).await {
                Err(error) if cannot_hold(&error) => {
                    let reading = &reading(context);
                    let container = self.container_of(reading, &own, image, &start.paths).await?;
                    self.start_in(reading, own, &container, command).await
                }
                child => child,
            }
        };
        tokio::select! {
            child = starting => child.map_err(|error| self.told(context, error)),
            () = context.cancel.cancelled() => {
                Err(ToolError::new(ErrorKind::Cancelled, "the command was cancelled before it began"))
            }
        }
    }

    /// Starts the command. If this future is dropped, whatever was started ends.
    async fn start_in(
        &self,
        context: &RunContext,
        own: Own,
        container: &Container,
        command: DockerCommand,
    ) -> Result<Child, DockerError> {
        let (apart, terminal) = (command.apart, command.terminal.is_some());
        let mut running = self.running(context, container, command);
        (running.input, running.window) = (true, Some(WINDOW));
        let order = Order::Run(Box::new(running));
        let (ear, mouth) = self.pool.order(&own, container, &order).await?;
        let aftermath = Aftermath { engine: self.engine.clone(), own, container: container.name.clone() };
        Starting { ear, mouth, apart, terminal, aftermath }.child(PLACE).await
    }
}
