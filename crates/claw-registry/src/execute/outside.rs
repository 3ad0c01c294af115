//! Directories outside the workspace: those that remembered rules grant, and those that a person is asked about.

use claw_core::RuleId;
use claw_core::port::{Access, Root, normalise};
use claw_core::tool::Ask;
use claw_policy::approval::remembered::RuleContent;
use claw_policy::approval::{Analysis, Grantable, OutsideRule};

use super::{Asking, Trip};
use crate::offer::CallPlace;
use crate::reply::{Refusal, Step};

impl Trip<'_> {
    /// Finds the directories outside the caller's scope that this call may reach, or that a person could grant it. Where
    /// nobody can be asked, only what was remembered is granted.
    pub(super) async fn find_directories(
        &mut self,
        analysis: &Analysis,
        place: &CallPlace,
    ) -> Result<(), Refusal> {
        if self.executor.0.files.load().grantable.is_none() {
            return Ok(());
        }
        let rules = self.executor.0.files.load_full();
        let Some(grantable) = &rules.grantable else { return Ok(()) };
        let wanted: Vec<(&str, Access)> = analysis.asks.iter().filter_map(|ask| path_of(&ask.ask)).collect();
        let is_refused = |trip: &Self, (path, access): &(&str, Access)| {
            trip.scope(place).resolve_text(&place.facts.directory, path, *access).is_err()
        };
        if !analysis.has_commands() && !wanted.iter().any(|wanted| is_refused(self, wanted)) {
            return Ok(());
        }
        self.granted = self.remembered_directories(grantable).await;
        self.scope.take();
        let is_off = self.executor.0.approvals.load().outside == OutsideRule::Deny;
        if is_off || self.request.asking == Asking::Impossible {
            return Ok(());
        }
        let Some(bridge) = self.offer.0.registry.world().bridge.clone() else { return Ok(()) };
        for (path, access) in wanted {
            if !is_refused(self, &(path, access)) || !self.is_outside(place, path, access) {
                continue;
            }
            let found = bridge.outside(&place.facts.directory, path).await;
            let found = found.map_err(|error| Refusal {
                advice: error.advice,
                ..Refusal::at(Step::Judge, error.message)
            })?;
            if let Some(path) = found.filter(|directory| grantable.refusal(directory).is_none()) {
                self.asked.push(Root { path, access });
                self.scope.take();
            }
        }
        Ok(())
    }

    /// Whether a path is in no root, or in one that a rule grants to be read only while it is to be written. What is denied
    /// is not asked about.
    fn is_outside(&self, place: &CallPlace, path: &str, access: Access) -> bool {
        let Some(target) = normalise(&place.facts.directory.join(path)) else { return false };
        match self.scope(place).root_around(&target) {
            None => true,
            Some(root) => {
                access == Access::Write
                    && root.access == Access::Read
                    && self.granted.iter().any(|(_, granted)| granted == root)
            }
        }
    }

    /// The directories that remembered rules grant the caller.
    async fn remembered_directories(&self, grantable: &Grantable) -> Vec<(RuleId, Root)> {
        let directory = |(id, content)| match content {
            RuleContent::Directory { path, access } if grantable.refusal(&path).is_none() => {
                Some((id, Root { path, access }))
            }
            _ => None,
        };
        let mut granted: Vec<_> = self.remembered().await.into_iter().filter_map(directory).collect();
        // Where one directory was granted twice, the one that lets more be done counts.
        granted.sort_by_key(|(_, root)| root.access == Access::Read);
        granted
    }

    /// The rules that grant a directory in which the call names a path.
    pub(super) fn directory_rules(&self, analysis: &Analysis, place: &CallPlace) -> Vec<RuleId> {
        if self.granted.is_empty() {
            return Vec::new();
        }
        let scope = self.scope(place);
        let named = analysis.asks.iter().filter_map(|ask| path_of(&ask.ask));
        let targets = named.filter_map(|(path, _)| normalise(&place.facts.directory.join(path)));
        let roots = targets.filter_map(|target| scope.root_around(&target).cloned());
        let rules = roots.filter_map(|root| self.granted.iter().find(|(_, granted)| *granted == root));
        rules.map(|(id, _)| *id).collect()
    }
}

/// The path that an ask names, and what is done with it.
fn path_of(ask: &Ask) -> Option<(&str, Access)> {
    match ask {
        Ask::Write { path } | Ask::Reach { path, write: true } => Some((path, Access::Write)),
        Ask::Reach { path, write: false } => Some((path, Access::Read)),
        _ => None,
    }
}
