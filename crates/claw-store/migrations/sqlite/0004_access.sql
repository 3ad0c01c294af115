-- Who may come in. Rows of other tables may be of tenants that are not here.
CREATE TABLE tenants (
    tenant   TEXT    NOT NULL PRIMARY KEY,
    name     TEXT    NOT NULL,
    created  INTEGER NOT NULL,
    disabled INTEGER NOT NULL CHECK (disabled IN (0, 1))
) STRICT, WITHOUT ROWID;

-- The tenant of an installation that has only one is always there.
INSERT INTO tenants (tenant, name, created, disabled) VALUES ('main', 'main', 0, 0);

CREATE TABLE users (
    tenant   TEXT    NOT NULL REFERENCES tenants (tenant),
    id       TEXT    NOT NULL,
    name     TEXT    NOT NULL,
    role     TEXT    NOT NULL CHECK (role IN ('viewer', 'operator', 'admin', 'owner')),
    created  INTEGER NOT NULL,
    disabled INTEGER NOT NULL CHECK (disabled IN (0, 1)),
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

-- Of a key only the SHA-256 is kept; it is what a key is found by.
CREATE TABLE api_keys (
    id        BLOB    NOT NULL PRIMARY KEY,
    hash      TEXT    NOT NULL UNIQUE,
    tenant    TEXT    NOT NULL REFERENCES tenants (tenant),
    user_id   TEXT,
    label     TEXT    NOT NULL,
    scopes    TEXT    NOT NULL,
    created   INTEGER NOT NULL,
    expires   INTEGER,
    revoked   INTEGER,
    last_used INTEGER,
    FOREIGN KEY (tenant, user_id) REFERENCES users (tenant, id)
) STRICT;

CREATE INDEX api_keys_tenant ON api_keys (tenant, created, id);
