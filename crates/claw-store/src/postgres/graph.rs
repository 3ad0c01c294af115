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
use sqlx::{Postgres, QueryBuilder, query, query_as, query_scalar};

use super::PostgresStore;
use super::connections::Link;
use crate::graph::{
    COMPARED, COUNTED, Desk, Ends, Known, MOST_PAIRS, MentionRow, NewMention, READ, RelationRow, WRITE,
    checked, desk, distrust, end, entity, failure, folded, graph_reading, graph_store, graph_writing,
    no_entity, ordered, rank, relation, same_name, work,
};
use crate::{document_rules, query_words, row, words};

graph_writing!(Link<'_>, database: Postgres, failed: super::failure::failed);
graph_reading!(
    Link<'_>,
    failed: super::failure::failed,
    list: ("jsonb_array_elements_text(", "::jsonb) AS w(value)"),
    relations: (
        "SELECT r.id, r.source, r.target, r.body FROM jsonb_array_elements_text($2::jsonb) AS w(value)
             CROSS JOIN LATERAL (
                 SELECT o.id, o.source, o.target, o.body, o.confidence FROM graph_relations AS o
                 WHERE o.owner = $1 AND o.source = w.value
                 AND ($3 IS NULL OR (o.valid_from IS NULL OR o.valid_from <= $3)
                     AND (o.valid_until IS NULL OR o.valid_until > $3))
                 ORDER BY o.confidence DESC, o.id LIMIT $4) AS r
             ORDER BY r.confidence DESC, r.id",
        "SELECT r.id, r.source, r.target, r.body FROM jsonb_array_elements_text($2::jsonb) AS w(value)
             CROSS JOIN LATERAL (
                 SELECT o.id, o.source, o.target, o.body, o.confidence FROM graph_relations AS o
                 WHERE o.owner = $1 AND o.target = w.value
                 AND ($3 IS NULL OR (o.valid_from IS NULL OR o.valid_from <= $3)
                     AND (o.valid_until IS NULL OR o.valid_until > $3))
                 ORDER BY o.confidence DESC, o.id LIMIT $4) AS r
             ORDER BY r.confidence DESC, r.id"
    )
);
graph_store!(
    PostgresStore,
    look: begin,
    write: begin,
    failed: super::failure::failed,
    skip: " FOR NO KEY UPDATE SKIP LOCKED"
);
