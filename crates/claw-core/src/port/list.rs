//! The list of ports. The needs of a tool, the world of a deployment and the ports of a call are generated from
//! it.
//!
//! A new port has its traits in the imports here, its host under `hosts` and its need under `ports`; its file and
//! its names in `mod.rs` beside this file; its guard, with a `mod` line and an arm of `ports`, in
//! `claw-registry/src/guard/`. A forgotten line does not compile.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{
    AgentDirectory, Agents, ArtifactStore, Artifacts, Catalogue, Clock, EndpointHost, Endpoints, Files,
    FsBridge, Graph, GraphHost, Http, HttpHost, Inputs, Memory, MemoryHost, Processes, ProgramHost,
    SeenFiles, Sessions, Shell, ShellHost, SkillHost, Skills, TalkHost, Talks, UndoJournal, Web, WebHost,
};
use crate::tool::{Call, ToolError};

/// Generates [`Need`], [`World`], [`Ports`] and the methods of [`Call`] that give a tool its ports.
///
/// - `hosts` lists the fields of [`World`]: the field and the trait that the world implements.
/// - `ports` lists the needs. `Name "name"` is the need, in code and in listings. `gives field: Trait` is the
///   guarded port that a tool gets for it. `from host else "reason"` is the host it requires, and the reason
///   that is shown if that is missing; a need without it can be met everywhere.
macro_rules! ports {
    (
        hosts { $(#[doc = $host_doc:literal] $host:ident: $host_trait:ident;)* }
        ports { $(
            #[doc = $doc:literal]
            $need:ident $name:literal
            $(gives $port:ident: $port_trait:ident)?
            $(from $of:ident else $reason:literal)?;
        )* }
    ) => {
        /// A port that a tool cannot work without.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum Need { $(#[doc = $doc] #[serde(rename = $name)] $need,)* }

        impl Need {
            /// All needs, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$need,)*];

            /// The name that listings show.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$need => $name,)* }
            }
        }

        /// The hosts of one deployment. Tools that need a host that is `None` are listed as unavailable.
        #[derive(Clone)]
        pub struct World {
            /// The clock.
            pub clock: Arc<dyn Clock>,
            $(#[doc = $host_doc] pub $host: Option<Arc<dyn $host_trait>>,)*
        }

        impl World {
            /// Returns a world with nothing but a clock.
            pub fn new(clock: Arc<dyn Clock>) -> Self {
                Self { clock, $($host: None,)* }
            }

            /// Returns the reason why `need` cannot be met here; `None` if it can.
            pub fn lacks(&self, need: Need) -> Option<&'static str> {
                match need {
                    $($(Need::$need if self.$of.is_none() => Some($reason),)?)*
                    _ => None,
                }
            }
        }

        impl fmt::Debug for World {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let has = |there: bool| if there { "there" } else { "absent" };
                f.debug_struct("World")
                    $(.field(stringify!($host), &has(self.$host.is_some())))*
                    .finish_non_exhaustive()
            }
        }

        /// The guarded ports of one call. A port that the tool did not declare in its needs is `None`.
        #[derive(Clone)]
        pub struct Ports {
            /// The clock.
            pub clock: Arc<dyn Clock>,
            $($(#[doc = $doc] pub $port: Option<Arc<dyn $port_trait>>,)?)*
        }

        impl Ports {
            /// Returns ports with nothing but a clock.
            pub fn new(clock: Arc<dyn Clock>) -> Self {
                Self { clock, $($($port: None,)?)* }
            }
        }

        /// The ports of a call. Each is present if the tool declares the need.
        impl Call {
            $($(
                #[doc = $doc]
                pub fn $port(&self) -> Result<&dyn $port_trait, ToolError> {
                    self.port(self.ports().$port.as_deref(), Need::$need)
                }
            )?)*
        }
    };
}

ports! {
    hosts {
        /// Files.
        bridge: FsBridge;
        /// The journal of file changes; without it they cannot be undone.
        undo: UndoJournal;
        /// The files that each session has seen; without it only this process remembers.
        seen: SeenFiles;
        /// Commands.
        shell: ShellHost;
        /// Programs that run with credentials.
        programs: ProgramHost;
        /// Kept results.
        artifacts: ArtifactStore;
        /// The configured agents.
        agents: AgentDirectory;
        /// Sessions.
        talks: TalkHost;
        /// Endpoints that configuration names.
        endpoints: EndpointHost;
        /// Other servers.
        http: HttpHost;
        /// The web.
        web: WebHost;
        /// Skills.
        skills: SkillHost;
        /// Memory documents.
        memory: MemoryHost;
        /// Knowledge graphs.
        graph: GraphHost;
    }
    ports {
        /// Files of the workspace.
        Files "files" gives files: Files from bridge else "no file bridge is set up in this build";
        /// Running commands.
        Shell "shell" gives shell: Shell from shell else "no shell is set up in this build";
        /// Commands that run in the background.
        Processes "processes" gives processes: Processes from shell else "no shell is set up in this build";
        /// Running programs with credentials, which the shell port does.
        Programs "programs" from programs else "no place for programs with credentials is set up";
        /// Kept results.
        Artifacts "results" gives artifacts: Artifacts from artifacts else "no store for kept results is set up";
        /// The configured agents.
        Agents "agents" gives agents: Agents from agents else "no agent directory is set up";
        /// The figures of the caller's session.
        Sessions "session" gives sessions: Sessions;
        /// The caller's sessions.
        Talks "sessions" gives talks: Talks from talks else "no store of sessions is set up";
        /// Endpoints that configuration names.
        Endpoints "endpoints" gives endpoints: Endpoints
            from endpoints else "no endpoint is configured; see `endpoints` in the configuration";
        /// Requests to servers that the tool's owner named.
        Http "http" gives http: Http from http else "no way to other servers is set up";
        /// The web.
        Web "web" gives web: Web from web else "no access to the web is set up in this build";
        /// Skills that the caller may use.
        Skills "skills" gives skills: Skills from skills else "no place for skills is set up in this build";
        /// The caller's memory.
        Memory "memory" gives memory: Memory from memory else "no store of documents is set up";
        /// The caller's knowledge graph.
        Graph "graph" gives graph: Graph from graph else "no store of documents is set up";
        /// Input of the person behind the call.
        Inputs "inputs" gives inputs: Inputs;
        /// Searching the tools themselves.
        Catalogue "catalogue" gives catalogue: Catalogue;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::UnixMillis;

    struct NoTime;

    impl Clock for NoTime {
        fn now(&self) -> UnixMillis {
            UnixMillis(0)
        }
    }

    #[test]
    fn an_empty_world_lacks_every_need_that_has_a_host() {
        let world = World::new(Arc::new(NoTime));
        let met: Vec<_> = Need::ALL.iter().filter(|need| world.lacks(**need).is_none()).collect();
        assert_eq!(met, [&Need::Sessions, &Need::Inputs, &Need::Catalogue]);
        assert_eq!(world.lacks(Need::Processes), Some("no shell is set up in this build"));
    }

    #[test]
    fn listings_and_configuration_call_a_need_the_same() {
        for need in Need::ALL {
            assert_eq!(serde_json::to_value(need).unwrap(), need.name());
        }
    }
}
