CREATE TABLE usage (
    tenant      TEXT   NOT NULL,
    id          UUID   NOT NULL,
    agent       TEXT   NOT NULL,
    user_id     TEXT,
    session     TEXT   NOT NULL,
    run         UUID,
    provider    TEXT   NOT NULL,
    model       TEXT   NOT NULL,
    input       BIGINT NOT NULL,
    output      BIGINT NOT NULL,
    cache_read  BIGINT NOT NULL,
    cache_write BIGINT NOT NULL,
    cost        BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    PRIMARY KEY (tenant, id)
);

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
);

CREATE TABLE tool_uses (
    tenant TEXT   NOT NULL,
    agent  TEXT   NOT NULL,
    tool   TEXT   NOT NULL,
    uses   BIGINT NOT NULL,
    PRIMARY KEY (tenant, agent, tool)
) WITH (fillfactor = 50);
