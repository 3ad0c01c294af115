//! `knowledge`: search in the knowledge graph and in skills.

mod knowledge_graph_search;
mod skill_search;

use crate::Builtin;

pub(crate) const TOOLS: &[Builtin] = &[
    Builtin::of::<knowledge_graph_search::KnowledgeGraphSearch>(),
    Builtin::of::<skill_search::SkillSearch>(),
];
