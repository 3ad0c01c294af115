-- Whose documents: an agent's own, where `for_user` is empty, or those for one user. `passages` counts what of
-- them can be found.
CREATE TABLE document_owners (
    id       BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant   TEXT   NOT NULL,
    agent    TEXT   NOT NULL,
    for_user TEXT   NOT NULL,
    passages BIGINT NOT NULL DEFAULT 0 CHECK (passages >= 0),
    UNIQUE (tenant, agent, for_user)
) WITH (fillfactor = 50);

CREATE SEQUENCE document_marks;

-- A removed document stays without its text, so that its version goes on from there. `text` is BYTEA, here and
-- below: TEXT refuses a NUL.
CREATE TABLE documents (
    id       BIGINT NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant   TEXT   NOT NULL,
    agent    TEXT   NOT NULL,
    for_user TEXT   COLLATE "C" NOT NULL,
    owner    BIGINT NOT NULL REFERENCES document_owners (id),
    shelf    TEXT   NOT NULL CHECK (shelf IN ('context', 'memory')),
    path     TEXT   COLLATE "C" NOT NULL,
    version  BIGINT NOT NULL,
    text     BYTEA,
    at       BIGINT NOT NULL,
    -- Since when it waits to be indexed; smaller is longer.
    mark     BIGINT,
    UNIQUE (tenant, agent, shelf, path, for_user)
);

CREATE INDEX documents_marked ON documents (mark) WHERE mark IS NOT NULL;

-- A document changed. That it was indexed is no change of it.
CREATE TRIGGER documents_changed AFTER INSERT OR UPDATE OF version ON documents
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('documents');

-- `words` comes split and folded, each with the number of whose it is before it, so that a search reads nothing
-- of others.
CREATE TABLE passages (
    id         BIGINT   NOT NULL GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant     TEXT     NOT NULL,
    document   BIGINT   NOT NULL REFERENCES documents (id),
    first_line BIGINT   NOT NULL,
    last_line  BIGINT   NOT NULL,
    text       BYTEA    NOT NULL,
    words      TSVECTOR NOT NULL
);

CREATE INDEX passages_document ON passages (document);
-- Without a list of what is not sorted in yet: every search would read through it.
CREATE INDEX passages_words ON passages USING gin (words) WITH (fastupdate = off);
