//! Statements that read facts, for both databases.

/// Functions that find entities and walk along relations over a connection. `$open` and `$close` turn a JSON
/// list in a parameter into a table; `$out` and `$into` select the relations of each entity of a list.
macro_rules! graph_reading {
    (
        $connection:ty,
        failed: $failed:path,
        list: ($open:literal, $close:literal),
        relations: ($out:literal, $into:literal)
    ) => {
        // `CROSS JOIN` makes SQLite begin with the list. With `JOIN` it reads all entities of the owner, and the list for each.
        const VALID: &str = concat!(
            "SELECT e.id, e.body FROM ", $open, "$2", $close,
            " CROSS JOIN graph_entities AS e WHERE e.owner = $1 AND e.id = w.value
             AND ($3 IS NULL OR (e.valid_from IS NULL OR e.valid_from <= $3)
                 AND (e.valid_until IS NULL OR e.valid_until > $3))"
        );
        const COUNT_WORDS: &str = concat!(
            "SELECT w.value, (SELECT count(*) FROM (
                 SELECT 1 AS one FROM graph_words AS g
                 WHERE g.owner IN ($1, $2, $3) AND g.word = w.value LIMIT $5
             ) AS found) FROM ", $open, "$4", $close
        );
        const POSTINGS: &str = concat!(
            "SELECT g.owner, g.entity, g.word, g.times, e.words FROM ", $open, "$4", $close,
            " CROSS JOIN graph_words AS g CROSS JOIN graph_entities AS e
             WHERE g.owner IN ($1, $2, $3) AND g.word = w.value AND e.owner = g.owner AND e.id = g.entity
                 AND ($5 IS NULL OR e.kind = $5)
                 AND ($6 IS NULL OR (e.valid_from IS NULL OR e.valid_from <= $6)
                     AND (e.valid_until IS NULL OR e.valid_until > $6))
             LIMIT $7"
        );

        /// The numbers of a reader's owners, nearest first.
        async fn owners_of(
            connection: &mut $connection,
            reader: &MemoryReader,
        ) -> Result<Vec<(i64, MemoryOwner)>, StoreError> {
            let rows: Vec<(i64, String, String)> = query_as(
                "SELECT id, agent, for_user FROM document_owners
                 WHERE tenant = $1 AND (agent = $2 AND for_user IN ('', $3) OR agent = '' AND for_user = '')",
            )
            .bind(reader.tenant.as_str())
            .bind(reader.agent.as_str())
            .bind(document_rules::user(reader.user.as_ref()))
            .fetch_all(connection)
            .await
            .map_err($failed(READ))?;
            let owner = |(id, agent, user): (i64, String, String)| match (agent.is_empty(), user.is_empty()) {
                (true, _) => (id, MemoryOwner::Tenant),
                (false, true) => (id, MemoryOwner::Agent),
                (false, false) => (id, MemoryOwner::User),
            };
            let mut owners: Vec<(i64, MemoryOwner)> = rows.into_iter().map(owner).collect();
            owners.sort_by_key(|(_, owner)| *owner);
            Ok(owners)
        }

        /// Loads entities of an owner by their ids, in that order; entities that do not exist, or did not at
        /// `as_of`, are left out.
        async fn load(connection: &mut $connection, owner: i64, whose: MemoryOwner, ids: &[String], as_of: Option<UnixMillis>) -> Result<Vec<Entity>, StoreError> {
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            let rows: Vec<(String, String)> = query_as(VALID)
                .bind(owner)
                .bind(row::text(&ids)?)
                .bind(as_of.map(|at| at.0))
                .fetch_all(connection)
                .await
                .map_err($failed(READ))?;
            let mut rows: HashMap<String, String> = rows.into_iter().collect();
            let found = ids.iter().filter_map(|id| rows.remove_entry(id));
            found.map(|row| entity(whose, &row)).collect()
        }

        /// A list of entities by name.
        async fn listed(
            connection: &mut $connection,
            owners: &[(i64, MemoryOwner)],
            asked: &EntityQuery,
        ) -> Result<Vec<Entity>, StoreError> {
            let limit = row::number(asked.limit);
            let mut after: Option<(String, String)> = None;
            if let Some(id) = asked.after {
                for (owner, _) in owners {
                    let name: Option<String> =
                        query_scalar("SELECT name FROM graph_entities WHERE owner = $1 AND id = $2")
                            .bind(owner)
                            .bind(id.to_string())
                            .fetch_optional(&mut *connection)
                            .await
                            .map_err($failed(READ))?;
                    after = after.or_else(|| name.map(|name| (name, id.to_string())));
                }
                if after.is_none() {
                    return Ok(Vec::new());
                }
            }
            let (after_name, after_id) = after.unzip();
            let mut rows: Vec<(String, MemoryOwner, (String, String))> = Vec::new();
            for (owner, whose) in owners {
                let found: Vec<(String, String, String)> = query_as(
                    "SELECT name, id, body FROM graph_entities WHERE owner = $1
                     AND ($2 IS NULL OR kind = $2)
                     AND ($3 IS NULL OR (valid_from IS NULL OR valid_from <= $3)
                         AND (valid_until IS NULL OR valid_until > $3))
                     AND ($4 IS NULL OR name > $4 OR name = $4 AND id > $5)
                     ORDER BY name, id LIMIT $6",
                )
                .bind(owner)
                .bind(asked.kind.as_deref())
                .bind(asked.as_of.map(|at| at.0))
                .bind(after_name.as_deref())
                .bind(after_id.as_deref())
                .bind(limit)
                .fetch_all(&mut *connection)
                .await
                .map_err($failed(READ))?;
                rows.extend(found.into_iter().map(|(name, id, body)| (name, *whose, (id, body))));
            }
            rows.sort_by(|one, other| (&one.0, &one.2.0).cmp(&(&other.0, &other.2.0)));
            rows.truncate(asked.limit);
            rows.iter().map(|(_, whose, row)| entity(*whose, row)).collect()
        }

        /// Returns entities that have any of the words, best first.
        async fn searched(
            connection: &mut $connection,
            owners: &[(i64, MemoryOwner)],
            asked: &EntityQuery,
            words: Vec<String>,
        ) -> Result<Vec<Entity>, StoreError> {
            let mut three = owners.iter().map(|(owner, _)| *owner).chain([-1; 3]);
            let three: [i64; 3] = std::array::from_fn(|_| three.next().unwrap_or(-1));
            let (entities, length): (i64, f64) = query_as(
                "SELECT count(*), CAST(coalesce(avg(words), 1) AS DOUBLE PRECISION) FROM (
                     SELECT words FROM graph_entities WHERE owner IN ($1, $2, $3) LIMIT $4) AS counted",
            )
            .bind(three[0])
            .bind(three[1])
            .bind(three[2])
            .bind(COUNTED)
            .fetch_one(&mut *connection)
            .await
            .map_err($failed(READ))?;
            let entities: u64 = row::count(entities)?;
            let common = query_words::common(entities);
            let counts: Vec<(String, i64)> = query_as(COUNT_WORDS)
                .bind(three[0])
                .bind(three[1])
                .bind(three[2])
                .bind(row::text(&words)?)
                .bind(row::number(common + 1))
                .fetch_all(&mut *connection)
                .await
                .map_err($failed(READ))?;
            let counted: Vec<(String, u64)> = counts
                .into_iter()
                .map(|(word, count)| Ok((word, row::count(count)?)))
                .collect::<Result<_, StoreError>>()?;
            let mut telling = query_words::telling(&counted, common);
            if telling.is_empty() {
                telling = query_words::rarest(counted);
            }
            let telling_words: Vec<&String> = telling.iter().map(|(word, _)| word).collect();
            let postings = query_as(POSTINGS)
                .bind(three[0])
                .bind(three[1])
                .bind(three[2])
                .bind(row::text(&telling_words)?)
                .bind(asked.kind.as_deref())
                .bind(asked.as_of.map(|at| at.0))
                .bind(row::number(common.saturating_mul(32)))
                .fetch_all(&mut *connection)
                .await
                .map_err($failed(READ))?;
            let best = rank::best(postings, &telling, entities, length, asked.limit);
            let mut found: HashMap<EntityId, Entity> = HashMap::new();
            for (owner, whose) in owners {
                let ids: Vec<String> =
                    best.iter().filter(|(of, _)| of == owner).map(|(_, id)| id.clone()).collect();
                let loaded = load(connection, *owner, *whose, &ids, asked.as_of).await?;
                found.extend(loaded.into_iter().map(|entity| (entity.id, entity)));
            }
            let id = |(_, id): &(i64, String)| row::word::<EntityId>("an entity's id", id);
            let ids: Vec<EntityId> = best.iter().map(id).collect::<Result<_, _>>()?;
            Ok(ids.into_iter().filter_map(|id| found.remove(&id)).collect())
        }

        /// Walks from entities of one owner, and collects what it reaches.
        async fn walk(connection: &mut $connection, owner: i64, whose: MemoryOwner, asked: &GraphWalk, walked: &mut Walked) -> Result<(), StoreError> {
            let ids: Vec<String> = asked.from.iter().map(EntityId::to_string).collect();
            let mut edge = load(connection, owner, whose, &ids, asked.as_of).await?;
            let mut seen: HashSet<EntityId> = HashSet::new();
            let mut known: HashSet<RelationId> = HashSet::new();
            edge.retain(|entity| seen.insert(entity.id));
            let mut relations: Vec<Relation> = Vec::new();
            for step in 0..=asked.depth {
                let ids: Vec<String> = edge.iter().map(|entity| entity.id.to_string()).collect();
                walked.entities.append(&mut edge);
                if ids.is_empty() || step == asked.depth {
                    break;
                }
                let mut rows: Vec<RelationRow> = Vec::new();
                for sql in [$out, $into] {
                    let found: Vec<RelationRow> = query_as(sql)
                        .bind(owner)
                        .bind(row::text(&ids)?)
                        .bind(asked.as_of.map(|at| at.0))
                        .bind(row::number(asked.most_each + 1))
                        .fetch_all(&mut *connection)
                        .await
                        .map_err($failed(READ))?;
                    // One more than is followed says that there are more.
                    let mut each: HashMap<String, usize> = HashMap::new();
                    for row in found {
                        let end = if sql == $out { &row.1 } else { &row.2 };
                        let count = each.entry(end.clone()).or_default();
                        *count += 1;
                        if *count > asked.most_each {
                            walked.is_cut = true;
                        } else {
                            rows.push(row);
                        }
                    }
                }
                let mut next: Vec<String> = Vec::new();
                for row in &rows {
                    let relation = relation(whose, row)?;
                    for end in [relation.source, relation.target] {
                        if seen.contains(&end) {
                            continue;
                        }
                        if walked.entities.len() + next.len() >= asked.most_entities {
                            walked.is_cut = true;
                            continue;
                        }
                        seen.insert(end);
                        next.push(end.to_string());
                    }
                    if known.insert(relation.id) {
                        relations.push(relation);
                    }
                }
                edge = load(connection, owner, whose, &next, asked.as_of).await?;
            }
            // An end that was not there then, or is beyond the bounds, takes its relations along.
            let there: HashSet<EntityId> = walked.entities.iter().map(|entity| entity.id).collect();
            relations.retain(|relation| there.contains(&relation.source) && there.contains(&relation.target));
            walked.relations.append(&mut relations);
            Ok(())
        }
    };
}

pub(crate) use graph_reading;
