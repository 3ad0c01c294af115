//! Opening the application for one command, and printing its result: a value for programs, words for people.

use std::path::Path;
use std::process::ExitCode;

use claw_terminal::{Column, Out};
use clawsmith::app::{App, Setup};
use serde::Serialize;
use tokio::runtime::Runtime;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

/// Creates a runtime on this thread alone: one command makes one call.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::failed("the runtime could not be started").because(error))
}

/// Runs `work` with the application open; creates the store if there is none.
pub(crate) fn with_app<T>(
    setup: &Setup,
    work: impl AsyncFnOnce(&App) -> Result<T, Failure>,
) -> Result<T, Failure> {
    run_with_app(&runtime()?, setup, work)
}

/// Like [`with_app`], with a thread for each processor: many clients are served at once.
pub(crate) fn with_serving_app<T>(
    setup: &Setup,
    work: impl AsyncFnOnce(&App) -> Result<T, Failure>,
) -> Result<T, Failure> {
    claw_sandbox::limit_heaps();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| Failure::failed("the runtime could not be started").because(error))?;
    run_with_app(&runtime, setup, work)
}

fn run_with_app<T>(
    runtime: &Runtime,
    setup: &Setup,
    work: impl AsyncFnOnce(&App) -> Result<T, Failure>,
) -> Result<T, Failure> {
    runtime.block_on(async {
        let app = setup.open().await?;
        let done = work(&app).await;
        app.close().await;
        done
    })
}

/// Runs `work` if there is a store; otherwise returns `None` and creates nothing.
pub(crate) fn with_existing_app<T>(
    setup: &Setup,
    work: impl AsyncFnOnce(&App) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    runtime()?.block_on(async {
        let Some(app) = setup.open_existing().await? else { return Ok(None) };
        let done = work(&app).await;
        app.close().await;
        done.map(Some)
    })
}

impl Session {
    /// Does one operation of the application; creates the store if there is none.
    pub(crate) fn app<T, E: Into<Failure>>(
        &self,
        work: impl AsyncFnOnce(&App) -> Result<T, E>,
    ) -> Result<T, Failure> {
        with_app(&self.load()?, async |app| work(app).await.map_err(Into::into))
    }

    /// Does one operation if there is a store; otherwise returns `None` and creates nothing.
    pub(crate) fn existing_app<T, E: Into<Failure>>(
        &self,
        work: impl AsyncFnOnce(&App) -> Result<T, E>,
    ) -> Result<Option<T>, Failure> {
        with_existing_app(&self.load()?, async |app| work(app).await.map_err(Into::into))
    }

    /// The text of a file that the command line names.
    pub(crate) fn text_of(&self, file: &Path) -> Result<String, Failure> {
        let unread = |error| Failure::usage(format!("`{}` cannot be read", file.display())).because(error);
        std::fs::read_to_string(self.around.directory.join(file)).map_err(unread)
    }

    /// The value of an environment variable; `None` if it is not set, or not UTF-8.
    pub(crate) fn variable(&self, name: &str) -> Option<&str> {
        self.around.variable(name)?.to_str()
    }

    /// Tells the result of an operation: the value to programs, a sentence to people.
    pub(crate) fn told(&mut self, value: &impl Serialize, words: impl std::fmt::Display) -> Outcome {
        self.out.told(value, words)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Lists values: all of them to programs, a table to people, and `empty` where there are none.
    pub(crate) fn list<T: Serialize>(
        &mut self,
        values: &[T],
        empty: &str,
        columns: &[Column<'_, T>],
    ) -> Outcome {
        self.out.list(values, empty, columns)?;
        Ok(ExitCode::SUCCESS)
    }

    /// Shows a value: as JSON to programs, by `show` to people.
    pub(crate) fn shown(
        &mut self,
        value: &impl Serialize,
        show: impl FnOnce(&mut Out) -> Result<(), Failure>,
    ) -> Outcome {
        match self.out.json {
            true => self.out.json(value)?,
            false => show(&mut self.out)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
