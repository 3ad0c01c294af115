//! The tools of a caller, listed: whether each works here, and whether the caller may use it.

use std::sync::Arc;

use claw_core::did_you_mean::nearest;
use claw_core::tool::{Caller, Section};
use claw_policy::pipeline::{Subject, ToolSet, Verdict};
use claw_registry::{Listing, Status};
use serde_json::{Value, json};

use super::{Error, Setup, tokens};

/// A tool in the list.
pub struct ListedTool {
    /// Its section.
    pub section: Section,
    /// The tool, and whether it works here.
    pub listing: Listing,
    /// The policy's verdict; `None` for a tool that this build lacks.
    pub verdict: Option<Verdict>,
}

/// The tools of a caller.
pub struct ToolList {
    /// The tools, by section.
    pub tools: Vec<ListedTool>,
    /// Names of custom tools that are disabled.
    pub disabled: Vec<String>,
}

impl Setup {
    /// The tools of a caller, custom tools of the store included. A caller without a provider gets that of its agent:
    /// policies may speak of it. Creates no store.
    pub async fn tools_of(&self, caller: &mut Caller) -> Result<Arc<ToolSet>, Error> {
        let stored = self.open_existing().await?;
        if caller.provider.is_none() {
            let agent = match &stored {
                Some(app) => app.agent(&caller.tenant, &caller.agent).await?,
                None => self.agents().into_iter().find(|view| view.agent.id == caller.agent),
            };
            caller.provider = self.provider_of(agent.as_ref()).map(Into::into);
        }
        let Some(app) = stored else { return Ok(self.registry().tool_set()) };
        let registry = app.registry_of(caller).await;
        app.close().await;
        Ok(registry?.tool_set())
    }

    /// Lists the tools for a caller, custom tools of the store included; `section` chooses one by its id or label.
    /// Creates no store.
    pub async fn tool_list(&self, caller: &Caller, section: Option<&str>) -> Result<ToolList, Error> {
        let policy = self.enforced_policy().await?;
        let (registry, disabled) = match self.open_existing().await? {
            Some(app) => {
                let cards = app.of_tenant(&caller.tenant).custom_tools().await;
                let registry = app.registry_of(caller).await;
                app.close().await;
                let disabled = cards?.into_iter().filter(|card| !card.definition.enabled);
                (registry?, disabled.map(|card| card.place.name.to_string()).collect())
            }
            None => (self.registry(), Vec::new()),
        };
        let decision = policy.decide(&registry.tool_set(), &Subject::from(caller));
        let mut sections = registry.list_by_section();
        if let Some(wanted) = section {
            sections = chosen(sections, wanted)?;
        }
        let tools = sections.into_iter().flat_map(|(section, listings)| {
            listings.into_iter().map(move |listing| (section.clone(), listing))
        });
        let tools = tools.map(|(section, listing)| {
            let verdict = decision.get(listing.meta.name.as_str()).cloned();
            ListedTool { section, listing, verdict }
        });
        Ok(ToolList { tools: tools.collect(), disabled })
    }
}

impl ListedTool {
    /// Returns whether this build lacks the tool.
    pub fn is_absent(&self) -> bool {
        self.listing.status == Status::NotInBuild
    }

    /// The tool as JSON.
    pub fn json(&self) -> Value {
        let Self { section, listing, verdict } = self;
        let tokens = tokens(&listing.meta);
        json!({
            "name": listing.meta.name,
            "section": section,
            "about": listing.meta.about,
            "status": listing.status,
            "note": listing.note,
            "effects": listing.meta.effects,
            "cost": listing.meta.cost,
            "aliases": listing.meta.aliases,
            "tokens": tokens.as_ref().map(|tokens| tokens.count),
            "tokens_estimated": tokens.as_ref().map(|tokens| tokens.estimated),
            "allowed": verdict.as_ref().map(|verdict| verdict.allowed),
            "reason": verdict.as_ref().map(|verdict| verdict.trace.to_string()),
        })
    }
}

fn chosen(
    sections: Vec<(Section, Vec<Listing>)>,
    wanted: &str,
) -> Result<Vec<(Section, Vec<Listing>)>, Error> {
    let is = |section: &Section| section.id == wanted || section.label.eq_ignore_ascii_case(wanted);
    let names: Vec<String> = sections.iter().map(|(section, _)| section.id.to_string()).collect();
    let chosen: Vec<_> = sections.into_iter().filter(|(section, _)| is(section)).collect();
    if !chosen.is_empty() {
        return Ok(chosen);
    }
    let error = Error::invalid(format!("there is no section `{wanted}`"));
    Err(match nearest(wanted, names.iter().map(String::as_str)) {
        Some(near) => error.hint(format!("clawsmith tools list --section {near}")),
        None => error.hint(format!("one of {}", names.join(", "))),
    })
}
