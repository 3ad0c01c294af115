//! The configuration as its owner sees it: problems, and settings without secrets.

use std::sync::Arc;

use claw_llm::EnvKeys;
use claw_policy::lint::Severity;
use serde_json::json;

use super::{Error, Setup};
use crate::config::{Setting, Surroundings, Trust, warnings};

/// The problems of a configuration.
#[derive(Debug, Clone, Default)]
pub struct ConfigReport {
    /// Errors: it is not used as it is.
    pub errors: Vec<String>,
    /// Settings that are probably not meant.
    pub warnings: Vec<String>,
}

impl Setup {
    /// Checks everything that can be checked without opening the store.
    pub fn check(&self) -> Result<ConfigReport, Error> {
        let known = claw_tools::catalogue();
        let known: Vec<&str> = known.iter().map(|meta| meta.name.as_str()).collect();
        let mut report = self.policy_report();
        report.warnings.splice(0..0, warnings(&self.loaded, &self.around, &known));
        let keys = || Arc::new(EnvKeys);
        let built = [self.models(keys(), None).err(), self.endpoints(keys()).err(), self.web(keys()).err()];
        report.errors.extend(built.into_iter().flatten().map(|error| error.to_string()));
        match self.trust()? {
            Trust::Holds => {}
            // No command runs then.
            Trust::Gone => report.errors.extend(self.must_be_trusted().err().map(|error| error.to_string())),
            Trust::New | Trust::Changed => report.warnings.push(
                "nobody has accepted the file as it is, so it does not apply; review and accept it with `clawsmith config trust`".to_owned(),
            ),
        }
        Ok(report)
    }

    /// Returns the errors and warnings of its policy: a misspelt `deny` leaves open what it was written to close.
    pub fn policy_report(&self) -> ConfigReport {
        let found = self.policy_findings();
        let of = |severity| {
            let found = found.iter().filter(move |finding| finding.severity == severity);
            found.map(|finding| finding.without_severity().to_string()).collect()
        };
        ConfigReport { errors: of(Severity::Error), warnings: of(Severity::Warning) }
    }

    /// Returns whether the file is in force as it is.
    pub fn is_accepted(&self) -> Result<bool, Error> {
        Ok(self.trust()? == Trust::Holds)
    }

    /// Every key with its value, scrubbed.
    pub fn scrubbed_settings(&self) -> Result<Vec<Setting>, Error> {
        let scrubber = self.scrubbers()?.for_tenant(self.tenant());
        let settings = self.loaded.settings();
        let mut settings =
            settings.map_err(|error| Error::failed("the settings cannot be read").because(error))?;
        for setting in &mut settings {
            // With its key: a password is known by what stands before it.
            let key = setting.key.rsplit('.').next().unwrap_or_default();
            let clean = scrubber.json(&json!({ key: setting.value }));
            setting.value = clean.get(key).cloned().unwrap_or(clean);
        }
        Ok(settings)
    }

    /// The configuration as its files have it, whatever variables set here: what holds in the next shell.
    pub fn without_variables(file: Option<&std::path::Path>, around: &Surroundings) -> Result<Self, Error> {
        let mut around = around.clone();
        around.variables.retain(|(name, _)| {
            name == "CLAWSMITH_CONFIG" || !name.as_encoded_bytes().starts_with(b"CLAWSMITH_")
        });
        Self::read(file, &around)
    }
}
