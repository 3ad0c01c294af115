//! `clawsmith skills show`, `search` and `accept`.

use clap::Args;
use claw_core::SkillName;
use claw_core::counted::counted;
use claw_core::tool::Digest;
use claw_terminal::visible;
use serde::Deserialize as _;
use serde::de::IntoDeserializer as _;
use serde::de::value::StrDeserializer;
use serde_json::json;

use super::{Where, listed, person, to_look_at};
use crate::cli::Session;
use crate::exit_code::{Failure, Outcome};
use crate::opened::with_app;

/// The skill to show.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The skill's name.
    name: SkillName,
    #[command(flatten)]
    place: Where,
}

impl Show {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let name = self.name;
        let (setup, caller) = self.place.caller(session)?;
        let view = with_app(&setup, async |app| Ok(app.skill(&caller, &name).await?))?;
        session.shown(&view, |out| {
            out.line(format_args!("{}: {}", view.card.name, visible(&view.manifest.description)))?;
            let mut lines = vec![
                ("from", format!("{} ({})", view.card.tier, view.card.source)),
                ("state", view.card.state.name().to_owned()),
            ];
            lines.extend(view.card.digest.map(|digest| ("digest", digest.to_string())));
            lines.extend(view.manifest.license.clone().map(|license| ("license", license)));
            lines.extend(view.manifest.compatibility.clone().map(|with| ("for", with)));
            lines.extend(view.manifest.allowed_tools.as_ref().map(|tools| ("tools", tools.join(", "))));
            if let Some(stored) = &view.stored {
                let owner = stored.owner.as_ref().map_or("nobody", |owner| owner.as_str());
                let pinned =
                    stored.pinned.map_or("newest".to_owned(), |version| format!("version {version}"));
                lines.push(("owner", format!("{owner}, {}, {pinned}", stored.visibility)));
                lines.extend(stored.grants.iter().map(|grant| {
                    let version =
                        grant.version.map_or(String::new(), |version| format!(", version {version}"));
                    ("granted", format!("{}{version}", grant.grantee))
                }));
                let versions = view.versions.iter();
                lines.extend(versions.map(|one| ("version", format!("{} by {}", one.version, one.by))));
            }
            let file = |(path, bytes): &(_, _)| ("file", format!("{path} ({})", counted(*bytes, "byte")));
            lines.extend(view.files.iter().map(file));
            for (what, value) in lines {
                out.line(format_args!("{what:<9} {}", visible(&value)))?;
            }
            to_look_at(out, &view.findings)?;
            Ok(out.line(format_args!("\n{}", visible(view.body.trim_end())))?)
        })
    }
}

/// The words to search for.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// The task that the skill should help with.
    query: String,
    /// The most skills to list.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: usize,
    #[command(flatten)]
    place: Where,
}

impl Search {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let (setup, caller) = self.place.caller(session)?;
        let (query, limit) = (self.query, self.limit.clamp(1, 100));
        let cards = with_app(&setup, async |app| Ok(app.search_skills(&caller, &query, limit).await?))?;
        listed(session, &cards)
    }
}

/// The skill to accept.
#[derive(Debug, Args)]
pub(crate) struct Accept {
    /// The skill's name.
    name: SkillName,
    /// Accept it only if it has this digest, as `clawsmith skills show` prints it.
    #[arg(long, value_name = "SHA256")]
    digest: Option<String>,
    #[command(flatten)]
    place: Where,
}

impl Accept {
    pub(super) fn run(self, session: &mut Session) -> Outcome {
        let name = self.name;
        let seen = self.digest.as_deref().map(digest).transpose()?;
        let (setup, caller) = self.place.caller(session)?;
        let by = person(&caller);
        let (accepted, view) = with_app(&setup, async |app| {
            let accepted = app.accept_skill(&caller, &name, seen.as_ref(), &by).await?;
            Ok((accepted, app.skill(&caller, &name).await?))
        })?;
        session.shown(&json!({ "accepted": accepted, "findings": view.findings }), |out| {
            out.line(format_args!("skill {name} is accepted as it is now ({})", accepted.digest))?;
            to_look_at(out, &view.findings)?;
            if !view.findings.is_empty() {
                out.line(format_args!("to withdraw the acceptance: `clawsmith skills remove {name}`"))?;
            }
            Ok(())
        })
    }
}

fn digest(text: &str) -> Result<Digest, Failure> {
    let deserializer: StrDeserializer<'_, serde::de::value::Error> = text.into_deserializer();
    Digest::deserialize(deserializer).map_err(|error| Failure::usage(format!("`--digest`: {error}")))
}
