CREATE TABLE artifacts (
    tenant  TEXT    NOT NULL,
    id      BLOB    NOT NULL,
    session TEXT    NOT NULL,
    call    BLOB    NOT NULL,
    bytes   INTEGER NOT NULL,
    lines   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX artifacts_session ON artifacts (tenant, session, at, id);

-- The undo journal: `change` is all that was said of one, the other columns are what is looked for. `place` is
-- the digest of the place: a path can be longer than an index takes. A change that was withdrawn stays, unseen,
-- until its blobs can be given up.
CREATE TABLE undo (
    tenant       TEXT    NOT NULL,
    id           BLOB    NOT NULL,
    session      TEXT    NOT NULL,
    call         BLOB    NOT NULL,
    run          BLOB,
    place        TEXT    NOT NULL,
    change       TEXT    NOT NULL,
    before_blob  TEXT,
    before_bytes INTEGER,
    after_blob   TEXT,
    after_bytes  INTEGER,
    at           INTEGER NOT NULL,
    undone       INTEGER,
    withdrawn    INTEGER NOT NULL DEFAULT 0 CHECK (withdrawn IN (0, 1)),
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX undo_session ON undo (tenant, session, at, id);
CREATE INDEX undo_call ON undo (tenant, call, at, id);
CREATE INDEX undo_run ON undo (tenant, run, at, id) WHERE run IS NOT NULL;
CREATE INDEX undo_place ON undo (tenant, place, at, id);
CREATE INDEX undo_order ON undo (tenant, at, id);
CREATE INDEX undo_before ON undo (before_blob) WHERE before_blob IS NOT NULL;
CREATE INDEX undo_after ON undo (after_blob) WHERE after_blob IS NOT NULL;
