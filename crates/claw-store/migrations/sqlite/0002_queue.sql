CREATE TABLE jobs (
    position     INTEGER NOT NULL PRIMARY KEY,
    id           BLOB    NOT NULL UNIQUE,
    tenant       TEXT    NOT NULL,
    lane         TEXT    NOT NULL,
    session      TEXT,
    priority     INTEGER NOT NULL,
    payload      TEXT    NOT NULL,
    accepted     INTEGER NOT NULL,
    visible      INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'leased', 'done', 'dead')),
    attempts     INTEGER NOT NULL DEFAULT 0,
    error        TEXT,
    node         TEXT,
    boot         BLOB,
    until        INTEGER
) STRICT;

-- The order of claims, with all that a claim looks at before it takes one.
CREATE INDEX jobs_next ON jobs (lane, priority DESC, accepted, position, visible, tenant, session)
    WHERE state = 'pending';
CREATE INDEX jobs_leases ON jobs (until) WHERE state = 'leased';
CREATE INDEX jobs_count ON jobs (tenant, lane, state) WHERE state <> 'done';
-- One run per session at a time, whoever claims.
CREATE UNIQUE INDEX jobs_session ON jobs (tenant, session) WHERE state = 'leased' AND session IS NOT NULL;
