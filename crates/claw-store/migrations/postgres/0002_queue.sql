CREATE TABLE jobs (
    position     BIGINT   NOT NULL GENERATED ALWAYS AS IDENTITY,
    id           UUID     NOT NULL PRIMARY KEY,
    tenant       TEXT     NOT NULL,
    lane         TEXT     NOT NULL,
    session      TEXT,
    priority     SMALLINT NOT NULL,
    payload      JSON     NOT NULL,
    accepted     BIGINT   NOT NULL,
    visible      BIGINT   NOT NULL,
    max_attempts INTEGER  NOT NULL,
    state        TEXT     NOT NULL CHECK (state IN ('pending', 'leased', 'done', 'dead')),
    attempts     INTEGER  NOT NULL DEFAULT 0,
    error        TEXT,
    node         TEXT,
    boot         UUID,
    until        BIGINT
);

-- In the order of claiming; `lane` and `visible` let a claim pass over what is not for it without the row.
CREATE INDEX jobs_next ON jobs (priority DESC, accepted, position, lane, visible) WHERE state = 'pending';
CREATE INDEX jobs_leases ON jobs (until) WHERE state = 'leased';
CREATE INDEX jobs_count ON jobs (tenant, lane, state) WHERE state <> 'done';
-- One run per session at a time, whoever claims.
CREATE UNIQUE INDEX jobs_session ON jobs (tenant, session) WHERE state = 'leased' AND session IS NOT NULL;

-- Work may have become claimable: it waits, or its session is free again.
CREATE TRIGGER jobs_accepted AFTER INSERT ON jobs
    FOR EACH ROW EXECUTE FUNCTION clawsmith_changed('work');
CREATE TRIGGER jobs_freed AFTER UPDATE OF state ON jobs
    FOR EACH ROW WHEN (OLD.state = 'leased' AND (NEW.state = 'pending' OR NEW.session IS NOT NULL))
    EXECUTE FUNCTION clawsmith_changed('work');
