CREATE TABLE artifacts (
    tenant  TEXT    NOT NULL,
    id      UUID    NOT NULL,
    session TEXT    NOT NULL,
    call    UUID    NOT NULL,
    bytes   BIGINT  NOT NULL,
    lines   BIGINT  NOT NULL,
    at      BIGINT  NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX artifacts_session ON artifacts (tenant, session, at, id);

-- The undo journal: `change` is all that was said of one, the other columns are what is looked for. `place` is
-- the digest of the place: a path can be longer than an index takes. A change that was withdrawn stays, unseen,
-- until its blobs can be given up.
CREATE TABLE undo (
    tenant       TEXT    NOT NULL,
    id           UUID    NOT NULL,
    session      TEXT    NOT NULL,
    call         UUID    NOT NULL,
    run          UUID,
    place        TEXT    NOT NULL,
    change       JSON    NOT NULL,
    before_blob  TEXT,
    before_bytes BIGINT,
    after_blob   TEXT,
    after_bytes  BIGINT,
    at           BIGINT  NOT NULL,
    undone       BIGINT,
    withdrawn    BOOLEAN NOT NULL DEFAULT FALSE,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX undo_session ON undo (tenant, session, at, id);
CREATE INDEX undo_call ON undo (tenant, call, at, id);
CREATE INDEX undo_run ON undo (tenant, run, at, id) WHERE run IS NOT NULL;
CREATE INDEX undo_place ON undo (tenant, place, at, id);
CREATE INDEX undo_order ON undo (tenant, at, id);
CREATE INDEX undo_before ON undo (before_blob) WHERE before_blob IS NOT NULL;
CREATE INDEX undo_after ON undo (after_blob) WHERE after_blob IS NOT NULL;
