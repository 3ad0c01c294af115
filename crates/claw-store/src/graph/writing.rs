//! Statements that change facts, for both databases.

/// Functions that keep, fold and remove facts over a connection.
macro_rules! graph_writing {
    ($connection:ty, database: $database:ty, failed: $failed:path) => {
        /// Finds the known entity that is meant, if there is one.
        async fn resolve(
            connection: &mut $connection,
            desk: &Desk,
            said: &EntityFacts,
        ) -> Result<Option<String>, StoreError> {
            if let Some(external) = &said.external_id {
                let known = query_scalar("SELECT id FROM graph_entities WHERE owner = $1 AND external_id = $2")
                    .bind(desk.owner)
                    .bind(external)
                    .fetch_optional(&mut *connection)
                    .await
                    .map_err($failed(WRITE))?;
                if known.is_some() {
                    return Ok(known);
                }
            }
            // Two external ids are two things, whatever their names.
            query_scalar(
                "SELECT e.id FROM graph_names AS n JOIN graph_entities AS e ON e.owner = n.owner AND e.id = n.entity
                 WHERE n.owner = $1 AND n.key = $2 AND n.kind = $3 AND ($4 IS NULL OR e.external_id IS NULL)
                 ORDER BY n.is_alias, e.id LIMIT 1",
            )
            .bind(desk.owner)
            .bind(same_name::key(&said.name))
            .bind(&said.kind)
            .bind(said.external_id.as_deref())
            .fetch_optional(connection)
            .await
            .map_err($failed(WRITE))
        }

        /// Stores a mention of an entity; returns its id, and whether it is new.
        async fn keep_entity(
            connection: &mut $connection,
            desk: &Desk,
            said: &EntityFacts,
            source: Option<&GraphSource>,
        ) -> Result<(EntityId, bool), StoreError> {
            let known = resolve(connection, desk, said).await?;
            let is_new = known.is_none();
            let id = known.unwrap_or_else(|| EntityId::new().to_string());
            let body = row::text(said)?;
            mention(connection, desk, NewMention { fact: &id, is_relation: false, body, source }).await?;
            settle_entity(connection, &desk.tenant, desk.owner, &id).await?;
            Ok((row::word("an entity's id", &id)?, is_new))
        }

        /// Records which known entities a new one may duplicate; returns how many.
        async fn pair_up(
            connection: &mut $connection,
            desk: &Desk,
            id: EntityId,
            said: &EntityFacts,
        ) -> Result<u64, StoreError> {
            let (own, key) = (id.to_string(), same_name::key(&said.name));
            let (from, to) = same_name::range(&key);
            let known: Vec<(String, String)> = query_as(
                "SELECT entity, key FROM graph_names
                 WHERE owner = $1 AND key >= $2 AND key < $3 AND kind = $4 AND entity <> $5 ORDER BY key, entity LIMIT $6",
            )
            .bind(desk.owner)
            .bind(from)
            .bind(to)
            .bind(&said.kind)
            .bind(own)
            .bind(COMPARED)
            .fetch_all(&mut *connection)
            .await
            .map_err($failed(WRITE))?;
            let alike = |(entity, other): &(String, String)| {
                // The same name and two external ids: a person may still see one thing.
                let likeness = if *other == key { Some(1.0) } else { same_name::likeness(&key, other) };
                likeness.map(|likeness| (entity.clone(), likeness))
            };
            let mut alike: Vec<(String, f64)> = known.iter().filter_map(alike).collect();
            alike.sort_by(|one, other| other.1.total_cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
            alike.dedup_by(|one, other| one.0 == other.0);
            alike.truncate(MOST_PAIRS);
            let mut paired = 0;
            for (other, likeness) in &alike {
                let (one, other) = ordered(id, row::word("an entity's id", other)?);
                let done = query(
                    "INSERT INTO graph_pairs (tenant, owner, one, other, likeness, apart)
                     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner, one, other) DO NOTHING",
                )
                .bind(&desk.tenant)
                .bind(desk.owner)
                .bind(one)
                .bind(other)
                .bind(likeness)
                .bind(false)
                .execute(&mut *connection)
                .await
                .map_err($failed(WRITE))?;
                paired += done.rows_affected();
            }
            Ok(paired)
        }

        /// Returns an entity of this owner that a relation names. If a person names it, that counts as a
        /// mention.
        async fn known_end(
            connection: &mut $connection,
            desk: &Desk,
            id: EntityId,
        ) -> Result<EntityId, StoreError> {
            let body: Option<String> = query_scalar("SELECT body FROM graph_entities WHERE owner = $1 AND id = $2")
                .bind(desk.owner)
                .bind(id.to_string())
                .fetch_optional(&mut *connection)
                .await
                .map_err($failed(WRITE))?;
            let body = body.ok_or_else(|| no_entity(id))?;
            if desk.by_hand {
                let known: Known<EntityFacts> = row::json("an entity", &body)?;
                let said =
                    EntityFacts { confidence: 0.0, ..EntityFacts::new(known.said.name, known.said.kind) };
                let (fact, body) = (&id.to_string(), row::text(&said)?);
                mention(connection, desk, NewMention { fact, is_relation: false, body, source: None }).await?;
                settle_entity(connection, &desk.tenant, desk.owner, &id.to_string()).await?;
            }
            Ok(id)
        }

        /// Stores a mention of a relation between two existing entities.
        async fn keep_relation(
            connection: &mut $connection,
            desk: &Desk,
            ends: Ends<'_>,
            said: &RelationFacts,
            place: Option<&GraphSource>,
        ) -> Result<(), StoreError> {
            let known: Vec<(String, String)> = query_as(
                "SELECT id, body FROM graph_relations
                 WHERE owner = $1 AND source = $2 AND target = $3 AND kind = $4 ORDER BY id",
            )
            .bind(desk.owner)
            .bind(ends.source)
            .bind(ends.target)
            .bind(&said.kind)
            .fetch_all(&mut *connection)
            .await
            .map_err($failed(WRITE))?;
            let mut id = None;
            for (known, body) in &known {
                let before: Known<RelationFacts> = row::json("a relation", body)?;
                if id.is_none() && before.said.may_be(said) {
                    id = Some(known.clone());
                }
            }
            let id = id.unwrap_or_else(|| RelationId::new().to_string());
            let body = row::text(said)?;
            mention(connection, desk, NewMention { fact: &id, is_relation: true, body, source: place }).await?;
            settle_relation(connection, &desk.tenant, desk.owner, &id, ends).await
        }

        /// Stores a mention of a fact, once.
        async fn mention(
            connection: &mut $connection,
            desk: &Desk,
            NewMention { fact, is_relation, body, source }: NewMention<'_>,
        ) -> Result<(), StoreError> {
            let (first, last) = source.map_or((0, 0), |source| (source.start_line, source.end_line));
            let path = source.map_or(desk.path.as_str(), |source| source.path.as_str());
            query(
                "INSERT INTO graph_mentions
                     (tenant, owner, id, fact, is_relation, by_hand, path, first_line, last_line, body, at, model, run)
                 SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 WHERE NOT EXISTS (
                     SELECT 1 FROM graph_mentions WHERE owner = $2 AND fact = $4 AND by_hand = $6 AND path = $7
                     AND first_line = $8 AND last_line = $9 AND body = $10
                 )",
            )
            .bind(&desk.tenant)
            .bind(desk.owner)
            .bind(EntityId::new().to_string())
            .bind(fact)
            .bind(is_relation)
            .bind(desk.by_hand)
            .bind(path)
            .bind(row::number(first))
            .bind(row::number(last))
            .bind(body)
            .bind(desk.at)
            .bind(desk.model.as_deref())
            .bind(desk.run)
            .execute(connection)
            .await
            .map_err($failed(WRITE))?;
            Ok(())
        }

        async fn mentions(
            connection: &mut $connection,
            owner: i64,
            fact: &str,
        ) -> Result<Vec<MentionRow>, StoreError> {
            query_as(
                "SELECT path, first_line, last_line, body, model, run FROM graph_mentions
                 WHERE owner = $1 AND fact = $2 ORDER BY by_hand, at, id",
            )
            .bind(owner)
            .bind(fact)
            .fetch_all(connection)
            .await
            .map_err($failed(WRITE))
        }

        /// Recomputes an entity from its mentions; without any it is removed.
        async fn settle_entity(connection: &mut $connection, tenant: &str, owner: i64, id: &str) -> Result<(), StoreError> {
            let rows = mentions(connection, owner, id).await?;
            let before: Option<String> = query_scalar("SELECT body FROM graph_entities WHERE owner = $1 AND id = $2")
                .bind(owner)
                .bind(id)
                .fetch_optional(&mut *connection)
                .await
                .map_err($failed(WRITE))?;
            let name = match &before {
                Some(body) => Some(row::json::<Known<EntityFacts>>("an entity", body)?.said.name),
                None => None,
            };
            let Some(known) = folded(&rows, |said| EntityFacts::fold(said, name.as_deref()))? else {
                return remove_entity(connection, owner, id).await.map(drop);
            };
            let body = row::text(&known)?;
            if before.as_deref() == Some(body.as_str()) {
                return Ok(());
            }
            let (said, words) = (&known.said, rank::words_of(&known.said));
            query(
                "INSERT INTO graph_entities
                     (tenant, owner, id, kind, name, external_id, valid_from, valid_until, words, body)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                 ON CONFLICT (owner, id) DO UPDATE SET kind = excluded.kind, name = excluded.name,
                     external_id = excluded.external_id, valid_from = excluded.valid_from,
                     valid_until = excluded.valid_until, words = excluded.words, body = excluded.body",
            )
            .bind(tenant)
            .bind(owner)
            .bind(id)
            .bind(&said.kind)
            .bind(same_name::key(&said.name))
            .bind(said.external_id.as_deref())
            .bind(said.valid_from.map(|at| at.0))
            .bind(said.valid_until.map(|at| at.0))
            .bind(words.values().sum::<i64>())
            .bind(&body)
            .execute(&mut *connection)
            .await
            .map_err($failed(WRITE))?;
            for sql in [
                "DELETE FROM graph_names WHERE owner = $1 AND entity = $2",
                "DELETE FROM graph_words WHERE owner = $1 AND entity = $2",
            ] {
                query(sql).bind(owner).bind(id).execute(&mut *connection).await.map_err($failed(WRITE))?;
            }
            let mut keys: BTreeMap<String, bool> = said.aliases.iter().map(|alias| (same_name::key(alias), true)).collect();
            keys.insert(same_name::key(&said.name), false);
            QueryBuilder::<$database>::new("INSERT INTO graph_names (tenant, owner, key, entity, kind, is_alias) ")
                .push_values(&keys, |mut values, (key, is_alias)| {
                    values.push_bind(tenant).push_bind(owner).push_bind(key).push_bind(id);
                    values.push_bind(&said.kind).push_bind(*is_alias);
                })
                .build()
                .execute(&mut *connection)
                .await
                .map_err($failed(WRITE))?;
            write_words(connection, tenant, owner, id, &words).await
        }

        /// Stores the words of an entity that has none.
        async fn write_words(
            connection: &mut $connection,
            tenant: &str,
            owner: i64,
            id: &str,
            words: &BTreeMap<String, i64>,
        ) -> Result<(), StoreError> {
            if words.is_empty() {
                return Ok(());
            }
            QueryBuilder::<$database>::new("INSERT INTO graph_words (tenant, owner, word, entity, times) ")
                .push_values(words, |mut values, (word, times)| {
                    values.push_bind(tenant).push_bind(owner).push_bind(word).push_bind(id).push_bind(*times);
                })
                .build()
                .execute(connection)
                .await
                .map_err($failed(WRITE))?;
            Ok(())
        }

        /// Gives entities that wait for their words their words, of one owner; returns how many.
        async fn word(connection: &mut $connection) -> Result<u64, StoreError> {
            // Who changes entities of an owner holds the owner's row.
            let owner: Option<i64> = query_scalar(
                "UPDATE document_owners SET passages = passages WHERE id = (
                     SELECT min(owner) FROM graph_entities WHERE words < 0
                 ) RETURNING id",
            )
            .fetch_optional(&mut *connection)
            .await
            .map_err($failed(WRITE))?;
            let Some(owner) = owner else { return Ok(0) };
            let waiting: Vec<(String, String, String)> = query_as(
                "SELECT tenant, id, body FROM graph_entities WHERE owner = $1 AND words < 0 ORDER BY id LIMIT 1000",
            )
            .bind(owner)
            .fetch_all(&mut *connection)
            .await
            .map_err($failed(WRITE))?;
            for (tenant, id, body) in &waiting {
                let known: Known<EntityFacts> = row::json("an entity", body)?;
                let words = rank::words_of(&known.said);
                query("UPDATE graph_entities SET words = $3 WHERE owner = $1 AND id = $2")
                    .bind(owner)
                    .bind(id)
                    .bind(words.values().sum::<i64>())
                    .execute(&mut *connection)
                    .await
                    .map_err($failed(WRITE))?;
                write_words(connection, tenant, owner, id, &words).await?;
            }
            Ok(waiting.len() as u64)
        }

        /// Recomputes a relation from its mentions; without any it is removed.
        async fn settle_relation(
            connection: &mut $connection,
            tenant: &str,
            owner: i64,
            id: &str,
            Ends { source, target }: Ends<'_>,
        ) -> Result<(), StoreError> {
            let rows = mentions(connection, owner, id).await?;
            let Some(known) = folded(&rows, RelationFacts::fold)? else {
                query("DELETE FROM graph_relations WHERE owner = $1 AND id = $2")
                    .bind(owner)
                    .bind(id)
                    .execute(connection)
                    .await
                    .map_err($failed(WRITE))?;
                return Ok(());
            };
            query(
                "INSERT INTO graph_relations
                     (tenant, owner, id, source, kind, target, confidence, valid_from, valid_until, body)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                 ON CONFLICT (owner, id) DO UPDATE SET source = excluded.source, target = excluded.target,
                     confidence = excluded.confidence, valid_from = excluded.valid_from,
                     valid_until = excluded.valid_until, body = excluded.body",
            )
            .bind(tenant)
            .bind(owner)
            .bind(id)
            .bind(source)
            .bind(&known.said.kind)
            .bind(target)
            .bind(known.said.confidence)
            .bind(known.said.valid_from.map(|at| at.0))
            .bind(known.said.valid_until.map(|at| at.0))
            .bind(row::text(&known)?)
            .execute(connection)
            .await
            .map_err($failed(WRITE))?;
            Ok(())
        }

        /// Removes an entity, its relations and all their mentions. Names, words and pairs go with it.
        async fn remove_entity(connection: &mut $connection, owner: i64, id: &str) -> Result<bool, StoreError> {
            let mut removed = 0;
            for sql in [
                "DELETE FROM graph_mentions WHERE owner = $1 AND (fact = $2 OR fact IN (
                     SELECT id FROM graph_relations WHERE owner = $1 AND source = $2
                     UNION ALL SELECT id FROM graph_relations WHERE owner = $1 AND target = $2))",
                "DELETE FROM graph_relations WHERE owner = $1 AND (source = $2 OR target = $2)",
                "DELETE FROM graph_entities WHERE owner = $1 AND id = $2",
            ] {
                let done =
                    query(sql).bind(owner).bind(id).execute(&mut *connection).await.map_err($failed(WRITE))?;
                removed = done.rows_affected();
            }
            Ok(removed > 0)
        }

        /// Removes the mentions of a document; returns the facts concerned, relations first.
        async fn unsay(
            connection: &mut $connection,
            owner: i64,
            path: &str,
        ) -> Result<BTreeSet<(bool, String)>, StoreError> {
            let facts: Vec<(bool, String)> = query_as(
                "DELETE FROM graph_mentions WHERE owner = $1 AND path = $2 AND by_hand = $3
                 RETURNING NOT is_relation, fact",
            )
            .bind(owner)
            .bind(path)
            .bind(false)
            .fetch_all(connection)
            .await
            .map_err($failed(WRITE))?;
            Ok(facts.into_iter().collect())
        }

        /// Recomputes facts from their remaining mentions.
        async fn settle(connection: &mut $connection, tenant: &str, owner: i64, facts: &BTreeSet<(bool, String)>) -> Result<(), StoreError> {
            for (is_entity, id) in facts {
                if *is_entity {
                    settle_entity(connection, tenant, owner, id).await?;
                    continue;
                }
                let ends: Option<(String, String)> =
                    query_as("SELECT source, target FROM graph_relations WHERE owner = $1 AND id = $2")
                        .bind(owner)
                        .bind(id)
                        .fetch_optional(&mut *connection)
                        .await
                        .map_err($failed(WRITE))?;
                if let Some((source, target)) = ends {
                    let ends = Ends { source: &source, target: &target };
                    settle_relation(connection, tenant, owner, id, ends).await?;
                }
            }
            Ok(())
        }

        /// Locks the row of an owner, making it if missing; returns the owner's number.
        async fn hold_owner(connection: &mut $connection, owner: &GraphOwner) -> Result<i64, StoreError> {
            query_scalar(
                "INSERT INTO document_owners (tenant, agent, for_user) VALUES ($1, $2, $3)
                 ON CONFLICT (tenant, agent, for_user) DO UPDATE SET passages = document_owners.passages RETURNING id",
            )
            .bind(owner.tenant.as_str())
            .bind(document_rules::agent(owner.agent.as_ref()))
            .bind(document_rules::user(owner.user.as_ref()))
            .fetch_one(connection)
            .await
            .map_err($failed(WRITE))
        }

        /// Merges relations that became the same by a merge of entities, and removes those that lead back to
        /// their own entity.
        async fn unite_relations(connection: &mut $connection, tenant: &str, owner: i64, entity: &str) -> Result<(), StoreError> {
            let rows: Vec<RelationRow> = query_as(
                "SELECT id, source, target, body FROM graph_relations
                 WHERE owner = $1 AND (source = $2 OR target = $2) ORDER BY id",
            )
            .bind(owner)
            .bind(entity)
            .fetch_all(&mut *connection)
            .await
            .map_err($failed(WRITE))?;
            let mut kept: Vec<(RelationRow, RelationFacts)> = Vec::new();
            for relation in rows {
                let known: Known<RelationFacts> = row::json("a relation", &relation.3)?;
                let is_same = |(other, said): &&(RelationRow, RelationFacts)| {
                    (&other.1, &other.2) == (&relation.1, &relation.2) && said.may_be(&known.said)
                };
                let into = kept.iter().find(is_same).map(|(other, _)| other.0.clone());
                let sql = match &into {
                    Some(_) => "UPDATE graph_mentions SET fact = $3 WHERE owner = $1 AND fact = $2",
                    None if relation.1 == relation.2 => {
                        "DELETE FROM graph_mentions WHERE owner = $1 AND fact = $2 AND fact <> $3"
                    }
                    None => {
                        kept.push((relation, known.said));
                        continue;
                    }
                };
                query(sql)
                    .bind(owner)
                    .bind(&relation.0)
                    .bind(into.as_deref().unwrap_or_default())
                    .execute(&mut *connection)
                    .await
                    .map_err($failed(WRITE))?;
                for id in [Some(&relation.0), into.as_ref()].into_iter().flatten() {
                    let ends = Ends { source: &relation.1, target: &relation.2 };
                    settle_relation(connection, tenant, owner, id, ends).await?;
                }
            }
            Ok(())
        }
    };
}

pub(crate) use graph_writing;
