CREATE TABLE usage (
    tenant      TEXT    NOT NULL,
    id          BLOB    NOT NULL,
    agent       TEXT    NOT NULL,
    user_id     TEXT,
    session     TEXT    NOT NULL,
    run         BLOB,
    provider    TEXT    NOT NULL,
    model       TEXT    NOT NULL,
    input       INTEGER NOT NULL,
    output      INTEGER NOT NULL,
    cache_read  INTEGER NOT NULL,
    cache_write INTEGER NOT NULL,
    cost        INTEGER NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

-- What was spent is read from these alone.
CREATE INDEX usage_tenant ON usage (tenant, at, cost);
CREATE INDEX usage_agent ON usage (tenant, agent, at, cost);
CREATE INDEX usage_session ON usage (tenant, session, at, cost);

-- What a session was offered: names in a JSON array, in the order in which its model was told of them.
CREATE TABLE offered (
    tenant  TEXT NOT NULL,
    session TEXT NOT NULL,
    tools   TEXT NOT NULL,
    PRIMARY KEY (tenant, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE tool_uses (
    tenant TEXT    NOT NULL,
    agent  TEXT    NOT NULL,
    tool   TEXT    NOT NULL,
    uses   INTEGER NOT NULL,
    PRIMARY KEY (tenant, agent, tool)
) STRICT, WITHOUT ROWID;
