-- The words of a memory document are indexed with the write; vectors of its passages follow. `embedded` is the model
-- whose vectors all its passages have. `embed_after` is when it may be taken up by an indexer (again).
ALTER TABLE documents ADD COLUMN embedded TEXT;
ALTER TABLE documents ADD COLUMN embed_after INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN embed_tries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE documents ADD COLUMN embed_error TEXT;

CREATE INDEX documents_unembedded ON documents (embedded, embed_after) WHERE text IS NOT NULL AND shelf = 'memory';

ALTER TABLE passages ADD COLUMN heading BLOB NOT NULL DEFAULT x'';
-- SHA-256 of what a vector is made of.
ALTER TABLE passages ADD COLUMN hash BLOB NOT NULL DEFAULT x'';

-- Vectors by the hash of their text: numbers of 32 bits, little-endian, of length 1.
CREATE TABLE embeddings (
    id     INTEGER NOT NULL PRIMARY KEY,
    tenant TEXT    NOT NULL,
    model  TEXT    NOT NULL,
    hash   BLOB    NOT NULL,
    vector BLOB    NOT NULL,
    at     INTEGER NOT NULL,
    UNIQUE (tenant, model, hash)
) STRICT;

-- The vector of each passage. Numbers only rise, so that who has read up to one reads on from there.
CREATE TABLE passage_vectors (
    id        INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    tenant    TEXT    NOT NULL,
    passage   INTEGER NOT NULL UNIQUE,
    owner     INTEGER NOT NULL,
    model     TEXT    NOT NULL,
    embedding INTEGER NOT NULL REFERENCES embeddings (id)
) STRICT;

CREATE INDEX passage_vectors_owner ON passage_vectors (owner, model, id);

-- Words are other ones now: everything is indexed again.
DELETE FROM passage_words;
DELETE FROM passages;
UPDATE document_owners SET passages = 0;
UPDATE documents SET mark = NULL;
UPDATE documents SET mark = id WHERE text IS NOT NULL AND shelf = 'memory';
