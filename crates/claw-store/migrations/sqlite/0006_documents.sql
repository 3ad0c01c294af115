-- Whose documents: an agent's own, where `for_user` is empty, or those for one user. `passages` counts what of
-- them can be found.
CREATE TABLE document_owners (
    id       INTEGER NOT NULL PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    agent    TEXT    NOT NULL,
    for_user TEXT    NOT NULL,
    passages INTEGER NOT NULL DEFAULT 0 CHECK (passages >= 0),
    UNIQUE (tenant, agent, for_user)
) STRICT;

-- A removed document stays without its text, so that its version goes on from there.
CREATE TABLE documents (
    id       INTEGER NOT NULL PRIMARY KEY,
    tenant   TEXT    NOT NULL,
    agent    TEXT    NOT NULL,
    for_user TEXT    NOT NULL,
    owner    INTEGER NOT NULL REFERENCES document_owners (id),
    shelf    TEXT    NOT NULL CHECK (shelf IN ('context', 'memory')),
    path     TEXT    NOT NULL,
    version  INTEGER NOT NULL,
    text     BLOB,
    at       INTEGER NOT NULL,
    -- Since when it waits to be indexed; smaller is longer.
    mark     INTEGER,
    UNIQUE (tenant, agent, shelf, path, for_user)
) STRICT;

CREATE INDEX documents_marked ON documents (mark) WHERE mark IS NOT NULL;

CREATE TABLE passages (
    id         INTEGER NOT NULL PRIMARY KEY,
    tenant     TEXT    NOT NULL,
    document   INTEGER NOT NULL REFERENCES documents (id),
    first_line INTEGER NOT NULL,
    last_line  INTEGER NOT NULL,
    text       BLOB    NOT NULL
) STRICT;

CREATE INDEX passages_document ON passages (document);

-- The words of passages, by the id of the passage. They come split and folded, each with the number of whose it
-- is before it, so that a search reads nothing of others. Only the words are kept, not what they were made of.
CREATE VIRTUAL TABLE passage_words USING fts5 (words, content = '', contentless_delete = 1, tokenize = 'ascii');
