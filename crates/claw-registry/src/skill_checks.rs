//! Checks of a skill before it is published or accepted.

use claw_core::skill::SkillPackage;
use claw_core::tool::{ErrorKind, ToolError};
use claw_policy::skill_attacks::scan;

use crate::CallScrubber;

/// Most findings kept per skill.
const MOST_FINDINGS: usize = 50;

/// Refuses a skill that contains a secret; returns the lines that look like an attack, each with its file and
/// number.
pub fn inspect(package: &SkillPackage, scrubber: &CallScrubber) -> Result<Vec<String>, ToolError> {
    for file in &package.files {
        let text = String::from_utf8_lossy(&file.bytes);
        if scrubber.text(&text) != text {
            let line = text.lines().position(|line| scrubber.text(line) != line);
            let line = line.map(|line| format!(" in line {}", line + 1)).unwrap_or_default();
            let message =
                format!("`{}` holds what looks like a secret{line}, so it is not published", file.path);
            return Err(ToolError::new(ErrorKind::Forbidden, message)
                .try_instead("take it out; a script can read it from a variable that a person sets"));
        }
    }
    Ok(findings(package))
}

/// The lines of a skill that look like an attack.
pub fn findings(package: &SkillPackage) -> Vec<String> {
    let mut findings = Vec::new();
    for file in &package.files {
        let Ok(text) = std::str::from_utf8(&file.bytes) else { continue };
        for found in scan(text) {
            findings.push(format!("{}:{}: {}: {}", file.path, found.line, found.kind, found.text));
        }
    }
    let count = findings.len();
    findings.truncate(MOST_FINDINGS);
    if count > MOST_FINDINGS {
        findings.push(format!("and {} more", count - MOST_FINDINGS));
    }
    findings
}

/// The summary that a person reads before accepting a skill.
pub fn summary(package: &SkillPackage, findings: &[String]) -> String {
    let manifest = &package.manifest;
    let (count, bytes) = (package.files.len(), package.bytes());
    let mut lines =
        vec![format!("{}: {}", manifest.name, manifest.description), format!("{count} files, {bytes} bytes")];
    lines.extend(
        package.files.iter().filter(|file| file.executable).map(|file| format!("runs: {}", file.path)),
    );
    if let Some(tools) = &manifest.allowed_tools {
        lines.push(format!("allowed-tools: {}", tools.join(", ")));
    }
    if !findings.is_empty() {
        lines.push("read these lines before you agree:".to_owned());
        lines.extend(findings.iter().map(|finding| format!("  {finding}")));
    }
    lines.join("\n")
}
