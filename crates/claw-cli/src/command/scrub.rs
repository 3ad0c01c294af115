//! `clawsmith scrub`: a filter that removes secrets from a stream.
//!
//! It works on bytes: bytes that are not UTF-8 pass unchanged. Each piece is written as soon as it is
//! certain, so that it can stand between two programs that talk.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

use clap::Args;
use claw_policy::scrub::{Report, Value as SecretValue};
use serde_json::json;

use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};

const PIECE: usize = 64 * 1024;

/// The options of scrubbing.
#[derive(Debug, Args)]
pub(crate) struct Scrub {
    /// Print on standard error how many secrets of each kind were removed.
    #[arg(long)]
    report: bool,
}

impl Scrub {
    pub(crate) fn run(self, session: &mut Session) -> Outcome {
        let setup = session.load()?;
        let sealed = session.existing_app(async |app| app.sealed(app.tenant()).await)?;
        let mut scrubber = setup.scrubber()?;
        for value in sealed.unwrap_or_default() {
            match scrubber.clone().with_values([SecretValue::new(value, "value")]) {
                Ok(more) => scrubber = more,
                Err(_) => claw_terminal::tell(
                    "note: a stored secret is too short to be recognised, so it is not removed; set a longer one",
                ),
            }
        }
        let mut stream = scrubber.stream();
        let (mut stdin, mut stdout) = (io::stdin().lock(), io::stdout().lock());
        let (mut piece, mut clean) = (vec![0; PIECE], Vec::with_capacity(PIECE));
        loop {
            let read = match stdin.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(Failure::failed("standard input could not be read").because(error));
                }
            };
            stream.push(&piece[..read], &mut clean);
            write(&mut stdout, &mut clean)?;
        }
        let report = stream.finish(&mut clean);
        write(&mut stdout, &mut clean)?;
        if self.report {
            tell(&report, session.out.json);
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn write(stdout: &mut impl io::Write, clean: &mut Vec<u8>) -> io::Result<()> {
    stdout.write_all(clean)?;
    clean.clear();
    stdout.flush()
}

fn tell(report: &Report, json: bool) {
    if json {
        let kinds: serde_json::Map<_, _> =
            report.iter().map(|(kind, count)| (kind.to_owned(), json!(count))).collect();
        // Nothing is left to be done about standard error failing.
        let _ = writeln!(io::stderr(), "{}", json!({ "redacted": report.total(), "kinds": kinds }));
        return;
    }
    claw_terminal::tell(format_args!("{} redacted", report.total()));
    for (kind, count) in report.iter() {
        claw_terminal::tell(format_args!("{count:>8}  {kind}"));
    }
}
