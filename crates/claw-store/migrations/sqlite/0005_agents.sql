-- Of an agent that was removed the version stays, so that it never falls.
CREATE TABLE agents (
    tenant  TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    version INTEGER NOT NULL,
    setup   TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Settings of tools. The tenant is empty, as no tenant's id is, where they hold for everyone.
CREATE TABLE tool_settings (
    tenant   TEXT    NOT NULL,
    tool     TEXT    NOT NULL,
    settings TEXT    NOT NULL,
    updated  INTEGER NOT NULL,
    PRIMARY KEY (tenant, tool)
) STRICT, WITHOUT ROWID;
