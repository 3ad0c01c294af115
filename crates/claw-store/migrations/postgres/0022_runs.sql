-- Runs that are parked, cancelled, and part of a tree.
ALTER TABLE jobs DROP CONSTRAINT jobs_state_check;
ALTER TABLE jobs ADD CONSTRAINT jobs_state_check
    CHECK (state IN ('pending', 'leased', 'parked', 'done', 'cancelled', 'dead'));
-- The job that started this one, the first of the tree (itself where nobody did), and how many are above it.
ALTER TABLE jobs ADD COLUMN parent UUID;
ALTER TABLE jobs ADD COLUMN root UUID;
ALTER TABLE jobs ADD COLUMN depth INTEGER NOT NULL DEFAULT 0;
-- How many of the attempts ended with parking.
ALTER TABLE jobs ADD COLUMN parks INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN cancel_at BIGINT;
ALTER TABLE jobs ADD COLUMN cancel_by TEXT;
UPDATE jobs SET root = id;
ALTER TABLE jobs ALTER COLUMN root SET NOT NULL;

-- Parked jobs by the time from which they can be claimed.
CREATE INDEX jobs_due ON jobs (visible, lane) WHERE state = 'parked';
-- The jobs of a session that are not over, in the order in which they run.
CREATE INDEX jobs_open ON jobs (tenant, session, position)
    WHERE state IN ('pending', 'leased', 'parked') AND session IS NOT NULL;
DROP INDEX jobs_count;
CREATE INDEX jobs_count ON jobs (tenant, lane, state) WHERE state IN ('pending', 'leased', 'parked', 'dead');
-- One run per session at a time, whoever claims. A parked one counts.
DROP INDEX jobs_session;
CREATE UNIQUE INDEX jobs_session ON jobs (tenant, session)
    WHERE state IN ('leased', 'parked') AND session IS NOT NULL;
-- Lists: of a tenant, of a session, of a tree, and the children of a job.
CREATE INDEX jobs_listed ON jobs (tenant, position);
CREATE INDEX jobs_of_session ON jobs (tenant, session, position) WHERE session IS NOT NULL;
CREATE INDEX jobs_of_tree ON jobs (tenant, root, position);
CREATE INDEX jobs_children ON jobs (tenant, parent) WHERE parent IS NOT NULL;

-- Work may have become claimable: it waits again, or its session is free.
DROP TRIGGER jobs_freed ON jobs;
CREATE TRIGGER jobs_freed AFTER UPDATE OF state ON jobs
    FOR EACH ROW WHEN (NEW.state = 'pending' AND OLD.state <> 'pending'
        OR NEW.state IN ('done', 'cancelled', 'dead') AND NEW.session IS NOT NULL)
    EXECUTE FUNCTION clawsmith_changed('work');
-- A worker has a run that is to end.
CREATE TRIGGER jobs_cancelled AFTER UPDATE OF cancel_at ON jobs
    FOR EACH ROW WHEN (OLD.cancel_at IS NULL AND NEW.cancel_at IS NOT NULL)
    EXECUTE FUNCTION clawsmith_changed('work');

-- The run whose call asks.
ALTER TABLE approvals ADD COLUMN run UUID;
CREATE INDEX approvals_run ON approvals (tenant, run) WHERE state = 'pending' AND run IS NOT NULL;

-- What a tree of runs cost is read by its runs.
CREATE INDEX usage_run ON usage (tenant, run) WHERE run IS NOT NULL;

-- A session is told of by its key. Neither a tenant nor a key has blanks, and both are short.
CREATE FUNCTION clawsmith_session_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('clawsmith', 'sessions ' || NEW.tenant || ' ' || NEW.session);
    RETURN NULL;
END
$$;
DROP TRIGGER events_told ON events;
CREATE TRIGGER events_told AFTER INSERT ON events
    FOR EACH ROW EXECUTE FUNCTION clawsmith_session_changed();
