//! Granted directories: those beside the workspace that agents reach.

use std::path::{Path, PathBuf};

use claw_core::port::{Access, Allowed, Root};
use claw_policy::approval::Grantable;

use super::{Error, Setup, real};

impl Setup {
    /// Returns the directories that an agent reaches beside its workspace, as absolute paths; `""` stands for
    /// every agent.
    pub(crate) fn granted_directories(&self, agent: &str) -> Result<Vec<Root>, Error> {
        let files = &self.config().files;
        let of_all = [("files.read", &files.read), ("files.write", &files.write)];
        let of_agent = self.config().agents.get(agent).map(|own| {
            let key = |name: &str| format!("agents.{agent}.{name}");
            [(key("read_paths"), &own.read_paths), (key("write_paths"), &own.write_paths)]
        });
        let of_all = of_all.map(|(key, paths)| (key.to_owned(), paths));
        let lists: Vec<_> =
            if agent.is_empty() { of_all.into() } else { of_agent.into_iter().flatten().collect() };
        let mut roots = Vec::new();
        for (key, paths) in lists {
            let access = if key.contains("write") { Access::Write } else { Access::Read };
            for path in paths {
                roots.push(Root { path: self.granted(&key, path)?, access });
            }
        }
        // Deeper directories say more precisely what may be done in them.
        roots.sort_by_key(|root| root.path.components().count());
        Ok(roots)
    }

    /// Returns the directories that commands of every agent reach beside the workspace.
    pub fn granted_to_commands(&self) -> Result<Vec<Allowed>, Error> {
        let allowed = |root: Root| Allowed { path: root.path, write: root.access == Access::Write };
        Ok(self.granted_directories("")?.into_iter().map(allowed).collect())
    }

    /// Resolves a grant. Refuses one by which an agent could give itself more, or see another agent's data.
    fn granted(&self, key: &str, path: &Path) -> Result<PathBuf, Error> {
        let full = real(&self.loaded.resolved(key, path, &self.around));
        let refused = |why: &str| {
            let what = format!("`{key}` entry `{}`: {why}", path.display());
            Error::invalid(what).hint("grant a smaller directory, or remove the entry")
        };
        if full.exists() && !full.is_dir() {
            return Err(refused("it is a file, and only directories can be granted"));
        }
        match self.grantable()?.refusal(&full) {
            Some(why) => Err(refused(&why)),
            None => Ok(full),
        }
    }

    /// The directories that can be granted to agents, by configuration or by the answer of the person who runs this program.
    pub(crate) fn grantable(&self) -> Result<Grantable, Error> {
        let data = self.data_dir()?;
        let own = std::iter::once(data).chain(self.around.config_dir()).chain(self.around.trusted());
        Ok(Grantable { home: self.around.home().map(real), own: own.map(|own| real(&own)).collect() })
    }
}
