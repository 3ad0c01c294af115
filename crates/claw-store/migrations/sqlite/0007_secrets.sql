-- Sealed values. No text begins with a byte below 9, so a plain one is refused here too.
-- An empty agent is none: what belongs to the tenant, for all its agents.
CREATE TABLE secrets (
    tenant TEXT    NOT NULL,
    agent  TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    value  BLOB    NOT NULL CHECK (length(value) >= 37 AND substr(value, 1, 1) < x'09'),
    made   INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, name)
) STRICT, WITHOUT ROWID;

-- `settings` is JSON; `variables` the names in `env`, as JSON.
CREATE TABLE programs (
    tenant    TEXT    NOT NULL,
    agent     TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    settings  TEXT    NOT NULL,
    variables TEXT    NOT NULL,
    enabled   INTEGER NOT NULL,
    env       BLOB    NOT NULL CHECK (length(env) >= 37 AND substr(env, 1, 1) < x'09'),
    at        INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, name)
) STRICT, WITHOUT ROWID;
