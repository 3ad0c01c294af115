-- Tools that are defined at run time. An empty agent is none: the tool is the tenant's, for all its agents.
-- `definition` is JSON; `variables` the names of variables in `env`, as JSON. `env` is sealed.
CREATE TABLE custom_tools (
    tenant     TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    definition TEXT    NOT NULL,
    variables  TEXT    NOT NULL,
    enabled    INTEGER NOT NULL,
    env        BLOB    NOT NULL CHECK (length(env) >= 37 AND substr(env, 1, 1) < x'09'),
    version    INTEGER NOT NULL,
    at         INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, name)
) STRICT, WITHOUT ROWID;
