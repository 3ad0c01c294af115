-- Limits of a key beyond its scopes: the agents that may be used with it, and its rate.
ALTER TABLE api_keys ADD COLUMN limits TEXT NOT NULL DEFAULT '{}';

-- The user that a run is for, who may have some open at a time.
ALTER TABLE jobs ADD COLUMN user_id TEXT;
CREATE INDEX jobs_open_of_user ON jobs (tenant, user_id) WHERE state IN ('pending', 'leased', 'parked');
