//! The process that reads a PDF: this program again, in the kernel sandbox, with neither network nor files.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use claw_sandbox::shell::{Command, Input, Process, Streams};
use claw_sandbox::{Confinement, Ended, Launcher, Limits, Reach, Stopped};
use claw_web::pdf::{self, Cut, PdfProcess, Printed};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;

/// Memory of the process.
const MEMORY_MIB: u64 = 1024;
/// The longest output accepted, in MiB.
const OUTPUT_MIB: usize = 8;
/// The most bytes read of its error messages.
const ERRORS: u64 = 16 * 1024;
/// The longest wait for a process to exit after it has closed its output.
const ENDING: Duration = Duration::from_secs(2);

/// Starts PDF readers in the kernel sandbox, regardless of the sandbox of commands.
#[derive(Debug)]
pub(super) struct SandboxedPdf {
    launcher: Launcher,
    /// The timeout for one document.
    time: Duration,
}

impl SandboxedPdf {
    pub(super) fn new(time: Duration) -> Self {
        Self { launcher: Launcher::new(), time }
    }
}

#[async_trait]
impl PdfProcess for SandboxedPdf {
    async fn run(&self, document: Vec<u8>) -> Result<Printed, String> {
        let deadline = Instant::now() + self.time;
        let mut process = self.start().await?;
        let (input, errors) = (process.input.take(), process.errors.take());
        let feeding = tokio::spawn(async move {
            if let Some(mut input) = input {
                // It may end before it has read everything.
                let _ = input.write_all(&document).await;
            }
        });
        let complaining = tokio::spawn(async move {
            let mut said = Vec::new();
            if let Some(errors) = errors {
                let _ = errors.take(ERRORS).read_to_end(&mut said).await;
            }
            said
        });
        let mut output = Vec::new();
        let taken = tokio::time::timeout_at(deadline, take(&mut process.output, &mut output)).await;
        let cut = match taken {
            Err(_) => Some(Cut::Seconds(self.time.as_secs())),
            Ok(Err(_)) => Some(Cut::OutputMib(OUTPUT_MIB)),
            Ok(Ok(())) => match tokio::time::timeout(ENDING, process.ended()).await {
                Ok(Ok(Ended { exit: Some(0), .. })) => None,
                Ok(Ok(ended)) => {
                    let said = tokio::time::timeout(ENDING, complaining).await;
                    let said = said.ok().and_then(Result::ok).unwrap_or_default();
                    let is_full = ended.stopped == Some(Stopped::Memory)
                        || String::from_utf8_lossy(&said).contains("memory allocation of");
                    Some(if is_full { Cut::MemoryMib(MEMORY_MIB) } else { Cut::Broke })
                }
                _ => Some(Cut::Broke),
            },
        };
        feeding.abort();
        // A process that still runs ends with its handle.
        drop(process);
        Ok(Printed { output, cut })
    }
}

impl SandboxedPdf {
    async fn start(&self) -> Result<Process, String> {
        if !pdf::is_let_in() {
            return Err("this program does not start one (`clawsmith::app::enter_if_asked`)".to_owned());
        }
        let failed = |error: &dyn std::fmt::Display| format!("it cannot be started: {error}");
        let program = std::env::current_exe().map_err(|error| failed(&error))?;
        let name = program.to_str().ok_or_else(|| failed(&"the path of this program is not UTF-8"))?;
        // The program itself is all that it sees beside the libraries of the system.
        let reach = Reach { write: false, processes: false, ..Reach::workspace(&program) };
        let limits = Limits {
            memory: Some(MEMORY_MIB << 20),
            processes: Some(8),
            cpu_seconds: Some(self.time.as_secs() + 1),
            file_size: Some(0),
            disk: None,
            temporary: 4096,
            ..Limits::default()
        };
        let command = Command {
            argv: vec![name.to_owned(), pdf::ENTRY.to_owned()],
            env: Vec::new(),
            directory: "/".into(),
            limits,
            confinement: Some(Confinement::new(reach)),
            input: Input::Piped,
            streams: Streams::Apart,
        };
        Process::start(&self.launcher, command).await.map_err(|error| failed(&error))
    }
}

/// Reads output until its end; fails if there is more than allowed.
async fn take(mut from: impl AsyncRead + Unpin, into: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = from.read(&mut buffer).await.unwrap_or_default();
        if count == 0 {
            return Ok(());
        }
        if into.len() + count > OUTPUT_MIB << 20 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        into.extend_from_slice(&buffer[..count]);
    }
}
