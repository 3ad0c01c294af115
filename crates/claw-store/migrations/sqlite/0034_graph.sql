-- Facts of knowledge graphs, by the owner of the documents that say them. A fact is known by its mentions: what one
-- document, or one person, says of it. `body` is JSON; the other columns are what it is looked for by.
CREATE TABLE graph_entities (
    tenant      TEXT    NOT NULL,
    owner       INTEGER NOT NULL REFERENCES document_owners (id),
    id          TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    -- The name without case, accents and punctuation.
    name        TEXT    NOT NULL,
    external_id TEXT,
    valid_from  INTEGER,
    valid_until INTEGER,
    -- How many words find it.
    words       INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    PRIMARY KEY (owner, id)
) STRICT;

CREATE UNIQUE INDEX graph_entities_external ON graph_entities (owner, external_id) WHERE external_id IS NOT NULL;
CREATE INDEX graph_entities_name ON graph_entities (owner, name, id);

-- Names and aliases as they are compared.
CREATE TABLE graph_names (
    tenant   TEXT    NOT NULL,
    owner    INTEGER NOT NULL,
    key      TEXT    NOT NULL,
    entity   TEXT    NOT NULL,
    kind     TEXT    NOT NULL,
    is_alias INTEGER NOT NULL,
    PRIMARY KEY (owner, key, entity),
    FOREIGN KEY (owner, entity) REFERENCES graph_entities (owner, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX graph_names_entity ON graph_names (owner, entity);

-- The words that find an entity, split and folded as those of passages.
CREATE TABLE graph_words (
    tenant TEXT    NOT NULL,
    owner  INTEGER NOT NULL,
    word   TEXT    NOT NULL,
    entity TEXT    NOT NULL,
    times  INTEGER NOT NULL,
    PRIMARY KEY (owner, word, entity),
    FOREIGN KEY (owner, entity) REFERENCES graph_entities (owner, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX graph_words_entity ON graph_words (owner, entity);

CREATE TABLE graph_relations (
    tenant      TEXT    NOT NULL,
    owner       INTEGER NOT NULL,
    id          TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    kind        TEXT    NOT NULL,
    target      TEXT    NOT NULL,
    confidence  REAL    NOT NULL,
    valid_from  INTEGER,
    valid_until INTEGER,
    body        TEXT    NOT NULL,
    PRIMARY KEY (owner, id),
    FOREIGN KEY (owner, source) REFERENCES graph_entities (owner, id),
    FOREIGN KEY (owner, target) REFERENCES graph_entities (owner, id)
) STRICT;

-- The surest relations of an entity first, so that a walk reads no more of a hub than it follows.
CREATE INDEX graph_relations_source ON graph_relations (owner, source, confidence DESC, id);
CREATE INDEX graph_relations_target ON graph_relations (owner, target, confidence DESC, id);

CREATE TABLE graph_mentions (
    tenant      TEXT    NOT NULL,
    owner       INTEGER NOT NULL REFERENCES document_owners (id),
    id          TEXT    NOT NULL,
    -- An entity or a relation.
    fact        TEXT    NOT NULL,
    is_relation INTEGER NOT NULL,
    -- Said by a person. A document replaces only what it said itself.
    by_hand     INTEGER NOT NULL,
    -- Empty where no document is named.
    path        TEXT    NOT NULL,
    first_line  INTEGER NOT NULL,
    last_line   INTEGER NOT NULL,
    body        TEXT    NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (owner, id)
) STRICT;

CREATE INDEX graph_mentions_fact ON graph_mentions (owner, fact);
CREATE INDEX graph_mentions_path ON graph_mentions (owner, path, first_line);

-- Entities that may be one; `apart` once a person said that they are two. `one` is the smaller id.
CREATE TABLE graph_pairs (
    tenant   TEXT    NOT NULL,
    owner    INTEGER NOT NULL,
    one      TEXT    NOT NULL,
    other    TEXT    NOT NULL,
    likeness REAL    NOT NULL,
    apart    INTEGER NOT NULL,
    PRIMARY KEY (owner, one, other),
    FOREIGN KEY (owner, one) REFERENCES graph_entities (owner, id) ON DELETE CASCADE,
    FOREIGN KEY (owner, other) REFERENCES graph_entities (owner, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX graph_pairs_other ON graph_pairs (owner, other);

-- `graphed` is the version whose facts are in the graph. `graph_after` is when an extractor may take it up (again).
ALTER TABLE documents ADD COLUMN graphed INTEGER;
ALTER TABLE documents ADD COLUMN graph_after INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN graph_tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN graph_error TEXT;

CREATE INDEX documents_unextracted ON documents (graph_after)
WHERE text IS NOT NULL AND shelf = 'memory' AND (graphed IS NULL OR graphed <> version);
CREATE INDEX documents_unswept ON documents (id) WHERE text IS NULL AND graphed IS NOT NULL;
