-- Runs that are parked, cancelled, and part of a tree. SQLite changes no CHECK, so the table is made anew.
CREATE TABLE jobs_new (
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
    state        TEXT    NOT NULL CHECK (state IN ('pending', 'leased', 'parked', 'done', 'cancelled', 'dead')),
    attempts     INTEGER NOT NULL DEFAULT 0,
    error        TEXT,
    node         TEXT,
    boot         BLOB,
    until        INTEGER,
    -- The job that started this one, the first of the tree (itself where nobody did), and how many are above it.
    parent       BLOB,
    root         BLOB    NOT NULL,
    depth        INTEGER NOT NULL,
    -- How many of the attempts ended with parking.
    parks        INTEGER NOT NULL DEFAULT 0,
    cancel_at    INTEGER,
    cancel_by    TEXT
) STRICT;

INSERT INTO jobs_new (position, id, tenant, lane, session, priority, payload, accepted, visible, max_attempts,
                      state, attempts, error, node, boot, until, root, depth)
SELECT position, id, tenant, lane, session, priority, payload, accepted, visible, max_attempts,
       state, attempts, error, node, boot, until, id, 0
FROM jobs;
DROP TABLE jobs;
ALTER TABLE jobs_new RENAME TO jobs;

-- The order of claims, with all that a claim looks at before it takes one.
CREATE INDEX jobs_next ON jobs (lane, priority DESC, accepted, position, visible, tenant, session)
    WHERE state = 'pending';
-- Parked jobs by the time from which they can be claimed.
CREATE INDEX jobs_due ON jobs (visible, lane) WHERE state = 'parked';
-- The jobs of a session that are not over, in the order in which they run.
CREATE INDEX jobs_open ON jobs (tenant, session, position)
    WHERE state IN ('pending', 'leased', 'parked') AND session IS NOT NULL;
CREATE INDEX jobs_leases ON jobs (until) WHERE state = 'leased';
CREATE INDEX jobs_count ON jobs (tenant, lane, state) WHERE state IN ('pending', 'leased', 'parked', 'dead');
-- One run per session at a time, whoever claims. A parked one counts.
CREATE UNIQUE INDEX jobs_session ON jobs (tenant, session)
    WHERE state IN ('leased', 'parked') AND session IS NOT NULL;
-- Lists: of a tenant, of a session, of a tree, and the children of a job.
CREATE INDEX jobs_listed ON jobs (tenant, position);
CREATE INDEX jobs_of_session ON jobs (tenant, session, position) WHERE session IS NOT NULL;
CREATE INDEX jobs_of_tree ON jobs (tenant, root, position);
CREATE INDEX jobs_children ON jobs (tenant, parent) WHERE parent IS NOT NULL;

-- The run whose call asks.
ALTER TABLE approvals ADD COLUMN run BLOB;
CREATE INDEX approvals_run ON approvals (tenant, run) WHERE state = 'pending' AND run IS NOT NULL;

-- What a tree of runs cost is read by its runs.
CREATE INDEX usage_run ON usage (tenant, run) WHERE run IS NOT NULL;
