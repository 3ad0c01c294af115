-- MCP servers with their grants, their tools and the requests for access. `body` is JSON.
CREATE TABLE mcp_servers (
    tenant TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    body   TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) STRICT, WITHOUT ROWID;

-- `subject` is `agent:ID` or `user:ID`.
CREATE TABLE mcp_grants (
    tenant  TEXT    NOT NULL,
    server  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    body    TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (tenant, server, subject)
) STRICT, WITHOUT ROWID;

CREATE TABLE mcp_tools (
    tenant TEXT    NOT NULL,
    server TEXT    NOT NULL,
    name   TEXT    NOT NULL,
    body   TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, server, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE mcp_requests (
    tenant TEXT    NOT NULL,
    id     TEXT    NOT NULL,
    server TEXT    NOT NULL,
    body   TEXT    NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;
