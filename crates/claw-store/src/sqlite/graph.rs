//! The knowledge graph; the statements are in `crate::graph`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use claw_core::graph::{Entity, EntityFacts, GraphSource, Relation, RelationFacts};
use claw_core::port::{MemoryOwner, MemoryReader, UnixMillis};
use claw_core::store::{
    EntityPair, EntityQuery, ExtractionWork, FactsFrom, FoundEntity, GraphOwner, GraphState, GraphStore,
    GraphWalk, KeptFacts, NewFacts, RelationEnd, StoreError, Walked,
};
use claw_core::{EntityId, RelationId, TenantId};
use sqlx::{QueryBuilder, Sqlite, SqliteConnection, query, query_as, query_scalar};

use super::SqliteStore;
use crate::graph::{
    COMPARED, COUNTED, Desk, Ends, Known, MOST_PAIRS, MentionRow, NewMention, READ, RelationRow, WRITE,
    checked, desk, distrust, end, entity, failure, folded, graph_reading, graph_store, graph_writing,
    no_entity, ordered, rank, relation, same_name, work,
};
use crate::{document_rules, query_words, row, words};

graph_writing!(SqliteConnection, database: Sqlite, failed: super::error::failed);
graph_reading!(
    SqliteConnection,
    failed: super::error::failed,
    list: ("json_each(", ") AS w"),
    // The inner list is made once for each entity; `IN` with a query would make it for each relation of a hub.
    relations: (
        "SELECT r.id, r.source, r.target, r.body FROM json_each($2) AS w
             CROSS JOIN json_each((SELECT json_group_array(best.at) FROM (
                 SELECT o.rowid AS at FROM graph_relations AS o WHERE o.owner = $1 AND o.source = w.value
                 AND ($3 IS NULL OR (o.valid_from IS NULL OR o.valid_from <= $3)
                     AND (o.valid_until IS NULL OR o.valid_until > $3))
                 ORDER BY o.confidence DESC, o.id LIMIT $4) AS best)) AS b
             CROSS JOIN graph_relations AS r ON r.rowid = b.value
             ORDER BY r.confidence DESC, r.id",
        "SELECT r.id, r.source, r.target, r.body FROM json_each($2) AS w
             CROSS JOIN json_each((SELECT json_group_array(best.at) FROM (
                 SELECT o.rowid AS at FROM graph_relations AS o WHERE o.owner = $1 AND o.target = w.value
                 AND ($3 IS NULL OR (o.valid_from IS NULL OR o.valid_from <= $3)
                     AND (o.valid_until IS NULL OR o.valid_until > $3))
                 ORDER BY o.confidence DESC, o.id LIMIT $4) AS best)) AS b
             CROSS JOIN graph_relations AS r ON r.rowid = b.value
             ORDER BY r.confidence DESC, r.id"
    )
);
graph_store!(SqliteStore, look: look, write: write, failed: super::error::failed, skip: "");

#[cfg(test)]
mod tests;
